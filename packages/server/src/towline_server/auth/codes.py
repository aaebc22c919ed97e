"""One-time codes: how a new device gets its token without a password (C2, auth)."""

import hmac
import secrets
from collections.abc import Callable
from typing import Final

from towline_server.errors import AccessDenied, TooManyTries

__all__ = ["CODE_LIFE_S", "Codes"]

CODE_LIFE_S: Final = 600.0
"""Seconds that a code may be used in."""

_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # without what is read wrongly
_LENGTH: Final = 8
_OPEN: Final = 16  # codes at once: an old one makes room
_TRIES: Final = 10
_TRIES_WINDOW_S: Final = 60.0


class Codes:
    """Codes that wait to be claimed, in memory only: a restart voids them."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._open: dict[str, float] = {}
        self._wrong: list[float] = []

    def make(self) -> str:
        """A new code, written `XXXX-XXXX`."""
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        self._open[code] = self._monotonic() + CODE_LIFE_S
        while len(self._open) > _OPEN:
            del self._open[next(iter(self._open))]
        return f"{code[:4]}-{code[4:]}"

    def give_back(self, text: str) -> None:
        """Make a claimed code good again: what it was claimed for could not be done."""
        self._open[_bare(text)] = self._monotonic() + CODE_LIFE_S

    def claim(self, text: str) -> None:
        """Use up a code; case, dashes and spaces do not matter.

        Raises:
            AccessDenied: There is no such code, or it is used or too old.
            TooManyTries: Too many wrong ones came; even a right one waits now.
        """
        now = self._monotonic()
        self._wrong = [at for at in self._wrong if now - at < _TRIES_WINDOW_S]
        if len(self._wrong) >= _TRIES:
            raise TooManyTries(
                "Too many wrong codes; wait a minute, then try again.",
                retry_after_s=_TRIES_WINDOW_S - (now - self._wrong[0]),
            )
        wanted = _bare(text)
        for code, until in list(self._open.items()):
            if until < now:
                del self._open[code]
            elif hmac.compare_digest(code.encode(), wanted.encode()):
                del self._open[code]
                return
        self._wrong.append(now)
        raise AccessDenied(
            "This code is wrong, used or over 10 minutes old; make a new one with `towline pair`.",
            reason="bad_code",
        )


def _bare(text: str) -> str:
    return "".join(char for char in text.upper() if char.isalnum())
