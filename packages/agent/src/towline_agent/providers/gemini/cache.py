"""Beginnings of conversations that are kept at the provider (A2.56 to A2.59).

From the second long request on, what comes before the newest words is put into `cachedContents`,
and the requests name it instead of sending it. Whatever goes wrong with that, the content is sent
as if there were no cache: nothing here ever fails a step.

One beginning is kept for each conversation (`Request.cache_key`). It is used while it is unchanged;
once as much again has come behind it, a longer one takes its place.
"""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final, cast

import msgspec

from towline_agent.host import Clock
from towline_agent.providers.base import StepFailed, StepResult
from towline_agent.providers.fragments import to_json
from towline_agent.providers.gemini.encode import Prompt
from towline_agent.providers.json_value import UNREADABLE
from towline_agent.providers.transport import HttpAnswer, TransportFailed

__all__ = ["CACHE_MIN_TOKENS", "CachedPrefix", "PromptCache"]

CACHE_MIN_TOKENS: Final = 2048
"""Estimated tokens of a request, and of its beginning, that are worth a cache (A2.56)."""
_FROM_REQUEST: Final = 2
"""One long request may be the only one; the second says that there are more. In the same way a
second request that begins otherwise says that the conversation has changed: one alone may have
asked for words only, or for a title."""
_TTL_S: Final = 3600
_RENEW_S: Final = 60
"""How long a beginning is kept, and how long before its end that is begun anew (A2.57)."""
_GROWTH: Final = 2
"""How many times as long a beginning must have become before it is put there once more."""
_MAX_KEPT: Final = 8
"""Conversations whose beginnings are kept at once; the one that was longest unused goes."""
_OK: Final = range(200, 300)
_NEVER: Final = (401, 403, 404)
_NEVER_WORDS: Final = re.compile(rb"FreeTier|free_tier|limit[=:] ?0\b")
"""Answers of a key or a plan without this; asking again with other words would not help."""
_DEAD: Final = (400, 403, 404)
"""Answers to a request whose cache is not there any more (A2.58)."""

Send = Callable[[str, str, bytes | None], Awaitable[HttpAnswer]]
"""Sends one request: method, path below the caches' address, body."""


class CachedPrefix(msgspec.Struct, frozen=True, kw_only=True):
    """A beginning that is kept at the provider."""

    name: str
    """Its name there."""
    count: int
    """How many contents it holds, besides system words and tools."""
    digest: bytes
    """What it holds, to see whether that is still the same."""
    tokens: int
    """About how long it is."""
    expires_s: float
    """When it ends, on the monotonic clock."""


class _Slot:
    """What is known of one conversation."""

    __slots__ = ("busy", "failed", "kept", "misses", "requests")

    def __init__(self) -> None:
        self.requests = 0
        """Long requests so far."""
        self.kept: CachedPrefix | None = None
        """The beginning that is kept."""
        self.failed: CachedPrefix | None = None
        """A beginning that was refused; its name is empty."""
        self.misses = 0
        """Requests in a row that began otherwise."""
        self.busy = False
        """Whether another step is at it just now."""


