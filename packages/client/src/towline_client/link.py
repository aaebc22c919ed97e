"""The client's connection as a state machine: one pure function (C4).

Nothing here waits, reads a clock or draws a number: each input says when it happens, and those that
may lead to a back-off carry a random number. States, inputs and effects are plain data, so that the
web app runs the same machine; `vectors/link` of the protocol package holds both to the same cases.

```
Idle ─start─► Connecting ─hello─► Live ─cut─► Retrying ─hello─► Live
                                  Live ─gap, loss, other log─► Recovering ─view, hello─► Live
       401 ─► AuthExpired ─hello─► Live, or after two more tries ─► Failed(unauthorized)
       a success without the contract ─► Failed(contract_unavailable);  404, 410 ─► Failed(gone)
       any state ─stop─► Idle,  ─close─► Closed;  only start leaves Failed
```
"""

from collections.abc import Callable
from typing import Any, ClassVar, Final

import msgspec

__all__ = [
    "Adopt",
    "Close",
    "Connect",
    "Cut",
    "Deliver",
    "Drop",
    "GapSeen",
    "GiveUp",
    "Heard",
    "HelloSeen",
    "LinkEffect",
    "LinkInput",
    "LinkPolicy",
    "LinkState",
    "LoadView",
    "Loaded",
    "Lost",
    "Misfit",
    "Refused",
    "ResetSeen",
    "RetryNow",
    "RetrySeen",
    "Start",
    "Stop",
    "StoredSeen",
    "Tick",
    "step",
]

_set = msgspec.structs.replace


