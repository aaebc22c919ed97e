"""One session as a program holds it."""

import asyncio
from collections.abc import AsyncIterator, Sequence

import msgspec

from towline_client.caller import Caller
from towline_client.errors import ConnectionLost, TurnUnfinished
from towline_client.flow import Latest
from towline_client.pump import Connection, Pump, SessionEvent
from towline_protocol import (
    AnswerPermission,
    Fault,
    Interrupt,
    Interrupted,
    Limits,
    PermissionAnswered,
    PermissionId,
    PermissionRequested,
    PromptAccepted,
    PromptBlock,
    PromptId,
    SendPrompt,
    SessionId,
    SessionView,
    Text,
    TurnId,
    UsageError,
    block_text,
)

__all__ = ["Outcome", "PromptWatch", "Session", "follow_prompt", "to_blocks"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the turn of a prompt ended."""

    kind: str
    """`completed`, `failed`, `cancelled`, or `withdrawn` for a prompt that never ran."""
    text: str = ""
    """The last text of the turn."""
    fault: Fault | None = None
    """What went wrong, when it failed."""


class PromptWatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a prompt on its way; see `follow_prompt`."""

    prompt: PromptId
    """The prompt."""
    turn: TurnId | None = None
    """The turn it went into, once known."""
    queued: bool = False
    """Whether it was seen waiting."""


class Session:
    """A durable conversation and the line to it. `Client.open` makes it; close it when done.

    The line reconnects by itself; commands do not wait for it. What a flow gives:

    - `events`: each stored event once, in order, deltas as they come, and a `Rebuilt` where events
      are missing. For one reader; what it has not read yet waits.
    - `views`: the newest view; a slow reader skips older ones. For any number of readers.
    - `connection`: how the line is. For any number of readers.

    All three end when the session is closed; `events` and `views` raise what made the line give up.
    """

    def __init__(self, id: SessionId, caller: Caller, pump: Pump) -> None:  # noqa: A002 - its name
        self.id = id
        """The session's id."""
        self._caller = caller
        self._pump = pump
        self._task = asyncio.create_task(pump.run(), name=f"line of {id}")

    @property
    def closed(self) -> bool:
        """Whether the line is over: closed here, or the session's end was read."""
        return self._task.done()

    @property
    def view(self) -> SessionView:
        """The newest view."""
        return self._pump.views.value

    @property
    def views(self) -> AsyncIterator[SessionView]:
        """The view as it stands, then each newer one."""
        return aiter(self._pump.views)

    @property
    def events(self) -> AsyncIterator[SessionEvent]:
        """What happened since the session was opened here, in order."""
        return aiter(self._pump.events)

    @property
    def connection(self) -> Latest[Connection]:
        """The line: `.value` is how it is now, iterating gives each change."""
        return self._pump.connection

    @property
    def broken(self) -> int:
        """Frames that could not be read and were skipped (C1.11)."""
        return self._pump.broken

    @property
    def server_now(self) -> str | None:
        """The server's clock when the line last came up; deadlines run in server time."""
        return self._pump.server_now

    async def prompt(
        self,
        content: str | Sequence[PromptBlock],
        *,
        when: str = "auto",
        limits: Limits | None = None,
        speak: bool = False,
        key: str | None = None,
    ) -> PromptAccepted:
        """Say something; it is durable when this returns.

        Args:
            content: Words, or blocks.
            when: `auto` starts a turn or waits for the running one; `queue`, `steer`, `reject`.
            limits: Bounds of the turn.
            speak: Whether `turn_completed` should say what to read aloud.
            key: The prompt's own key; one is minted. The same key again is the same prompt.

        Raises:
            ConnectionLost: No answer came, after a few tries under the same key.
            CommandRejected: The server said no, such as `gone` for a closed session.
        """
        return await self._caller.call(
            "send_prompt",
            PromptAccepted,
            params={"session": self.id},
            body=SendPrompt(content=to_blocks(content), when=when, limits=limits, speak=speak),
            key=key,
        )

    async def interrupt(self, turn: TurnId | None = None) -> Interrupted:
        """Stop the running turn, or only this one. The turn ends with its terminal event."""
        return await self._caller.call(
            "interrupt",
            Interrupted,
            params={"session": self.id},
            body=Interrupt(turn=turn),
        )

    async def answer(
        self,
        request: PermissionRequested | PermissionId,
        option: str,
        *,
        note: str | None = None,
    ) -> PermissionAnswered:
        """Decide a permission request; its digest is recited as it came (C5.11).

        Args:
            request: The request, or the id of one that is open in the view.
            option: The id of one of its options.
            note: Words for the model.

        Raises:
            UsageError: No such request is open.
            CommandRejected: Somebody else was first, or it has expired.
        """
        found = request if isinstance(request, PermissionRequested) else self._open_request(request)
        return await self._caller.call(
            "answer_permission",
            PermissionAnswered,
            params={"session": self.id, "permission": found.permission},
            body=AnswerPermission(option=option, digest=found.digest, note=note),
        )

    async def ask(self, text: str, *, limits: Limits | None = None) -> str:
        """Say something, wait for the turn's end and return its last text.

        Raises:
            TurnUnfinished: The turn failed or was stopped; the message says why.
            ClientError: The prompt was refused, or the line was given up.
        """
        accepted = await self.prompt(text, limits=limits)
        watch = PromptWatch(prompt=accepted.prompt, turn=accepted.turn)
        async for view in self.views:
            watch, outcome = follow_prompt(watch, view)
            if outcome is None:
                continue
            if outcome.kind == "completed":
                return outcome.text
            why = outcome.fault.message if outcome.fault is not None else outcome.text
            raise TurnUnfinished(
                f"The turn was {outcome.kind}: {why}", outcome=outcome.kind, fault=outcome.fault
            )
        raise ConnectionLost("The session was closed before the turn ended; open it again.")

    def start(self) -> None:
        """Take the line up again, after `stop` or after it was given up. Idempotent."""
        self._pump.start()

    def stop(self) -> None:
        """Do without the line for a while, as in the background; nothing is lost. Idempotent."""
        self._pump.stop()

    async def close(self) -> None:
        """Let go of the line; the session itself lives on. Idempotent.

        A bug in the line comes out here, unless a flow has raised it already.
        """
        self._pump.close()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()

    def _open_request(self, permission: PermissionId) -> PermissionRequested:
        for request in self.view.permissions:
            if request.permission == permission:
                return request
        raise UsageError(f"No open permission request {permission!r}; look at view.permissions.")


def to_blocks(content: str | Sequence[PromptBlock]) -> tuple[PromptBlock, ...]:
    """Words or blocks as blocks."""
    return (Text(text=content),) if isinstance(content, str) else tuple(content)


def follow_prompt(watch: PromptWatch, view: SessionView) -> tuple[PromptWatch, Outcome | None]:
    """What a newer view says of a prompt; `None` while its turn has not ended.

    Pure. Give back the watch with each view; a view may be skipped.
    """
    queued = any(waiting.prompt == watch.prompt for waiting in view.queue)
    turn = watch.turn
    for entry in view.messages:
        if entry.id == watch.prompt and entry.role == "user":
            turn = entry.turn
    if turn is None:
        if watch.queued and not queued:
            return watch, Outcome(kind="withdrawn", text="the prompt was taken back")
        return msgspec.structs.replace(watch, queued=queued), None
    return msgspec.structs.replace(watch, turn=turn), _read_end(view, turn)


def _read_end(view: SessionView, turn: TurnId) -> Outcome | None:
    last = view.last_turn
    # Ids sort by time and one turn runs at a time: a later turn means that this one is over.
    if last is None or last.id < turn:
        return None
    said = ""
    for entry in view.messages:
        if entry.turn != turn:
            continue
        if entry.mark is not None and entry.mark.kind == "turn_failed":
            return Outcome(kind="failed", text=entry.mark.text, fault=entry.mark.fault)
        if entry.mark is not None and entry.mark.kind == "turn_cancelled":
            return Outcome(kind="cancelled", text=entry.mark.text)
        if entry.role == "assistant":
            said = block_text(entry.content) or said
    return Outcome(kind="completed", text=said)
