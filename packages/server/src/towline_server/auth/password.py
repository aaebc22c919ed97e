"""Passwords: checked for what they must be, hashed by argon2id, beside the loop."""

import asyncio
import re
import unicodedata
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, Protocol, TypeVar

import argon2

from towline_protocol import UsageError
from towline_server.auth.reserved_name import RESERVED_NAMES
from towline_server.errors import TooManyTries

__all__ = [
    "MAX_PASSWORD",
    "MIN_PASSWORD",
    "Hasher",
    "Passwords",
    "check_new_password",
    "check_user_name",
]

MIN_PASSWORD: Final = 8
"""Characters of the shortest password: what NIST SP 800-63B asks for at least."""
MAX_PASSWORD: Final = 1024
"""Characters of the longest one: nobody types more, and hashing is work."""

_T = TypeVar("_T")

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")
_MEMORY_KIB: Final = 19_456  # with two passes, OWASP's least; some 40 ms, on a small machine too
_PASSES: Final = 2
_THREADS: Final = 2  # more would take the processor from the sessions
_WAITING: Final = 32  # at 40 ms each the last one waits under a second
_BUSY_S: Final = 2.0


class Hasher(Protocol):
    """Makes and checks hashes; blocks. `argon2.PasswordHasher` is one."""

    def hash(self, password: str) -> str:
        """The hash, with its salt and its costs in it."""
        ...

    def verify(self, hash: str, password: str) -> bool:  # noqa: A002 - as argon2 names it
        """`True`, else `argon2.exceptions.VerificationError`."""
        ...


class Passwords:
    """Hashes and checks passwords in a few threads of its own."""

    def __init__(self, hasher: Hasher | None = None) -> None:
        """Make one; the first password starts the threads.

        Args:
            hasher: Does the work; argon2id when left out.
        """
        self._hasher: Hasher = hasher or argon2.PasswordHasher(
            time_cost=_PASSES, memory_cost=_MEMORY_KIB, parallelism=1
        )
        self._pool: ThreadPoolExecutor | None = None
        self._waiting = 0
        self._decoy: str | None = None

    async def hash(self, password: str) -> str:
        """What is stored of a password.

        Raises:
            TooManyTries: Too many wait for the same work.
        """
        text = _normal(password)
        return await self._run(lambda: self._hasher.hash(text))

    async def check(self, hashed: str | None, password: str) -> bool:
        """Whether it is the password of that hash.

        Without a hash it is wrong, at the same cost: the time tells nobody who has an account.

        Raises:
            TooManyTries: Too many wait for the same work.
        """
        text = _normal(password[: MAX_PASSWORD + 1])
        if self._decoy is None:
            self._decoy = await self._run(lambda: self._hasher.hash("nobody's password"))
        against = hashed or self._decoy
        right = await self._run(lambda: self._verify(against, text))
        return right and hashed is not None

    def close(self) -> None:
        """Let the threads go; work that waits is not begun."""
        if self._pool is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
            self._pool = None

    def _verify(self, hashed: str, text: str) -> bool:
        try:
            return self._hasher.verify(hashed, text)
        except (argon2.exceptions.VerificationError, argon2.exceptions.InvalidHashError):
            return False

    async def _run(self, work: Callable[[], _T]) -> _T:
        if self._waiting >= _WAITING:
            raise TooManyTries(
                "Too many log in at once; try again in a moment.", retry_after_s=_BUSY_S
            )
        if self._pool is None:
            self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="towline-password")
        self._waiting += 1
        try:
            return await asyncio.get_running_loop().run_in_executor(self._pool, work)
        finally:
            self._waiting -= 1


def check_new_password(password: str) -> None:
    """Refuse what is no password to be; the message does not repeat it.

    Raises:
        UsageError: It is too short or too long.
    """
    size = len(_normal(password))
    if not MIN_PASSWORD <= size <= MAX_PASSWORD:
        raise UsageError(
            f"A password has {MIN_PASSWORD} to {MAX_PASSWORD} characters; this one has {size}."
        )


def check_user_name(name: str) -> None:
    """Refuse what is no user's name.

    Raises:
        UsageError: It holds other characters than a name may, or too many, or is one that
            logs use themselves.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name[:80]!r} is no user's name; take lower-case letters, digits, '.', '_' and '-', "
            "at most 64, with a letter or a digit first."
        )
    if name in RESERVED_NAMES:
        raise UsageError(
            f"{name!r} names no user: logs say so of what nobody decided; take another one."
        )


def _normal(password: str) -> str:
    """One form for what keyboards write in several (NFKC, as NIST SP 800-63B says)."""
    return unicodedata.normalize("NFKC", password)