class PromptCache:
    """Keeps the beginnings of one model's conversations.

    Args:
        send: Sends a request to the provider; may raise `TransportFailed`.
        model: The model's full name, as the provider wants it for a cache.
        clock: Time.
    """

    def __init__(self, send: Send, model: str, clock: Clock) -> None:
        self.off = False
        """Whether this key or plan has no caches; found out once."""
        self._send = send
        self._model = model
        self._clock = clock
        self._slots: dict[str, _Slot] = {}

    async def prepare(self, key: str, prompt: Prompt) -> CachedPrefix | None:
        """The beginning to name in this request; `None` to send all of it."""
        if self.off or prompt.tokens() < CACHE_MIN_TOKENS:
            return None
        slot = await self._slot(key)
        slot.requests += 1
        if slot.requests < _FROM_REQUEST or slot.busy:
            return None
        if slot.kept is not None and not _begins(slot.kept, prompt):
            slot.misses += 1
            if slot.misses < _FROM_REQUEST:
                return None
        slot.misses = 0
        slot.busy = True
        try:
            slot.kept = await self._still_good(slot.kept, prompt)
            if self._outgrown(slot, prompt):
                await self._make(slot, prompt)
        finally:
            slot.busy = False
        return slot.kept

    def has_died(self, result: StepResult) -> bool:
        """Whether a request that named a beginning failed, perhaps because that is gone."""
        return (
            isinstance(result, StepFailed) and not result.streamed and result.error.status in _DEAD
        )

    def forget(self, key: str, prefix: CachedPrefix) -> None:
        """Stop using a beginning, and do not put the same one there again (A2.58)."""
        slot = self._slots.get(key)
        if slot is not None and slot.kept is prefix:
            slot.kept = None
            slot.failed = prefix

    async def close(self) -> None:
        """Delete all that is kept (A2.59); the cache may be used again after it."""
        slots, self._slots = self._slots, {}
        for slot in slots.values():
            if slot.kept is not None:
                await self._delete(slot.kept)

    async def _slot(self, key: str) -> _Slot:
        slot = self._slots.pop(key, None) or _Slot()
        self._slots[key] = slot  # the newest stands last
        if len(self._slots) > _MAX_KEPT:
            oldest = self._slots.pop(next(iter(self._slots)))
            if oldest.kept is not None:
                await self._delete(oldest.kept)
        return slot

    async def _still_good(self, kept: CachedPrefix | None, prompt: Prompt) -> CachedPrefix | None:
        """The beginning if it still begins this request and still lives; renewed when it ends soon.

        Time may have passed while nobody asked, so that it ended meanwhile.
        """
        if kept is None or self._clock.monotonic() >= kept.expires_s:
            return None
        if not _begins(kept, prompt):
            await self._delete(kept)
            return None
        if self._clock.monotonic() < kept.expires_s - _RENEW_S:
            return kept
        begun_s = self._clock.monotonic()
        body = to_json({"ttl": f"{_TTL_S}s"})
        answer = await self._try("PATCH", f"/{_id(kept)}?updateMask=ttl", body)
        if answer is None or answer.status not in _OK:
            return None
        return msgspec.structs.replace(kept, expires_s=begun_s + _TTL_S)

    def _outgrown(self, slot: _Slot, prompt: Prompt) -> bool:
        """Whether a new beginning should be put there."""
        tokens = prompt.tokens(prompt.settled)
        if tokens < CACHE_MIN_TOKENS:
            return False
        for known in (slot.kept, slot.failed):
            if known is not None and tokens < _GROWTH * known.tokens and _begins(known, prompt):
                return False
        return True

    async def _make(self, slot: _Slot, prompt: Prompt) -> None:
        count = prompt.settled
        begun_s = self._clock.monotonic()
        head = to_json({"model": self._model, "ttl": f"{_TTL_S}s"})
        body = b"%s,%s}" % (head[:-1], prompt.prefix(count))
        answer = await self._try("POST", "", body)
        name = "" if answer is None else _name(answer)
        made = CachedPrefix(
            name=name,
            count=count,
            digest=prompt.digest(count),
            tokens=prompt.tokens(count),
            expires_s=begun_s + _TTL_S,
        )
        if name:
            before, slot.kept = slot.kept, made
            if before is not None:
                await self._delete(before)
            return
        slot.failed = made
        if answer is not None:
            self.off = answer.status in _NEVER or (
                answer.status not in _OK and _NEVER_WORDS.search(answer.body) is not None
            )

    async def _delete(self, kept: CachedPrefix) -> None:
        """Delete a beginning; one that cannot be deleted now ends by itself."""
        await self._try("DELETE", f"/{_id(kept)}", None)

    async def _try(self, method: str, path: str, body: bytes | None) -> HttpAnswer | None:
        try:
            return await self._send(method, path, body)
        except TransportFailed:
            return None


def _begins(known: CachedPrefix, prompt: Prompt) -> bool:
    """Whether a request begins so, and has something to add to it."""
    if known.count >= len(prompt.contents.roles):
        return False
    return prompt.digest(known.count) == known.digest


def _id(kept: CachedPrefix) -> str:
    return kept.name.rsplit("/", 1)[-1]


def _name(answer: HttpAnswer) -> str:
    """The name of what was made; empty when nothing was."""
    if answer.status not in _OK:
        return ""
    try:
        found: Any = msgspec.json.decode(answer.body)
    except UNREADABLE:
        return ""
    name = cast("dict[str, Any]", found).get("name") if isinstance(found, dict) else None
    return name if isinstance(name, str) else ""
