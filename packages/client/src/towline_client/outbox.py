"""A command on its way: tries, waits and an honest state, as pure functions (C4.9).

Nothing here sends, waits or reads a clock. Who drives it makes an `Entry` for a command, calls
`send`, and then does what the entry says: while `doing` is `try`, the request of number `attempt`
is under way and its end goes to `after_try`; whenever `wake_ms` is reached, `tick` is called. The
web app has the same functions; `vectors/outbox` of the protocol package holds both to one list of
cases.

```
new ─send─► try ─acknowledged─► accepted                      ─the log shows it─► queued, delivered
            try ─refused─► refused ─send─► try
            try ─no answer─► pause ─tick─► try … ─two minutes─► unknown ─send─► try
```
"""

from collections.abc import Container, Sequence
from typing import Final

import msgspec

from towline_protocol import Fault

__all__ = [
    "FIRST_WAIT_MS",
    "LAST_TRY_MS",
    "LIFE_MS",
    "MOST_WAIT_MS",
    "Entry",
    "TryOutcome",
    "after_try",
    "fault_of",
    "send",
    "settle",
    "tick",
]

LIFE_MS: Final = 120_000
"""Milliseconds after which nothing is sent again without being asked for."""
FIRST_WAIT_MS: Final = 1_000
"""Milliseconds before the second try; each further wait is twice as long."""
LAST_TRY_MS: Final = 500
"""Milliseconds before the end at which a last try begins: enough for a near server's answer."""
MOST_WAIT_MS: Final = 8_000
"""Where the doubling stops: somebody is looking at the message."""

_set = msgspec.structs.replace


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One command under its key. With no more than a key it is one that was never sent."""

    key: str
    """Its `Idempotency-Key`, the same for all tries (C2.5)."""
    life_ms: int = LIFE_MS
    """Milliseconds for all tries together."""
    state: str = "sending"
    """What is known of it: `sending`, `accepted` (acknowledged), `queued` or `delivered` (the log
    shows it as a waiting prompt or as a message), `refused`, or `unknown` (no answer came; it may
    have arrived)."""
    doing: str = "nothing"
    """`try` while a request is under way, `pause` before the next one, else `nothing`."""
    attempt: int = 0
    """The number of the newest try."""
    failures: int = 0
    """Tries in a row without an answer."""
    begun_ms: int = 0
    """When it was sent first, or last asked for anew."""
    wake_ms: int | None = None
    """When `tick` is due; `None` for never."""
    code: str | None = None
    """The fault code of the last try, when it failed."""
    message: str = ""
    """Why the last try failed."""


class TryOutcome(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What came of one try."""

    kind: str
    """`accepted`: the server has it. `refused`: it said no. `again`: no answer, or one that advises
    the same request once more."""
    code: str | None = None
    """The fault code, of the last two."""
    message: str = ""
    """Why, of the last two."""
    after_ms: int = 0
    """How long the server asks to wait, of `again`."""


def send(entry: Entry, now_ms: int) -> Entry:
    """Send it: for the first time, again after it came to nothing, or now instead of later.

    What is under way or known to have arrived stays as it is. Asking again after a refusal or a
    life without an answer begins a new life under the old key.
    """
    if entry.doing == "pause":
        return _try(entry)
    if entry.doing == "try" or entry.state in ("accepted", "queued", "delivered"):
        return entry
    fresh = _set(entry, state="sending", failures=0, begun_ms=now_ms, code=None, message="")
    return _try(fresh)


def after_try(entry: Entry, attempt: int, outcome: TryOutcome, now_ms: int) -> Entry:
    """Take in what came of a try.

    An acknowledgement counts whenever it comes, for all tries are the same command; any other
    outcome counts for the newest try alone. The last try begins half a second before the end,
    unless the server asks to wait for longer.
    """
    if outcome.kind == "accepted":
        return _set(_end(entry, "accepted"), code=None, message="")
    if entry.doing != "try" or attempt != entry.attempt:
        return entry
    entry = _set(entry, code=outcome.code, message=outcome.message)
    if outcome.kind == "refused":
        return _end(entry, "refused")
    entry = _set(entry, failures=entry.failures + 1)
    wait_ms = min(FIRST_WAIT_MS * 2 ** (entry.failures - 1), MOST_WAIT_MS)
    last_ms = _deadline_ms(entry) - LAST_TRY_MS
    wake_ms = max(min(now_ms + wait_ms, last_ms), now_ms + outcome.after_ms)
    if now_ms >= last_ms or wake_ms >= _deadline_ms(entry):
        return _end(entry, "unknown")
    return _set(entry, doing="pause", wake_ms=wake_ms)


def tick(entry: Entry, now_ms: int) -> Entry:
    """Take in that the clock has reached `wake_ms`; an early or late call does no harm.

    A try that is still under way when its life ends counts as unanswered: give it up.
    """
    if entry.wake_ms is None or now_ms < entry.wake_ms:
        return entry
    if now_ms >= _deadline_ms(entry):  # also after a sleep of the whole device
        return _end(entry, "unknown")
    return _try(entry)


def settle(
    entries: Sequence[Entry], queued: Container[str], delivered: Container[str]
) -> tuple[Entry, ...]:
    """Take in what the log shows: it is right, whatever the tries came to.

    Tries go on, for who asked still waits for the answer; an owner without such a caller may drop
    what is queued or delivered.

    Args:
        entries: The commands.
        queued: Keys of the view's waiting prompts.
        delivered: Keys of the view's messages.

    Returns:
        The same entries, those that the log shows with their state changed.
    """
    return tuple(_settled(entry, queued, delivered) for entry in entries)


def fault_of(entry: Entry) -> Fault | None:
    """Why it came to nothing, for the view and for whoever waits; `None` while it has not."""
    details = {"key": entry.key, "attempts": entry.attempt}
    if entry.state == "refused":
        code = entry.code or "rejected"
        return Fault(code=code, message=entry.message, scope="client.outbox", details=details)
    if entry.state == "unknown":
        return Fault(
            code=entry.code or "upstream_unavailable",
            message=f"No answer came within {entry.life_ms // 1000} s, so it may have arrived or "
            "not. Send it again, under its own key it counts once.",
            retry="same_request",
            scope="client.outbox",
            details=details,
        )
    return None


def _try(entry: Entry) -> Entry:
    attempt = entry.attempt + 1
    return _set(entry, doing="try", attempt=attempt, wake_ms=_deadline_ms(entry))


def _end(entry: Entry, state: str) -> Entry:
    """No more tries; what the log has shown stands above what a try came to."""
    shown = entry.state in ("queued", "delivered")
    return _set(entry, doing="nothing", wake_ms=None, state=entry.state if shown else state)


def _settled(entry: Entry, queued: Container[str], delivered: Container[str]) -> Entry:
    if entry.key in delivered:
        state = "delivered"
    elif entry.key in queued and entry.state != "delivered":
        state = "queued"
    else:
        return entry
    return entry if entry.state == state else _set(entry, state=state, code=None, message="")


def _deadline_ms(entry: Entry) -> int:
    return entry.begun_ms + entry.life_ms
