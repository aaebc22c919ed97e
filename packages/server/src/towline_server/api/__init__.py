"""HTTP: the contract table as routes."""
