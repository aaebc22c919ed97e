"""Looks a store over, says in plain words what is wrong with it, and mends what it understands."""
