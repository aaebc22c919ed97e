"""Backup keys: when a provider refuses one key, the same request goes to the next (A3.29 to A3.34).

```python
provider = KeyRing({key: OpenAIChat("gpt-5", api_key=key) for key in (first, second)})
```
"""

import functools
import math
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from typing import Any, Final, cast

import msgspec

from towline_agent.errors import (
    AuthenticationFailed,
    ProviderError,
    QuotaExhausted,
    RateLimited,
)
from towline_agent.host import Clock
from towline_agent.providers.base import (
    Model,
    Paced,
    Piece,
    Provider,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
)
from towline_agent.providers.pacing import hash_key, process_clock
from towline_protocol import Usage, UsageError

__all__ = ["Bench", "Benched", "KeyRing", "shared_bench", "show_key"]

_RATE_S: Final = 60.0
"""Seconds on the bench for a rate limit without a stated delay: the window of most limits."""
_LEAST_S: Final = 1.0
"""Seconds on the bench at least, so that a stated delay of 0 is no busy loop (A3.22)."""
_QUOTA_S: Final = 3600.0
"""Seconds on the bench for used-up credit, a used-up day or a plan without the model (A3.30)."""
_WAIT_MAX_S: Final = 120.0
"""The longest wait that the loop takes upon itself (A3.23, A3.33)."""
_MAX_BENCHED: Final = 1024
"""Keys on one bench; no person has as many."""
_MAX_BENCHES: Final = 64
"""Benches of one process: one, and those of other clocks."""
_FORBIDDEN: Final = 403
_SHOWN: Final = 4
_SHOWN_OF: Final = 12
"""A key shorter than this would be half told by its last four characters."""


class Benched(msgspec.Struct, frozen=True, kw_only=True):
    """Why and how long a key is not asked."""

    until_s: float
    """When it is free again, on the bench's clock; infinite for never."""
    reason: str
    """The kind of the refusal."""
    details: dict[str, Any] | None = None
    """The details of its fault, such as `suggested_model`."""


class Bench:
    """The keys that are not asked for now. It knows them by hashes alone.

    A limit, a plan or a permission goes for one model; credit and a bad key go for all models.

    Args:
        clock: Time.
    """

    def __init__(self, clock: Clock) -> None:
        self.clock = clock
        """Time."""
        self._rows: dict[tuple[str, str, str], Benched] = {}
        self._lock = threading.Lock()

    def add(self, model: Model, key: str, error: ProviderError) -> Benched | None:
        """Bench a key if the error is of a kind that another key may not meet.

        Args:
            model: What was asked.
            key: The key; only its hash is kept.
            error: What it was refused with.

        Returns:
            The row; `None` when every key would fail so.
        """
        bench_s = _bench_s(error)
        if bench_s is None:
            return None
        reason = error.reason or error.code.removeprefix("provider_")
        place = (model.provider, hash_key(key), model.id if _is_of_model(error) else "")
        with self._lock:
            now_s = self.clock.monotonic()
            row = Benched(until_s=now_s + bench_s, reason=reason, details=error.details)
            before = self._rows.pop(place, None)
            if before is not None and before.until_s > row.until_s:
                row = before
            self._rows[place] = row
            if len(self._rows) > _MAX_BENCHED:
                del self._rows[next(iter(self._rows))]
            return row

    def find(self, model: Model, key: str) -> Benched | None:
        """The row of a key that is benched for a model; the longest when there are several."""
        hashed = hash_key(key)
        with self._lock:
            now_s = self.clock.monotonic()
            rows: list[Benched] = []
            for place in ((model.provider, hashed, ""), (model.provider, hashed, model.id)):
                row = self._rows.get(place)
                if row is not None and row.until_s <= now_s:
                    del self._rows[place]
                elif row is not None:
                    rows.append(row)
            return max(rows, key=lambda row: row.until_s, default=None)


class _Member:
    """A key and who asks with it."""

    __slots__ = ("key", "provider")

    def __init__(self, key: str, provider: Provider) -> None:
        self.key = key
        self.provider = provider

    def pause_s(self, tokens: int) -> float:
        provider = self.provider
        return provider.pause_s(tokens) if isinstance(provider, Paced) else 0.0


