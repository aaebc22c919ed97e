"""How the system's Chromium is started for a test."""

from typing import Final

__all__ = ["FLAGS"]

FLAGS: Final = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
"""What it is started with: quiet, and without what a container does not have."""
