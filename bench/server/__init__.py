"""The parts of `bench/server.py`, one a figure."""
