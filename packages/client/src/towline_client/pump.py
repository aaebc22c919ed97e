"""The link at work: runs the requests it asks for, folds what comes into the view."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, Final

import msgspec

from towline_client.caller import Caller
from towline_client.clock import Clock
from towline_client.current import Current
from towline_client.errors import (
    ClientError,
    ConnectionLost,
)
from towline_client.flow import Feed, Latest
from towline_client.link import (
    Adopt,
    Close,
    Connect,
    Cut,
    Deliver,
    Drop,
    GapSeen,
    GiveUp,
    Heard,
    HelloSeen,
    LinkEffect,
    LinkInput,
    LinkPolicy,
    LinkState,
    Loaded,
    LoadView,
    Lost,
    ResetSeen,
    RetryNow,
    RetrySeen,
    Start,
    Stop,
    StoredSeen,
    Tick,
    step,
)
from towline_client.refusal import read_error
from towline_client.screen import Screen
from towline_protocol import (
    Broken,
    Envelope,
    Fault,
    Frame,
    Gap,
    Hello,
    Partial,
    PromptAdmitted,
    ProtocolError,
    Reset,
    SessionChanged,
    SessionClosed,
    SessionId,
    SessionRemoved,
    SessionRows,
    SessionView,
    SseDecoder,
    TowlineError,
    VersionMismatch,
    ViewAnswer,
    decode_frame,
    empty_view,
    parse_time,
    reduce,
    reduce_all,
)

__all__ = ["MAX_WAITING_EVENTS", "Connection", "Pump", "Rebuilt", "SessionEvent"]

MAX_WAITING_EVENTS: Final = 10_000
"""Events that wait for a slow reader: as many as the longest replay (C3.5)."""


class Rebuilt(msgspec.Struct, frozen=True, kw_only=True):
    """Stands where events are missing: the view was fetched anew, or the reader was too slow.

    What happened up to `view.seq` is in the view and does not come one by one.
    """

    view: SessionView
    """The view to go on from."""


SessionEvent = Envelope | Partial | Rebuilt
"""What `Session.events` gives: folding them with `reduce` makes the view."""


class Connection(msgspec.Struct, frozen=True, kw_only=True):
    """How the line is (C4.1)."""

    phase: str
    """As `LinkState.phase`."""
    failures: int = 0
    """Failed connections in a row."""
    next_try_ms: int | None = None
    """When the next try is due, in milliseconds of the client's `Clock`, which is monotonic and no
    time of day; `None` when no try is waited for: while `retrying`, one is under way then."""
    error: TowlineError | None = None
    """What the last try failed with; `None` while all is well."""


class Pump:
    """One session's line. `run` owns all that is under way; the other methods only steer it."""

    def __init__(
        self,
        session: SessionId,
        caller: Caller,
        *,
        clock: Clock,
        reader: str,
        policy: LinkPolicy,
        screen: Screen,
        draw: Callable[[], float] = random.random,
    ) -> None:
        self.connection = Latest(Connection(phase="idle"))
        """How the line is."""
        self.events: Feed[SessionEvent] = Feed(MAX_WAITING_EVENTS, lambda: Rebuilt(view=self._view))
        """Each stored event once, in order, and what is not stored as it comes."""
        self.current: Latest[Current | None] = Latest(None)
        """What is known for sure; `None` while the line is not up or still catching up."""
        self.broken = 0
        """Frames that could not be read (C1.11)."""
        self.server_now: str | None = None
        """The server's clock at the last hello, RFC 3339."""
        self._session = session
        self._caller = caller
        self._clock = clock
        self.reader = reader
        """How this line names itself."""
        self._draw = draw
        self._screen = screen
        self._state = LinkState(policy=policy)
        self._view = empty_view()
        self._unfolded: list[Envelope | Partial] = []
        self._fetched: ViewAnswer | None = None
        self._asked_ms = 0
        self._last_seq = 0
        self._ahead_ms = 0
        self._error: TowlineError | None = None
        self._changed = asyncio.Event()
        self._group: asyncio.TaskGroup | None = None
        self._attempt: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Own the line until `close` or the session's end; the first bug in it comes out here."""
        failure: BaseException | None = None
        try:
            async with asyncio.TaskGroup() as group:
                self._group = group
                self._steer(Start)
                while self._state.phase != "closed":
                    self._changed.clear()
                    await self._clock.wait(self._changed, self._state.wake_ms)
                    self._steer(Tick)
        except BaseExceptionGroup as errors:
            failure = errors.exceptions[0]
            raise failure from errors
        finally:
            self._group = None
            for flow in (self.events, self._screen.views, self.connection):
                flow.end(failure)
            self.current.end()

    def start(self) -> None:
        """Want the line; also goes on after a failure. Idempotent (C4.7)."""
        if self._group is None:  # not begun, or over: run() is what begins
            return
        if self._state.phase in ("idle", "failed"):
            self._error = None
            for flow in (self.events, self._screen.views):
                flow.reopen()
            self._screen.show_fault(None)
        self._feed(Start(turn_running=self._view.turn is not None, **self._when()))

    def stop(self) -> None:
        """Do without the line for a while; the session stays. Idempotent."""
        self._steer(Stop)

    def retry_now(self) -> None:
        """Do not wait any longer for the next try. Means nothing while none is waited for."""
        self._steer(RetryNow)

    def close(self) -> None:
        """End the line; `run` returns when all is put away."""
        self._steer(Close)

    def _steer(self, kind: type[Start | Stop | Close | RetryNow | Tick]) -> None:
        self._feed(kind(**self._when()))

    def _when(self) -> dict[str, Any]:
        return {"now_ms": self._clock.now_ms(), "random": self._draw()}

    def _feed(self, given: LinkInput) -> bool:
        """Let the link take an input; says whether it was a stored event to deliver."""
        before = self._state
        self._state, effects = step(before, given)
        deliver = False
        for effect in effects:
            deliver = self._carry_out(effect) or deliver
        now = self._state
        if (now.phase, now.doing, now.attempt) != (before.phase, before.doing, before.attempt):
            self._changed.set()
            self._show()
        return deliver

    def _carry_out(self, effect: LinkEffect) -> bool:
        match effect:
            case Connect(attempt=attempt, after=after):
                self._begin(self._follow(attempt, after))
            case LoadView(attempt=attempt):
                self._begin(self._load(attempt))
            case Drop():
                assert self._attempt is not None, "what is dropped was begun"
                self._attempt.cancel()
            case Adopt():
                self._adopt()
            case GiveUp():
                self._give_up(effect)
            case Deliver():
                return True
        return False

    def _begin(self, work: Coroutine[Any, Any, None]) -> None:
        assert self._group is not None, "the line is started by run() alone"
        self._attempt = self._group.create_task(work)

    def _show(self) -> None:
        state = self._state
        if state.phase == "live":
            self._error = None
        self.connection.set(
            Connection(
                phase=state.phase,
                failures=state.failures,
                next_try_ms=state.wake_ms if state.doing == "pause" else None,
                error=self._error,
            )
        )
        self._tell()

    def _tell(self) -> None:
        """Say what is known for sure by now."""
        state = self._state
        sure = state.phase == "live" and self._view.seq >= self._last_seq
        if sure:
            self.current.set(Current(view=self._view, line=state.attempt, ahead_ms=self._ahead_ms))
        elif self.current.value is not None:
            self.current.set(None)

    def _reads(self, attempt: int) -> bool:
        """Whether the stream of this attempt is still the one that counts."""
        return self._state.attempt == attempt and self._state.doing == "stream"

    async def _load(self, attempt: int) -> None:
        self._asked_ms = self._clock.now_ms()
        try:
            self._fetched = await self._caller.call(
                "get_view", ViewAnswer, params={"session": self._session}, again=False
            )
        except (ClientError, VersionMismatch) as error:
            self._refuse(attempt, error)
            return
        self._feed(
            Loaded(
                attempt=attempt,
                log=self._fetched.log,
                seq=self._fetched.seq,
                ends=self._fetched.view.closed is not None,
                **self._when(),
            )
        )

    async def _follow(self, attempt: int, after: int) -> None:
        decoder = SseDecoder()
        try:
            async with self._caller.stream(
                "follow",
                params={"session": self._session},
                query={"reader": self.reader},
                headers={"last-event-id": str(after)},
            ) as chunks:
                self._feed(Heard(attempt=attempt, **self._when()))
                async for chunk in chunks:
                    self._take(attempt, decoder, chunk)
                    if not self._reads(attempt):
                        return
                decoder.close()
        except (ClientError, VersionMismatch, ProtocolError) as error:
            self._refuse(attempt, error)
        else:
            self._feed(Cut(attempt=attempt, **self._when()))

    def _refuse(self, attempt: int, error: TowlineError) -> None:
        """Tell the link what an exception means."""
        self._error = error
        self._feed(read_error(error, attempt=attempt, **self._when()))

    def _take(self, attempt: int, decoder: SseDecoder, chunk: bytes) -> None:
        """Fold the frames that a chunk completes; the view is shown once for all of them."""
        before = self._view
        self._feed(Heard(attempt=attempt, **self._when()))
        known_retry_ms = decoder.retry
        for sse in decoder.feed(chunk):
            self._frame(attempt, decode_frame(sse.event, sse.data))
            if not self._reads(attempt):
                break
        self._fold(attempt)
        if decoder.retry is not None and decoder.retry != known_retry_ms:
            self._feed(RetrySeen(attempt=attempt, retry_ms=decoder.retry, **self._when()))
        if self._view is not before:
            self._screen.show(self._view)
            self._tell()

    def _frame(self, attempt: int, frame: Frame | Broken) -> None:
        match frame:
            case Envelope(seq=int(seq)):
                ends = isinstance(frame.event, SessionClosed)
                if self._feed(StoredSeen(attempt=attempt, seq=seq, ends=ends, **self._when())):
                    self._unfolded.append(frame)
            case Envelope() | Partial():
                self._unfolded.append(frame)
            case Hello():
                self._greet(frame)
                self._feed(HelloSeen(attempt=attempt, log=frame.log, **self._when()))
            case Gap():
                self._feed(GapSeen(attempt=attempt, **self._when()))
            case Broken():
                self.broken += 1
            case Reset():
                self._feed(ResetSeen(attempt=attempt, retry_ms=frame.retry_ms, **self._when()))
            case SessionRows() | SessionChanged() | SessionRemoved():
                pass  # of the list: a session's own line has no use for them

    def _greet(self, hello: Hello) -> None:
        """Take in what the server says of itself and of the log."""
        self.server_now = hello.now
        self._last_seq = hello.last_seq
        with suppress(ValueError):  # no time: what was known of its clock still counts
            self._ahead_ms = parse_time(hello.now) - self._clock.now_ms()

    def _fold(self, attempt: int) -> None:
        """Fold what has come, all at once: a run of deltas costs its text once."""
        frames, self._unfolded = self._unfolded, []
        view = reduce_all(self._view, frames)
        if view.lost:  # a delta left a hole: the view held stays on show until the new one comes
            frames = self._fold_until_lost(frames)
            self._feed(Lost(attempt=attempt, **self._when()))
        else:
            self._view = view
        whole = True
        for frame in frames:
            if isinstance(frame, Envelope) and isinstance(frame.event, PromptAdmitted):
                self._screen.saw(frame.event.key)
            whole = whole and self.events.put(frame)  # what took the place of one has all of them

    def _fold_until_lost(self, frames: list[Envelope | Partial]) -> list[Envelope | Partial]:
        """Fold one by one up to the hole; gives those before it."""
        folded: list[Envelope | Partial] = []
        for frame in frames:
            view = reduce(self._view, frame)
            if view.lost:
                break
            self._view = view
            folded.append(frame)
        return folded

    def _adopt(self) -> None:
        assert self._fetched is not None, "a view is adopted when it has come"
        first = self._view.seq == 0
        self._view = self._fetched.view
        self._fetched = None
        self._screen.show(self._view, since_ms=self._asked_ms)
        if not first:
            self.events.put(Rebuilt(view=self._view))

    def _give_up(self, effect: GiveUp) -> None:
        error = self._error or ConnectionLost("The line was lost; start it again.")
        fault = error.fault()
        if effect.reason == "unauthorized":
            fault = Fault(
                code="unauthorized",
                message=error.message,
                scope="client.auth",
                details={"attempts": effect.attempts},
            )
        self._screen.show_fault(fault)
        if effect.reason == "gone":
            self._screen.forget()
        for flow in (self.events, self._screen.views):
            flow.end(error)
