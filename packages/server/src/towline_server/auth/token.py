"""Tokens: long random secrets, kept only as their hash."""

import hashlib
import secrets
from typing import Final

__all__ = ["hash_token", "new_token"]

_PREFIX: Final = "twl_"  # so that a leaked one is found by secret scanners
_BYTES: Final = 32


def new_token() -> str:
    """A new token with 256 bits of randomness."""
    return _PREFIX + secrets.token_urlsafe(_BYTES)


def hash_token(token: str) -> str:
    """What is stored of a token: its SHA-256 in hex. A token is too random to need salt."""
    return hashlib.sha256(token.encode()).hexdigest()
