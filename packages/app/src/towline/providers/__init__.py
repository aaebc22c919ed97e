"""The providers of this user: how they are reached, and what is kept for them."""
