"""Slows down who guesses: so many failures in a while, then a wait."""

from collections import deque
from collections.abc import Callable
from typing import Final

from towline_server.errors import TooManyTries

__all__ = ["Throttle"]

_KEYS: Final = 10_000
"""Names or addresses that are remembered; who brings more pushes out the one seen longest ago."""


class Throttle:
    """Counts failures by a name or an address, in memory only."""

    def __init__(
        self, monotonic: Callable[[], float], *, tries: int, window_s: float, keys: int = _KEYS
    ) -> None:
        """Make a throttle that nothing is counted in yet.

        Args:
            monotonic: Seconds that never go back.
            tries: Failures of one key that are borne within the window.
            window_s: Seconds that a failure counts.
            keys: Keys that are remembered at once.
        """
        self._monotonic = monotonic
        self._tries = tries
        self._window_s = window_s
        self._keys = keys
        self._failed: dict[str, deque[float]] = {}

    def check(self, key: str) -> None:
        """Let a try through.

        Raises:
            TooManyTries: The key has failed too often; even a right try waits now.
        """
        failed = self._failed.get(key)
        if failed is None:
            return
        now = self._monotonic()
        while failed and now - failed[0] >= self._window_s:
            failed.popleft()
        if not failed:
            del self._failed[key]
        elif len(failed) >= self._tries:
            wait_s = self._window_s - (now - failed[0])
            raise TooManyTries(
                "Too many wrong tries; wait a moment, then try again.", retry_after_s=wait_s
            )

    def note(self, key: str) -> None:
        """Count a try against the key.

        To be called before its outcome is known, so that tries at the same time all count; `forget`
        takes back one that was right.
        """
        failed = self._failed.pop(key, None) or deque(maxlen=self._tries)
        failed.append(self._monotonic())
        self._failed[key] = failed  # at the end: the first one is the one seen longest ago
        while len(self._failed) > self._keys:
            del self._failed[next(iter(self._failed))]

    def forget(self, key: str) -> None:
        """Take back one try of the key: it was right."""
        failed = self._failed.get(key)
        if failed:
            failed.pop()
