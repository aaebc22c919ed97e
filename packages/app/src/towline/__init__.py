"""Towline: an agent that works on your machine while you hold the other end of the line."""

from importlib.metadata import version

__all__ = ["__version__"]

__version__ = version("towline")
"""The version of all five distributions."""
