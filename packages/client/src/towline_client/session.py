"""One session as a program holds it."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence

from towline_client.caller import Caller
from towline_client.errors import ConnectionLost, TurnUnfinished
from towline_client.flow import Latest
from towline_client.outcome import PromptWatch, follow_prompt
from towline_client.pump import Connection, Pump, SessionEvent
from towline_protocol import (
    AnswerPermission,
    AnswerQuestion,
    CallId,
    ClaimCall,
    ClientBlock,
    ClientCall,
    ClientCallEnded,
    ClientTool,
    DeclareTools,
    ForkSession,
    History,
    Interrupt,
    Interrupted,
    Limits,
    MarkRead,
    PermissionAnswered,
    PermissionId,
    PermissionRequested,
    PromptAccepted,
    PromptBlock,
    PromptId,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    QueueResumed,
    ReadMark,
    ReportProgress,
    Resend,
    SendPrompt,
    SendResult,
    SessionId,
    SessionInfo,
    SessionView,
    Text,
    ToolsDeclared,
    TurnId,
    UsageError,
    Withdrawn,
)

__all__ = ["Session", "to_blocks"]


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
    def reader(self) -> str:
        """How this line names itself: its calls are claimed by this name."""
        return self._pump.reader

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

    async def withdraw(self, prompt: PromptId) -> Withdrawn:
        """Take back a prompt that waits; doing so twice is fine.

        Raises:
            CommandRejected: A turn has taken it (`gone`), or there was never such a prompt.
        """
        params = {"session": self.id, "prompt": prompt}
        return await self._caller.call("withdraw_prompt", Withdrawn, params=params)

    async def resume_queue(self) -> QueueResumed:
        """Run the prompts that a stop holds back."""
        return await self._caller.call("resume_queue", QueueResumed, params={"session": self.id})

    async def retry(self, *, key: str | None = None) -> PromptAccepted:
        """Undo the last turn and say its prompt again.

        Args:
            key: The prompt's own key, as that of `prompt`.

        Raises:
            CommandRejected: A turn runs (`conflict`), or none has run so far (`rejected`).
        """
        return await self._caller.call(
            "retry", PromptAccepted, params={"session": self.id}, key=key
        )

    async def resend(
        self,
        turn: TurnId,
        content: str | Sequence[PromptBlock],
        *,
        limits: Limits | None = None,
        speak: bool = False,
        key: str | None = None,
    ) -> PromptAccepted:
        """Go back to before a turn and say something else in its place.

        Args:
            turn: The turn that is undone, with all after it.
            content: Words, or blocks.
            limits: Bounds of the new turn.
            speak: As in `prompt`.
            key: The prompt's own key, as that of `prompt`.

        Raises:
            CommandRejected: A turn runs (`conflict`), there is no such turn, or it was summed up
                or undone already (`rejected`).
        """
        return await self._caller.call(
            "resend",
            PromptAccepted,
            params={"session": self.id, "turn": turn},
            body=Resend(content=to_blocks(content), limits=limits, speak=speak),
            key=key,
        )

    async def compact(self) -> SessionInfo:
        """Sum the conversation up, to make room; `compacted` or a `notice` tells what came of it.

        Raises:
            CommandRejected: A turn runs (`conflict`), or the session is closed (`gone`).
        """
        return await self._caller.call("compact_session", SessionInfo, params={"session": self.id})

    async def fork(
        self, turn: TurnId | None = None, *, title: str | None = None, key: str | None = None
    ) -> SessionInfo:
        """Begin a new session that goes on from a turn of this one; `Client.open` takes its id.

        Args:
            turn: The last turn that it has; `None` for the last one that has ended.
            title: Its title; `None` for the one of this session.
            key: The same key again gives the same session.

        Raises:
            CommandRejected: The turn still runs (`conflict`), or there is none of that id.
        """
        return await self._caller.call(
            "fork_session",
            SessionInfo,
            params={"session": self.id},
            body=ForkSession(turn=turn, title=title),
            key=key,
        )

    async def history(self, *, before: int | None = None, limit: int | None = None) -> History:
        """A page of messages that are older than those of the view, oldest first.

        Args:
            before: The `seq` of the first message held, or the `next` of the page before; `None`
                for the view's first one.
            limit: About how many messages, 100 at most; `None` for the server's own number.
        """
        if before is None and self.view.messages:
            before = self.view.messages[0].seq
        asked = {"before": before, "limit": limit}
        query = {name: str(value) for name, value in asked.items() if value is not None}
        return await self._caller.call(
            "get_history", History, params={"session": self.id}, query=query
        )

    async def mark_read(self, seq: int | None = None) -> int:
        """Say how far the person has read; gives where the mark stands, which never goes back.

        Args:
            seq: The number of the last event seen; `None` for all of the view.
        """
        body = MarkRead(seq=self.view.seq if seq is None else seq)
        params = {"session": self.id}
        return (await self._caller.call("mark_read", ReadMark, params=params, body=body)).seq

    async def answer(
        self,
        request: PermissionRequested | PermissionId,
        option: str,
        *,
        note: str | None = None,
        key: str | None = None,
    ) -> PermissionAnswered:
        """Decide a permission request; its digest is recited as it came (C5.11).

        Args:
            request: The request, or the id of one that is open in the view.
            option: The id of one of its options.
            note: Words for the model.
            key: The same key again is the same answer.

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
            key=key,
        )

    async def answer_question(
        self,
        question: QuestionAsked | QuestionId,
        answers: Mapping[str, str | Sequence[str]],
        *,
        key: str | None = None,
    ) -> QuestionAnswered:
        """Answer all items of a question.

        Args:
            question: The question, or its id.
            answers: Item id to the id of the option, or to own words where the item takes them;
                to several where it takes several.
            key: The same key again is the same answer.

        Raises:
            CommandRejected: The answers do not fit, somebody else was first, or it has ended.
        """
        id_ = question.question if isinstance(question, QuestionAsked) else question
        told = {
            item: (said,) if isinstance(said, str) else tuple(said)
            for item, said in answers.items()
        }
        return await self._caller.call(
            "answer_question",
            QuestionAnswered,
            params={"session": self.id, "question": id_},
            body=AnswerQuestion(answers=told),
            key=key,
        )

    async def declare_tools(self, *tools: ClientTool, key: str | None = None) -> ToolsDeclared:
        """Say which tools run here, in place of those said before; counts from the next turn on.

        Args:
            tools: The tools; none to take them back.
            key: The same key again is the same declaration.

        Raises:
            ConnectionLost: No answer came.
            CommandRejected: A tool does not hold, such as one called as the agent's own.
        """
        return await self._caller.call(
            "declare_tools",
            ToolsDeclared,
            params={"session": self.id},
            body=DeclareTools(reader=self.reader, tools=tools),
            key=key,
        )

    async def claim(self, call: CallId, *, key: str | None = None) -> ClientCall:
        """Take a call before running it; note its id first, to find it again after a crash.

        Args:
            call: The call.
            key: The same key again is the same claim.

        Raises:
            ConnectionLost: No answer came; ask again before you run it.
            CommandRejected: Somebody else has it (`conflict`), or it has ended (`gone`).
        """
        return await self._caller.call(
            "claim_call",
            ClientCall,
            params={"session": self.id, "call": call},
            body=ClaimCall(reader=self.reader),
            key=key,
        )

    async def report_progress(
        self, call: CallId, text: str, *, fraction: float | None = None
    ) -> None:
        """Show how far a claimed call is.

        Args:
            call: The call.
            text: One line.
            fraction: From 0 to 1.

        Raises:
            ConnectionLost: No answer came.
            CommandRejected: The call is not this client's, or has ended.
        """
        await self._caller.tell(
            "report_progress",
            params={"session": self.id, "call": call},
            body=ReportProgress(reader=self.reader, text=text, fraction=fraction),
        )

    async def send_result(
        self,
        call: CallId,
        content: str | Sequence[ClientBlock],
        *,
        is_error: bool = False,
        key: str | None = None,
    ) -> ClientCallEnded:
        """Say what a claimed call came to; it is durable when this returns.

        Args:
            call: The call.
            content: Words, or blocks; a picture with its bytes as base 64, 20 MiB at most.
            is_error: Whether the model is told that it failed.
            key: The same key again is the same result.

        Raises:
            ConnectionLost: No answer came; the same result may be sent again.
            CommandRejected: The call is not this client's, has ended, or the result does not hold.
        """
        blocks = (Text(text=content),) if isinstance(content, str) else tuple(content)
        return await self._caller.call(
            "send_result",
            ClientCallEnded,
            params={"session": self.id, "call": call},
            body=SendResult(reader=self.reader, content=blocks, is_error=is_error),
            key=key,
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
