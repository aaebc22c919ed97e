"""Weighs and prices parcels."""

from post.prices import calc

__all__ = ["calc"]