class LinkPolicy(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The numbers of C4; tests turn them, programs rarely do."""

    first_ms: int = 1_000
    """Wait before the second retry in a row; the first comes at once. Doubles from there (C4.5)."""
    most_ms: int = 30_000
    """Where the doubling stops."""
    patience: int = 8
    """Failures in a row after which `long_ms` is waited."""
    long_ms: int = 300_000
    """The longest wait; also the cap of what a server may ask for."""
    silence_ms: int = 45_000
    """A stream without a byte for this long counts as cut: three heartbeats (C3.7)."""
    connect_ms: int = 10_000
    """Time for a stream's head and its hello to come."""
    request_ms: int = 30_000
    """Time for the view to come."""
    warm_ms: int = 60_000
    """Back within this time after `stop`, the cursor alone is enough (C4.2)."""
    steady_ms: int = 5_000
    """A connection that held this long, or brought something new, was none in a row of failures:
    a server that greets and hangs up is not asked in a tight circle."""
    views_at_once: int = 3
    """Views in a row that may be fetched anew without a wait: no tight circle here either."""
    auth_ms: tuple[int, ...] = (0, 1_000)
    """Waits before the credential is asked for again after a 401 (C4.6)."""


class LinkState(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """All that the machine knows. The defaults are a link that was never started."""

    phase: str = "idle"
    """`idle`, `connecting`, `live`, `retrying`, `recovering`, `auth_expired`, `failed` or `closed`:
    what people are shown (C4.1)."""
    doing: str = "nothing"
    """`nothing`, `pause`, `view` (fetching it) or `stream` (opening or reading it)."""
    attempt: int = 0
    """The number of the newest request; inputs of an older one are ignored."""
    log: str | None = None
    """The lineage of the server's log, once known."""
    seq: int | None = None
    """The last stored event that was handled: the cursor. `None` before a first view."""
    stale: bool = False
    """Whether the view must be fetched anew before the stream is opened (C4.3)."""
    ends: bool = False
    """Whether the session's last event was seen: the stream's end is then the end."""
    failures: int = 0
    """Failed connections in a row."""
    losses: int = 0
    """How often in a row the view had to be fetched anew."""
    refusals: int = 0
    """401 answers since the last hello."""
    moved: bool = False
    """Whether this connection brought a new stored event."""
    live_ms: int | None = None
    """When this connection's hello came."""
    retry_ms: int = 0
    """The server's own wish for a wait, the floor after the first retry."""
    reset_ms: int | None = None
    """The wait of a close that the server announced."""
    wake_ms: int | None = None
    """When a `Tick` is due; `None` for never."""
    stopped_ms: int | None = None
    """When `stop` came."""
    failed: str | None = None
    """`unauthorized`, `contract_unavailable`, `version_mismatch`, `gone` or `rejected`."""
    policy: LinkPolicy = LinkPolicy()
    """The numbers it goes by."""


class _Input(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    now_ms: int = 0
    """Milliseconds of a clock that never goes back."""
    random: float = 0.0
    """A fresh random number, 0 included, 1 not."""


class Start(_Input, frozen=True, kw_only=True, tag="start"):
    """Somebody wants the line. Means nothing while it is wanted already."""

    turn_running: bool = False
    """Whether the view shows a running turn."""


class Stop(_Input, frozen=True, kw_only=True, tag="stop"):
    """The program goes to the background; the session is not lost."""


class Close(_Input, frozen=True, kw_only=True, tag="close"):
    """The line is not wanted any more."""


class RetryNow(_Input, frozen=True, kw_only=True, tag="retry_now"):
    """Somebody asks not to wait any longer, or a network is there again."""


class Tick(_Input, frozen=True, kw_only=True, tag="tick"):
    """The clock has reached `wake_ms`; an early or late one does no harm."""


class _Answer(_Input, frozen=True, kw_only=True):
    answers: ClassVar[tuple[str, ...]] = ("view", "stream")
    attempt: int
    """The attempt it belongs to."""


class _OfStream(_Answer, frozen=True, kw_only=True):
    answers: ClassVar[tuple[str, ...]] = ("stream",)


class Heard(_OfStream, frozen=True, kw_only=True, tag="heard"):
    """The stream's head or some bytes of it came."""


class HelloSeen(_OfStream, frozen=True, kw_only=True, tag="hello"):
    """The stream's first frame came."""

    log: str
    """The lineage of the server's log."""


class StoredSeen(_OfStream, frozen=True, kw_only=True, tag="stored"):
    """A frame with a number came."""

    seq: int
    """Its number."""
    ends: bool = False
    """Whether it closes the session."""


class GapSeen(_OfStream, frozen=True, kw_only=True, tag="gap"):
    """The server cannot go on from the cursor."""


class Lost(_OfStream, frozen=True, kw_only=True, tag="lost"):
    """A delta left a hole, so the view is not right any more (C1.5)."""


class RetrySeen(_OfStream, frozen=True, kw_only=True, tag="retry"):
    """The stream said how long to wait between connections."""

    retry_ms: int
    """Milliseconds."""


class ResetSeen(_OfStream, frozen=True, kw_only=True, tag="reset"):
    """The server announced that it will close the stream."""

    retry_ms: int
    """Milliseconds to wait then; jitter is in it."""


class Loaded(_Answer, frozen=True, kw_only=True, tag="loaded"):
    """The view came."""

    answers: ClassVar[tuple[str, ...]] = ("view",)
    log: str
    """The lineage of its log."""
    seq: int
    """The number it stands at."""
    ends: bool = False
    """Whether the session is closed."""


class Cut(_Answer, frozen=True, kw_only=True, tag="cut"):
    """The request or the stream ended without a word."""


class Refused(_Answer, frozen=True, kw_only=True, tag="refused"):
    """A status of 400 or more came."""

    status: int
    """The HTTP status."""
    contract: bool = True
    """Whether the contract's header was on it: a proxy's page has none (C4.7)."""
    retry_after_ms: int = 0
    """How long the answer asks to wait."""


class Misfit(_Answer, frozen=True, kw_only=True, tag="misfit"):
    """A success came that no server of this contract sends."""

    reason: str
    """`missing_header`, `bad_header`, `not_json` or `version_mismatch`."""


_Asked = Start | Stop | Close | RetryNow | Tick
_Read = Heard | HelloSeen | StoredSeen | GapSeen | Lost | RetrySeen | ResetSeen
LinkInput = _Asked | _Read | Loaded | Cut | Refused | Misfit
"""All that can happen to a link."""


class _Effect(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, tag_field="type"):
    pass


class Connect(_Effect, frozen=True, kw_only=True, tag="connect"):
    """Open the stream after the cursor; each request asks for the credential anew."""

    attempt: int
    """The attempt's number, for the inputs it leads to."""
    after: int
    """The cursor."""


class LoadView(_Effect, frozen=True, kw_only=True, tag="load_view"):
    """Fetch the view."""

    attempt: int
    """The attempt's number, for the inputs it leads to."""


class Drop(_Effect, frozen=True, kw_only=True, tag="drop"):
    """Give up the request or stream that is under way."""

    attempt: int
    """Its number."""


class Deliver(_Effect, frozen=True, kw_only=True, tag="deliver"):
    """The stored event is the next one: fold it in and pass it on. Without this it is a double."""


class Adopt(_Effect, frozen=True, kw_only=True, tag="adopt"):
    """The fetched view takes the place of the one held."""


class GiveUp(_Effect, frozen=True, kw_only=True, tag="give_up"):
    """Nothing more will be tried until `start`: show why."""

    reason: str
    """As `LinkState.failed`."""
    attempts: int = 0
    """How often the credential was asked for again."""


LinkEffect = Connect | LoadView | Drop | Deliver | Adopt | GiveUp
"""All that a link can ask of the world."""

_Step = tuple[LinkState, tuple[LinkEffect, ...]]

_TRANSIENT: Final = frozenset({408, 425, 429})
"""The statuses below 500 that time can heal."""


def step(state: LinkState, given: LinkInput) -> _Step:
    """What the link is after an input, and what is to be done. Pure; never raises."""
    if state.phase == "closed":
        return state, ()
    if isinstance(given, _Answer) and not _is_due(state, given):
        return state, ()
    return _ARROWS[type(given)](state, given)


def _is_due(state: LinkState, given: _Answer) -> bool:
    return given.attempt == state.attempt and state.doing in given.answers


def _start(state: LinkState, given: Start) -> _Step:
    if state.phase not in ("idle", "failed"):
        return state, ()
    since = state.stopped_ms
    late = since is not None and given.now_ms - since > state.policy.warm_ms
    state = _set(
        state,
        phase="connecting",
        stale=state.stale or (late and given.turn_running),
        stopped_ms=None,
        failed=None,
    )
    state = _set(state, failures=0, losses=0, refusals=0)
    return _go(state, given.now_ms)


def _stop(state: LinkState, given: Stop) -> _Step:
    if state.phase in ("idle", "failed"):
        return state, ()
    return _rest(_set(state, phase="idle", stopped_ms=given.now_ms)), _drop(state)


def _close(state: LinkState, _: Close) -> _Step:
    return _rest(_set(state, phase="closed")), _drop(state)


def _retry_now(state: LinkState, given: RetryNow) -> _Step:
    return _go(state, given.now_ms) if state.doing == "pause" else (state, ())


def _tick(state: LinkState, given: Tick) -> _Step:
    if state.wake_ms is None or given.now_ms < state.wake_ms:
        return state, ()
    if state.doing == "pause":
        return _go(state, given.now_ms)
    after, effects = _cut(state, given)
    return after, (*_drop(state), *effects)


def _heard(state: LinkState, given: Heard) -> _Step:
    if state.live_ms is None:  # comments alone are no line: the hello is due with the head
        return state, ()
    return _set(state, wake_ms=given.now_ms + state.policy.silence_ms), ()


def _hello(state: LinkState, given: HelloSeen) -> _Step:
    if state.log is not None and state.log != given.log:
        return _recover(state, given)
    state = _set(state, phase="live", log=given.log, live_ms=given.now_ms, refusals=0)
    return _set(state, wake_ms=given.now_ms + state.policy.silence_ms), ()


def _stored(state: LinkState, given: StoredSeen) -> _Step:
    last = state.seq or 0
    if given.seq <= last:
        return state, ()
    if given.seq > last + 1:
        return _recover(state, given)
    return _set(state, seq=given.seq, moved=True, ends=state.ends or given.ends), (Deliver(),)


def _recover(state: LinkState, given: HelloSeen | StoredSeen | GapSeen | Lost) -> _Step:
    policy = state.policy
    losses = 1 if _held(state, given.now_ms) else state.losses + 1
    least_ms = _back_off(policy, losses - policy.views_at_once + 1, 0, given.random)
    lost = _set(state, phase="recovering", stale=True, losses=losses)
    after, effects = _again(lost, given, least_ms)
    return after, (*_drop(state), *effects)


def _retry(state: LinkState, given: RetrySeen) -> _Step:
    return _set(state, retry_ms=min(given.retry_ms, state.policy.long_ms)), ()


def _reset(state: LinkState, given: ResetSeen) -> _Step:
    return _set(state, reset_ms=min(given.retry_ms, state.policy.long_ms)), ()


def _loaded(state: LinkState, given: Loaded) -> _Step:
    held = _set(state, log=given.log, seq=given.seq, ends=given.ends, stale=False)
    state, effects = _go(held, given.now_ms)
    return state, (Adopt(), *effects)


def _cut(state: LinkState, given: Cut | Tick) -> _Step:
    if state.ends:
        return _rest(_set(state, phase="closed")), ()
    state = _set(state, phase="retrying")
    if state.reset_ms is not None:
        held = state.moved or _held(state, given.now_ms)
        least_ms = 0 if held else state.policy.first_ms  # else it could go round and round
        return _pause(_set(state, failures=0), given.now_ms, max(state.reset_ms, least_ms))
    return _again(state, given)


def _refused(state: LinkState, given: Refused) -> _Step:
    if given.contract and given.status == 401:
        return _unauthorized(state, given)
    if given.contract and given.status in (404, 410):
        return _give_up(state, "gone")
    if given.contract and given.status < 500 and given.status not in _TRANSIENT:
        return _give_up(state, "rejected")
    return _again(_set(state, phase="retrying"), given, given.retry_after_ms)


def _unauthorized(state: LinkState, given: Refused) -> _Step:
    waits = state.policy.auth_ms
    if state.refusals >= len(waits):
        return _give_up(state, "unauthorized", len(waits))
    wait_ms = waits[state.refusals]
    state = _set(state, phase="auth_expired", refusals=state.refusals + 1)
    return _pause(state, given.now_ms, wait_ms)


def _misfit(state: LinkState, given: Misfit) -> _Step:
    other = given.reason == "version_mismatch"
    return _give_up(state, "version_mismatch" if other else "contract_unavailable")


def _go(state: LinkState, now_ms: int) -> _Step:
    """The next request: the view when there is none to go on from, else the stream."""
    attempt = state.attempt + 1
    state = _set(state, attempt=attempt, moved=False, live_ms=None, reset_ms=None)
    if state.seq is None or state.stale:
        state = _set(state, doing="view", wake_ms=now_ms + state.policy.request_ms)
        return state, (LoadView(attempt=attempt),)
    connect = Connect(attempt=attempt, after=state.seq)
    return _set(state, doing="stream", wake_ms=now_ms + state.policy.connect_ms), (connect,)


def _again(state: LinkState, given: _Input, least_ms: int = 0) -> _Step:
    """Count a failure and wait as C4.5 says, `least_ms` at least."""
    policy = state.policy
    failures = 1 if state.moved or _held(state, given.now_ms) else state.failures + 1
    wait_ms = _back_off(policy, failures, state.retry_ms, given.random)
    wait_ms = max(wait_ms, min(least_ms, policy.long_ms))
    return _pause(_set(state, failures=failures), given.now_ms, wait_ms)


def _held(state: LinkState, now_ms: int) -> bool:
    return state.live_ms is not None and now_ms - state.live_ms >= state.policy.steady_ms


def _back_off(policy: LinkPolicy, failures: int, floor_ms: int, random: float) -> int:
    if failures <= 1:
        return 0
    if failures >= policy.patience:
        return max(policy.long_ms, floor_ms)
    most_ms = min(policy.most_ms, policy.first_ms * 2 ** (failures - 2))
    return max(int(random * most_ms), floor_ms)


def _pause(state: LinkState, now_ms: int, wait_ms: int) -> _Step:
    if wait_ms <= 0:
        return _go(state, now_ms)
    return _set(_rest(state), doing="pause", wake_ms=now_ms + wait_ms), ()


def _give_up(state: LinkState, reason: str, attempts: int = 0) -> _Step:
    state = _rest(_set(state, phase="failed", failed=reason))
    return state, (GiveUp(reason=reason, attempts=attempts),)


def _rest(state: LinkState) -> LinkState:
    return _set(state, doing="nothing", moved=False, live_ms=None, reset_ms=None, wake_ms=None)


def _drop(state: LinkState) -> tuple[LinkEffect, ...]:
    return (Drop(attempt=state.attempt),) if state.doing in ("view", "stream") else ()


_ARROWS: Final[dict[type, Callable[[LinkState, Any], _Step]]] = {
    Start: _start,
    Stop: _stop,
    Close: _close,
    RetryNow: _retry_now,
    Tick: _tick,
    Heard: _heard,
    HelloSeen: _hello,
    StoredSeen: _stored,
    GapSeen: _recover,
    Lost: _recover,
    RetrySeen: _retry,
    ResetSeen: _reset,
    Loaded: _loaded,
    Cut: _cut,
    Refused: _refused,
    Misfit: _misfit,
}
