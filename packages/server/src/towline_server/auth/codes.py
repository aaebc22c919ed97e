"""One-time codes: how a new device gets its token without a password (C2, auth)."""

import hmac
import secrets
from collections.abc import Callable, Iterable
from typing import Final, NamedTuple

from towline_server.auth.throttle import Throttle
from towline_server.errors import AccessDenied

__all__ = ["CODE_LIFE_S", "Code", "Codes"]

CODE_LIFE_S: Final = 600.0
"""Seconds that a code may be used in."""

_ALPHABET: Final = "23456789ABCDEFGHJKLMNPQRSTUVWXYZ"  # without what is read wrongly
_LENGTH: Final = 8
_OPEN: Final = 16  # codes of a user at once: an old one makes room
_TRIES: Final = 10
_ALL_TRIES: Final = 200  # of everybody: 40 bits bear that for the ten minutes of a code
_TRIES_WINDOW_S: Final = 60.0


class Code(NamedTuple):
    """What is known of a code, but the code."""

    user: str
    """Whom it lets in."""
    until: float
    """When it stops to work, in seconds that never go back."""
    by: str = ""
    """The digest of the token that asked for it; empty for none that can end."""


class Codes:
    """Codes that wait to be claimed, in memory only: a restart voids them."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self._monotonic = monotonic
        self._open: dict[str, Code] = {}
        self._by_address = Throttle(monotonic, tries=_TRIES, window_s=_TRIES_WINDOW_S)
        self._by_all = Throttle(monotonic, tries=_ALL_TRIES, window_s=_TRIES_WINDOW_S)

    def make(self, user: str, by: str = "") -> str:
        """A new code that lets its claimer in as this user, written `XXXX-XXXX`.

        Args:
            user: Whom it lets in.
            by: The digest of the token that asks for it: it works as long as that counts.
        """
        code = "".join(secrets.choice(_ALPHABET) for _ in range(_LENGTH))
        self._open[code] = Code(user, self._monotonic() + CODE_LIFE_S, by)
        own = [held for held, known in self._open.items() if known.user == user]
        for held in own[:-_OPEN]:
            del self._open[held]
        return f"{code[:4]}-{code[4:]}"

    def give_back(self, text: str, known: Code) -> None:
        """Make a claimed code good again: what it was claimed for could not be done."""
        self._open[_bare(text)] = known

    def end(self, digests: Iterable[str]) -> None:
        """Void the codes that were asked for with tokens that have ended."""
        ended = frozenset(digests) - {""}
        self._open = {code: known for code, known in self._open.items() if known.by not in ended}

    def forget(self, user: str) -> None:
        """Void a user's codes."""
        self._open = {code: known for code, known in self._open.items() if known.user != user}

    def claim(self, text: str, address: str) -> Code:
        """Use up a code; case, dashes and spaces do not matter.

        Args:
            text: The code as it was typed.
            address: Where the claim comes from.

        Returns:
            What was known of it.

        Raises:
            AccessDenied: There is no such code, or it is used or too old.
            TooManyTries: Too many wrong ones came; even a right one waits now.
        """
        self._by_address.check(address)
        self._by_all.check("")
        now = self._monotonic()
        wanted = _bare(text)
        for code, known in list(self._open.items()):
            if known.until < now:
                del self._open[code]
            elif hmac.compare_digest(code.encode(), wanted.encode()):
                del self._open[code]
                return known
        self._by_address.note(address)
        self._by_all.note("")
        raise AccessDenied(
            "This code is wrong, used or over 10 minutes old; make a new one with `towline pair`.",
            reason="bad_code",
        )


def _bare(text: str) -> str:
    return "".join(char for char in text.upper() if char.isalnum())
