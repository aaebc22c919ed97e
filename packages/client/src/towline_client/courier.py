"""Takes what is said in a session to the server, under one key, until it is acknowledged (C4.9)."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

import msgspec

from towline_client.caller import KEY_HEADER, TRY_S, Caller, read_answer
from towline_client.clock import Clock
from towline_client.errors import CommandRejected, ConnectionLost, Unauthorized
from towline_client.options import CallOptions
from towline_client.outbox import LIFE_MS, Entry, TryOutcome, after_try, send, tick
from towline_client.transport import Call, Reply
from towline_protocol import (
    Block,
    OutgoingPrompt,
    PromptAccepted,
    SessionView,
    TowlineError,
    UsageError,
    format_time,
)

__all__ = ["MAX_DRAFTS", "Courier", "Said"]

MAX_DRAFTS: Final = 32
"""Prompts kept that came to nothing, as many as an inbox takes (C6); the oldest goes first."""
BYTES_PER_S: Final = 64 * 1024
"""The slowest line on which a large body may still take its time for one try."""

_T = TypeVar("_T", bound=msgspec.Struct)
_set = msgspec.structs.replace


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """What a prompt on its way is shown as."""

    content: tuple[Block, ...]
    """Its blocks."""
    when: str = "auto"
    """How it asks to run."""


class _Letter:
    """One prompt on its way, or what is left of one."""

    def __init__(self, call: Call, said: Said, entry: Entry, begun: str) -> None:
        self.call = call
        self.said = said
        self.entry = entry
        self.begun = begun
        self.lost = False
        """Whether a try had no answer, so that it may have arrived."""
        self.spent = False
        """Whether the server keeps its no under this key."""
        self.seen = False
        """Whether the log has shown it."""
        self.accepted_ms: int | None = None
        """When the server acknowledged it."""

    @property
    def is_draft(self) -> bool:
        return self.entry.doing == "nothing" and self.entry.state in ("refused", "unknown")

    def show(self) -> OutgoingPrompt:
        entry = self.entry
        return OutgoingPrompt(
            key=entry.key,
            content=self.said.content,
            when=self.said.when,
            state=entry.state,
            message=entry.message or None,
            begun=self.begun,
        )


class Courier:
    """The outbox of one session at work. Whoever says something waits here for the answer.

    There is no task behind it: a command is sent by its caller. A caller that is cancelled, or a
    session that is closed, ends the tries; a prompt is then `unknown`, for it may have arrived.
    """

    def __init__(
        self,
        caller: Caller,
        *,
        clock: Clock,
        wall_ms: Callable[[], int],
    ) -> None:
        """Make an empty outbox.

        Args:
            caller: Sends.
            clock: Times tries and waits.
            wall_ms: Milliseconds since 1970, for people.
        """
        self._caller = caller
        self._clock = clock
        self._wall_ms = wall_ms
        self.on_change: Callable[[], None] = _do_nothing
        """Told when `outgoing` is another."""
        self._letters: dict[str, _Letter] = {}
        self._closing = asyncio.Event()

    @property
    def outgoing(self) -> tuple[OutgoingPrompt, ...]:
        """Prompts that were said here and that the log did not show when it was last looked at."""
        return tuple(letter.show() for letter in self._letters.values())

    async def carry(
        self, call: Call, answer: type[_T], options: CallOptions, said: Said | None = None
    ) -> _T:
        """Send a call until it is acknowledged, and read the answer.

        Args:
            call: What `Caller.prepare` made.
            answer: The type of the answer.
            options: How long to try.
            said: What it is shown as; `None` for what is no prompt.

        Raises:
            ConnectionLost: No answer came in time, or the session was closed; it may have arrived.
            CommandRejected: The server said no.
            Unauthorized: The credential was refused.
            ContractUnavailable: Something else answers at the address.
            UsageError: The session is closed here.
        """
        letter = _Letter(
            call, said or _NOTHING, _begin(call, options), format_time(self._wall_ms())
        )
        if said is not None:
            self._keep(letter)
        return read_answer(call, await self._deliver(letter), answer)

    async def send_again(self, key: str) -> PromptAccepted:
        """Send a prompt that came to nothing once more; raises as `carry` does.

        One that may have arrived goes under its own key, and so counts once. One that was refused
        goes under a fresh key where the server answers a key as it did before (C2.5).
        """
        letter = self._draft(key)
        del self._letters[key]
        if letter.spent:
            letter.call = self._caller.renew(letter.call)
            letter.spent = letter.lost = False
        letter.entry = Entry(key=letter.call.headers[KEY_HEADER])
        self._keep(letter)
        return read_answer(letter.call, await self._deliver(letter), PromptAccepted)

    def drop(self, key: str) -> None:
        """Forget a prompt that came to nothing.

        Raises:
            UsageError: There is none of this key, or it is on its way.
        """
        self._draft(key)
        del self._letters[key]
        self.on_change()

    def settle(self, view: SessionView, *, since_ms: int | None = None) -> None:
        """Take in what the log shows: a prompt that it has is on its way no more.

        Args:
            view: The newest view of the log.
            since_ms: When the view was asked for, if it was fetched whole: whatever had been
                accepted by then is in it, even if it is not shown any more.
        """
        if not self._letters:
            return
        shown = {waiting.key for waiting in view.queue} | {entry.key for entry in view.messages}
        for letter in list(self._letters.values()):
            accepted_ms = letter.accepted_ms
            old = since_ms is not None and accepted_ms is not None and accepted_ms < since_ms
            if letter.entry.key in shown or old:
                self.saw(letter.entry.key)

    def saw(self, key: str | None) -> None:
        """Take in that the log has admitted a prompt of this key."""
        letter = self._letters.get(key or "")
        if letter is None:
            return
        letter.seen = True
        if letter.entry.doing == "nothing":
            del self._letters[letter.entry.key]

    def close(self) -> None:
        """Send nothing more; who waits is told at once, or when the try under way has ended."""
        self._closing.set()

    def _keep(self, letter: _Letter) -> None:
        """Show a prompt from now on, unless one of its key is on its way already."""
        key = letter.entry.key
        held = self._letters.get(key)
        if held is not None and not held.is_draft:
            return
        self._letters.pop(key, None)
        self._letters[key] = letter
        drafts = [key for key, held in self._letters.items() if held.is_draft]
        for key in drafts[:-MAX_DRAFTS]:
            del self._letters[key]

    def _draft(self, key: str) -> _Letter:
        letter = self._letters.get(key)
        if letter is None or not letter.is_draft:
            raise UsageError(
                f"No prompt with the key {key!r} has come to nothing; look at view.outgoing."
            )
        return letter

    async def _deliver(self, letter: _Letter) -> Reply:
        if self._closing.is_set():
            raise UsageError("This session is closed here; open it again to go on.")
        letter.entry = send(letter.entry, self._clock.now_ms())
        self.on_change()
        try:
            return await self._try_until_known(letter)
        finally:
            if letter.entry.doing != "nothing":
                letter.entry = _leave(letter.entry, "It was given up; it may have arrived.")
            if letter.seen and self._letters.get(letter.entry.key) is letter:
                del self._letters[letter.entry.key]
            self.on_change()

    async def _try_until_known(self, letter: _Letter) -> Reply:
        while True:
            try:
                reply = await self._caller.send_renewed(
                    letter.call, lambda: self._try_s(letter), self._closing
                )
            except TowlineError as error:
                self._judge(letter, error)
                await self._pause(letter, error)
            else:
                now_ms = self._clock.now_ms()
                accepted = TryOutcome(kind="accepted")
                letter.entry = after_try(letter.entry, letter.entry.attempt, accepted, now_ms)
                letter.accepted_ms = now_ms
                return reply

    async def _pause(self, letter: _Letter, error: TowlineError) -> None:
        """Wait for the next try; raises the error when there is none."""
        if letter.entry.doing == "pause":
            self.on_change()
            await self._clock.wait(self._closing, letter.entry.wake_ms)
            letter.entry = tick(letter.entry, self._clock.now_ms())
        if self._closing.is_set() or letter.entry.doing != "try":
            raise error

    def _judge(self, letter: _Letter, error: TowlineError) -> None:
        """Take in what a failed try means."""
        entry, now_ms = letter.entry, self._clock.now_ms()
        after_ms = int((error.retry_after_s or 0.0) * 1000)
        kind = "refused"
        match error:
            case ConnectionLost():
                letter.lost = True
                kind = "again"
            # A wait that outlives the command is a no: the server has not taken it.
            case CommandRejected(retry="same_request") if now_ms + after_ms < _end_ms(entry):
                kind = "again"
            case CommandRejected(status=status):
                letter.spent = status < 500 and status not in _NOT_KEPT
            case Unauthorized() if not letter.lost:
                pass
            case _:  # not this server's word on this command
                letter.entry = _leave(entry, error.message, error.code)
                return
        outcome = TryOutcome(kind=kind, code=error.code, message=error.message, after_ms=after_ms)
        letter.entry = after_try(entry, entry.attempt, outcome, now_ms)

    def _try_s(self, letter: _Letter) -> float:
        left_ms = _end_ms(letter.entry) - self._clock.now_ms()
        slow_s = len(letter.call.body or b"") / BYTES_PER_S
        return max(1, min(left_ms, int((TRY_S + slow_s) * 1000))) / 1000


_NOTHING: Final = Said(content=())
_NOT_KEPT: Final = frozenset({401, 425, 429})  # refusals that say nothing of the command (C2.5)


def _do_nothing() -> None:
    pass


def _begin(call: Call, options: CallOptions) -> Entry:
    whole_s = options.get("timeout_s")
    life_ms = LIFE_MS if whole_s is None else max(1, int(whole_s * 1000))
    return Entry(key=call.headers.get(KEY_HEADER, ""), life_ms=life_ms)


def _end_ms(entry: Entry) -> int:
    return entry.begun_ms + entry.life_ms


def _leave(entry: Entry, message: str, code: str | None = None) -> Entry:
    """Nobody tries any more, and what came of it is not known."""
    return _set(entry, state="unknown", doing="nothing", wake_ms=None, code=code, message=message)
