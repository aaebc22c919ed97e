"""Functions as tools: what their signatures say to a model, and what they return as text."""
