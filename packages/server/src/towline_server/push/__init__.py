"""Calling people who do not look (C7.1)."""
