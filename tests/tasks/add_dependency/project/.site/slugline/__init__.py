"""Titles as names for addresses and files."""

import re
import unicodedata

__all__ = ["slugline"]

_LETTERS = {"ß": "ss", "æ": "ae", "ø": "o", "ł": "l"}


def slugline(title, *, limit=40):
    """A title as lower-case words with dashes between, of `limit` characters at most."""
    text = "".join(_LETTERS.get(sign, sign) for sign in title.lower())
    text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode()
    words = re.findall(r"[a-z0-9]+", text)
    while words and len("-".join(words)) > limit:
        words.pop()
    return "-".join(words)