class KeyRing:
    """Providers of one model, one a key; see `Provider` and `Paced`. Its `repr` shows no key.

    A step asks the first key that is not benched. A refusal that another key may not meet benches
    it, and the same request goes to the next one, unless something has streamed already. With one
    key alone there is nothing to turn to, so nothing is benched.

    Args:
        providers: Who asks, by key; the first is asked first.
        bench: Where the benched keys are known; `None` for the process's own.

    Raises:
        UsageError: There is no key, or the providers are not of one model.
    """

    def __init__(self, providers: Mapping[str, Provider], *, bench: Bench | None = None) -> None:
        if not isinstance(cast("object", providers), Mapping):
            raise UsageError("A ring of keys takes a dict of keys, each with its provider.")
        for provider in providers.values():
            if not isinstance(getattr(provider, "model", None), Model):
                raise UsageError(f"A ring of keys can't hold {provider!r}; give providers.")
        names = {provider.model.name for provider in providers.values()}
        if len(names) != 1:
            raise UsageError(
                f"A ring of keys is for one model, not for {sorted(names)!r}; "
                "pass one provider of the same model for each key."
            )
        self._members = [_Member(key, provider) for key, provider in providers.items()]
        self._bench = bench or shared_bench()
        self.model: Model = self._members[0].provider.model
        """The model and what is known of it."""

    def __repr__(self) -> str:
        return f"KeyRing({self.model.name!r}, {len(self._members)} keys)"

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Send one request and read its answer; see `Provider`.

        When no key is left, it fails as `RateLimited` if one frees within two minutes, else as
        `QuotaExhausted` or, when all keys are wrong, as `AuthenticationFailed`.
        """
        if len(self._members) == 1:
            return await self._members[0].provider.step(request, on_piece)
        spent = Usage()
        notices: list[str] = []
        told = ""
        last: ProviderError | None = None
        for member in self._free():
            if self._find(member) is not None:
                continue  # another session has benched it in the meantime
            if told:
                notices.append(f"{told}; the request went to key {show_key(member.key)}.")
            result = await member.provider.step(request, on_piece)
            spent += result.usage  # of the refused ones too (A4.48)
            if isinstance(result, StepAnswer):
                notices.extend(result.notices)
                return msgspec.structs.replace(result, usage=spent, notices=tuple(notices))
            last = result.error
            benched = self._bench.add(self.model, member.key, last)
            if benched is None or result.streamed:
                return msgspec.structs.replace(result, usage=spent)
            told = self._told(member, benched)
        return StepFailed(error=self._exhausted(last), usage=spent)

    def pause_s(self, tokens: int) -> float:
        """Seconds to hold back a request of so many tokens: none while some key is free now."""
        return min((member.pause_s(tokens) for member in self._unbenched()), default=0.0)

    async def models(self) -> tuple[str, ...]:
        """The models that the first usable key offers; see `Provider`."""
        members = self._unbenched() or self._members
        return await members[0].provider.models()

    async def aclose(self) -> None:
        """Give back the connections of all; see `Provider`."""
        async with AsyncExitStack() as stack:
            for member in self._members:
                stack.push_async_callback(member.provider.aclose)

    def _unbenched(self) -> list[_Member]:
        return [member for member in self._members if self._find(member) is None]

    def _free(self) -> list[_Member]:
        """The usable keys in the order in which they are asked: those without a pause first."""
        return sorted(self._unbenched(), key=lambda member: member.pause_s(0) > 0)

    def _find(self, member: _Member) -> Benched | None:
        return self._bench.find(self.model, member.key)

    def _told(self, member: _Member, benched: Benched) -> str:
        left_s = benched.until_s - self._bench.clock.monotonic()
        how_long = f" for {math.ceil(left_s)} s" if math.isfinite(left_s) else ""
        return (
            f"Key {show_key(member.key)} of {self.model.provider!r} is set aside{how_long} "
            f"({benched.reason})"
        )

    def _exhausted(self, last: ProviderError | None) -> ProviderError:
        """The error that says that no key is left, with what the last refusal said (R53)."""
        rows = [row for member in self._members if (row := self._find(member)) is not None]
        now_s = self._bench.clock.monotonic()
        some_free = len(rows) < len(self._members)  # the time of one has come just now
        wait_s = 0.0 if some_free else min(row.until_s for row in rows) - now_s
        counts = Counter(row.reason for row in rows)
        said = (
            ", ".join(f"{count} {reason}" for reason, count in counts.most_common()) or "till now"
        )
        kind, advice = _exhaustion(rows, wait_s)
        error = kind(
            f"All {len(self._members)} keys unavailable for {self.model.id!r} at "
            f"{self.model.provider!r} ({said}); {advice}.",
            provider=self.model.provider,
            model=self.model.id,
            status=last and last.status,
            retry_after_s=_wait(wait_s) if kind is RateLimited else None,
            reason="rate_limit" if kind is RateLimited else "keys_unavailable",
            details=next((row.details for row in rows if row.details), None)
            if kind is QuotaExhausted
            else None,
            headers=last and last.headers,
            body=last.body if last else "",
        )
        error.__cause__ = last
        return error


def _exhaustion(rows: list[Benched], wait_s: float) -> tuple[type[ProviderError], str]:
    """What it means that no key is left, and what to do."""
    if wait_s <= _WAIT_MAX_S:
        return RateLimited, f"one is free again in {_wait(wait_s):g} s"
    if all(math.isinf(row.until_s) for row in rows):
        return AuthenticationFailed, "set a valid key"
    return QuotaExhausted, "add credit, add a key, or take another model"


def _wait(wait_s: float) -> float:
    return max(_LEAST_S, float(math.ceil(wait_s)))


def _bench_s(error: ProviderError) -> float | None:
    """How long a key that was refused so is not asked; `None` when that would not help."""
    match error:
        case RateLimited(retry_after_s=None):
            return _RATE_S
        case RateLimited(retry_after_s=float() | int() as delay_s):
            return max(_LEAST_S, delay_s)
        case QuotaExhausted():
            return _QUOTA_S
        case AuthenticationFailed():
            return math.inf  # another key is another row, so editing it frees it
        case _:
            return None


def _is_of_model(error: ProviderError) -> bool:
    """Whether another model may still be asked with the key: credit and a bad key go for all."""
    return (
        isinstance(error, RateLimited)
        or error.status == _FORBIDDEN
        or error.reason in ("daily_limit", "model_not_on_plan")
    )


def show_key(key: str) -> str:
    """A key as people may see it: its last four characters, of a short one none (A2.76)."""
    return f"…{key[-_SHOWN:]}" if len(key) >= _SHOWN_OF else "…"


def shared_bench(clock: Clock | None = None) -> Bench:
    """The process's one bench, so that all sessions know what one has met.

    Args:
        clock: Time; `None` for the machine's. Another clock has a bench of its own.
    """
    with _lock:
        return _made_bench(process_clock(clock))


_lock: Final = threading.Lock()


@functools.lru_cache(maxsize=_MAX_BENCHES)
def _made_bench(clock: Clock) -> Bench:
    return Bench(clock)
