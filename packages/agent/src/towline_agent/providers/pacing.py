"""Keeping the next minute under a provider's limits, before it has to refuse (A3.25 to A3.28).

```python
pause_s = pacer.pause_s(estimate)  # shown and waited for by the loop
sending = pacer.sent(estimate)
...
pacer.refused(error, sending)  # or pacer.answered(sending, tokens)
```
"""

import functools
import math
import threading
from collections import deque
from typing import Final

import msgspec

from towline_agent.errors import RateLimited, StatedLimits
from towline_agent.host import Clock, SystemClock
from towline_protocol import UsageError

__all__ = ["Pacer", "Sending", "hash_key", "process_clock", "shared_pacer"]

_WINDOW_S: Final = 60.0
"""The window slides over the last minute, as the limits of all vendors do (A3.25)."""
_LEARNED_S: Final = 600.0
"""Seconds that a learned limit holds: tiers and the load of others change (A3.27)."""
_TOKEN_SHARE: Final = 0.9
"""What is kept of the tokens that were too many (A3.26)."""
_MAX_SENDINGS: Final = 10_000
"""Requests of one minute that are remembered; nobody has a limit above that and comes near it."""
_MAX_PACERS: Final = 256
"""Pacers of one process; the one that was not asked for longest is forgotten."""
_HASH_BYTES: Final = 16
_SYSTEM_CLOCK: Final = SystemClock()


class Sending(msgspec.Struct, gc=False):
    """A request that went out."""

    at_s: float
    """When, on the pacer's clock."""
    tokens: int
    """Tokens it counts for."""


