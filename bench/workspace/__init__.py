"""The parts of `bench/workspace.py`, one a figure."""