class Pacer:
    """Says how long to hold back a request; for one credential and one model.

    It counts what goes out in a sliding minute. Until somebody states a limit, or a refusal
    teaches one, nothing is held back. Safe to share between threads.

    Args:
        clock: Time.
        requests: Requests a minute, when a person has set it; then none is learned.
        tokens: Tokens a minute, likewise.

    Raises:
        UsageError: A limit is below 1.
    """

    def __init__(
        self, clock: Clock, *, requests: int | None = None, tokens: int | None = None
    ) -> None:
        for name, limit in (("requests", requests), ("tokens", tokens)):
            if limit is not None and limit < 1:
                raise UsageError(
                    f"{name!r} a minute cannot be {limit!r}; set 1 or more, or leave it out."
                )
        self._clock = clock
        self._set = StatedLimits(requests=requests, tokens=tokens)
        self._learned = StatedLimits()
        self._learned_at_s = 0.0
        self._held_until_s = 0.0
        self.has_limits = requests is not None or tokens is not None
        """Whether a limit was set or a refusal has taught one; until then nothing is held back."""
        self._window: deque[Sending] = deque(maxlen=_MAX_SENDINGS)
        self._lock = threading.Lock()

    @property
    def limits(self) -> StatedLimits:
        """The limits that hold now: what was set, else what was learned in the last 10 minutes."""
        with self._lock:
            return self._limits(self._clock.monotonic())

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens; 0.0 to go, 60.0 at most.

        A request that no window holds goes alone. Asking changes nothing.
        """
        if not self.has_limits:
            return 0.0
        with self._lock:
            now_s = self._clock.monotonic()
            self._forget(now_s)
            free_s = max(self._free_at_s(tokens, self._limits(now_s)), self._held_until_s)
            # up to the next millisecond: whoever waits so long must not find a rest of it
            return min(math.ceil(max(free_s - now_s, 0.0) * 1000) / 1000, _WINDOW_S)

    def sent(self, tokens: int) -> Sending:
        """Count a request that goes out now, by its estimated tokens."""
        with self._lock:
            sending = Sending(self._clock.monotonic(), tokens)
            self._window.append(sending)
            return sending

    def answered(self, sending: Sending, tokens: int) -> None:
        """Correct the estimate by what the provider counted."""
        if tokens:
            sending.tokens = tokens

    def refused(self, error: RateLimited, sending: Sending | None = None) -> None:
        """Learn from a refusal: the stated limit, else what the last minute held (A3.26).

        A stated delay holds back everybody who shares the pacer.

        Args:
            error: The refusal.
            sending: The refused request; the last one when not given. It no longer counts.
        """
        with self._lock:
            now_s = self._clock.monotonic()
            self._forget(now_s)
            self.has_limits = True
            learned = self._lesson(error.limits)
            if learned.requests or learned.tokens:
                self._learned, self._learned_at_s = learned, now_s
            if error.retry_after_s is not None:
                hold_s = min(error.retry_after_s, _WINDOW_S)
                self._held_until_s = max(self._held_until_s, now_s + hold_s)
            if sending is None and self._window:
                self._window.pop()
            elif sending in self._window:
                self._window.remove(sending)

    def _lesson(self, stated: StatedLimits) -> StatedLimits:
        if stated.requests or stated.tokens:
            return stated
        if stated.hit == "tokens":
            tokens = sum(sending.tokens for sending in self._window)
            return StatedLimits(tokens=int(tokens * _TOKEN_SHARE) or None)
        # one request alone teaches nothing: somebody else used the minute up
        return StatedLimits(requests=max(len(self._window) - 1, 0) or None)

    def _limits(self, now_s: float) -> StatedLimits:
        learned = self._learned
        if now_s - self._learned_at_s >= _LEARNED_S:
            learned = StatedLimits()
        return StatedLimits(
            requests=self._set.requests or learned.requests,
            tokens=self._set.tokens or learned.tokens,
        )

    def _forget(self, now_s: float) -> None:
        window = self._window
        while window and window[0].at_s + _WINDOW_S <= now_s:
            window.popleft()

    def _free_at_s(self, tokens: int, limits: StatedLimits) -> float:
        """When enough of the window has passed; the past when it can go now."""
        if limits.requests is None and limits.tokens is None:
            return -math.inf
        count = len(self._window)
        total = tokens + sum(sending.tokens for sending in self._window)
        free_s = -math.inf
        for sending in self._window:
            fits = limits.requests is None or count < limits.requests
            if fits and (limits.tokens is None or total <= limits.tokens):
                break
            free_s = sending.at_s + _WINDOW_S
            count -= 1
            total -= sending.tokens
        return free_s


def hash_key(secret: str | None) -> str:
    """What stands for a credential in tables of the process, so that none keeps the secret."""
    import hashlib  # with the first provider: it brings OpenSSL along

    # bytes of the environment that are no UTF-8 are halves of characters here
    data = (secret or "").encode(errors="surrogatepass")
    return hashlib.blake2b(data, digest_size=_HASH_BYTES).hexdigest()


def process_clock(clock: Clock | None) -> Clock:
    """The clock to share things by: all clocks of the machine are one."""
    return _SYSTEM_CLOCK if clock is None or isinstance(clock, SystemClock) else clock


def shared_pacer(
    provider: str,
    secret: str | None,
    model: str,
    *,
    clock: Clock | None = None,
    requests: int | None = None,
    tokens: int | None = None,
) -> Pacer:
    """The process's one pacer for a credential and a model (A3.25).

    Args:
        provider: The provider's name or address.
        secret: The credential; only a hash of it is kept.
        model: The provider's own name of the model.
        clock: Time; `None` for the machine's. Another clock has pacers of its own.
        requests: Requests a minute, when a person has set it.
        tokens: Tokens a minute, likewise.
    """
    with _lock:
        return _pacer(provider, hash_key(secret), model, process_clock(clock), requests, tokens)


_lock: Final = threading.Lock()


@functools.lru_cache(maxsize=_MAX_PACERS)
def _pacer(
    provider: str, key: str, model: str, clock: Clock, requests: int | None, tokens: int | None
) -> Pacer:
    """The cache is the registry: what names a pacer are the arguments, used or not."""
    return Pacer(clock, requests=requests, tokens=tokens)
