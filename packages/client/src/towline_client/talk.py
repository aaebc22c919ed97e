"""What can be said in a session: its calls, each by name."""

from collections.abc import Mapping, Sequence
from typing import TypeVar, Unpack, cast

import msgspec

from towline_client.caller import Caller
from towline_client.courier import Courier, Said
from towline_client.flow import Latest
from towline_client.options import CallOptions
from towline_client.project import Project
from towline_client.turn_files import TurnFiles
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

__all__ = ["Talk", "to_blocks"]

_T = TypeVar("_T", bound=msgspec.Struct)


class Talk:
    """What can be said in a session; `Session` is this with a line.

    What the contract gives a key is sent until it is acknowledged, under that one key, for two
    minutes or `timeout_s` (C4.9): through lost replies, restarts of the server and its wishes to
    come back later. A call that is cancelled sends nothing more; whether it arrived is then not
    known. All other refusals come out at once.
    """

    def __init__(
        self,
        id: SessionId,  # noqa: A002 - its name
        *,
        reader: str,
        caller: Caller,
        courier: Courier,
        views: Latest[SessionView],
    ) -> None:
        self.id = id
        """The session's id."""
        self.project = Project(id, caller=caller, courier=courier)
        """What its folder offers."""
        self.reader = reader
        """How this line names itself: its calls are claimed by this name."""
        self.files = TurnFiles(id, caller=caller, courier=courier)
        """What its turns did to files, and the way back."""
        self._caller = caller
        self._courier = courier
        self._views = views
        self._answered: set[str] = set()  # requests that the view may show a moment longer

    @property
    def view(self) -> SessionView:
        """The newest view."""
        return self._views.value

    async def prompt(
        self,
        content: str | Sequence[PromptBlock],
        *,
        when: str = "auto",
        limits: Limits | None = None,
        speak: bool = False,
        **options: Unpack[CallOptions],
    ) -> PromptAccepted:
        """Say something; it is durable when this returns.

        Args:
            content: Words, or blocks.
            when: `auto` starts a turn or waits for the running one; `queue`, `steer`, `reject`.
            limits: Bounds of the turn.
            speak: Whether `turn_completed` should say what to read aloud.
            options: With a `key`, the prompt's own: the same key again is the same prompt.

        Raises:
            ConnectionLost: No answer came in two minutes, or `timeout_s`. It may have arrived:
                `view.outgoing` has it as `unknown`, for `send_again` and `drop`.
            CommandRejected: The server said no, such as `gone` for a closed session;
                `view.outgoing` has it as `refused`.
        """
        blocks = to_blocks(content)
        return await self._say(
            "send_prompt",
            PromptAccepted,
            body=SendPrompt(content=blocks, when=when, limits=limits, speak=speak),
            options=options,
            said=Said(content=blocks, when=when),
        )

    async def send_again(self, key: str) -> PromptAccepted:
        """Send a prompt of `view.outgoing` that is `unknown` or `refused` once more.

        An unknown one goes under its own key, so that it counts once. Raises as `prompt` does.

        Raises:
            UsageError: There is none of this key that has come to nothing.
        """
        return await self._courier.send_again(key)

    def drop(self, key: str) -> None:
        """Take a prompt that is `unknown` or `refused` out of `view.outgoing`.

        That does not take it back: an unknown one that has arrived shows in the log.

        Raises:
            UsageError: There is none of this key that has come to nothing.
        """
        self._courier.drop(key)

    async def interrupt(
        self, turn: TurnId | None = None, **options: Unpack[CallOptions]
    ) -> Interrupted:
        """Stop the running turn; it ends with its terminal event.

        Args:
            turn: Only this one. A call that names its turn is sent until it is acknowledged; one
                that does not is sent once, for later another turn may run.
            options: As for any call.

        Raises:
            ConnectionLost: No answer came.
            CommandRejected: There is no such session.
        """
        body = Interrupt(turn=turn)
        if turn is not None:
            return await self._say("interrupt", Interrupted, body=body, options=options)
        params = {"session": self.id}
        return await self._caller.call(
            "interrupt", Interrupted, params=params, body=body, options=options
        )

    async def withdraw(self, prompt: PromptId, **options: Unpack[CallOptions]) -> Withdrawn:
        """Take back a prompt that waits; doing so twice is fine.

        Raises:
            CommandRejected: A turn has taken it (`gone`), or there was never such a prompt.
        """
        params = {"prompt": prompt}
        return await self._say("withdraw_prompt", Withdrawn, params=params, options=options)

    async def resume_queue(self, **options: Unpack[CallOptions]) -> QueueResumed:
        """Run the prompts that a stop holds back."""
        params = {"session": self.id}
        return await self._caller.call("resume_queue", QueueResumed, params=params, options=options)

    async def retry(self, **options: Unpack[CallOptions]) -> PromptAccepted:
        """Undo the last turn and say its prompt again.

        Raises:
            CommandRejected: A turn runs (`conflict`), or none has run so far (`rejected`).
        """
        return await self._say("retry", PromptAccepted, options=options)

    async def resend(
        self,
        turn: TurnId,
        content: str | Sequence[PromptBlock],
        *,
        limits: Limits | None = None,
        speak: bool = False,
        **options: Unpack[CallOptions],
    ) -> PromptAccepted:
        """Go back to before a turn and say something else in its place.

        Args:
            turn: The turn that is undone, with all after it.
            content: Words, or blocks.
            limits: Bounds of the new turn.
            speak: As in `prompt`.

        Raises:
            CommandRejected: A turn runs (`conflict`), there is no such turn, or it was summed up
                or undone already (`rejected`).
        """
        blocks = to_blocks(content)
        return await self._say(
            "resend",
            PromptAccepted,
            params={"turn": turn},
            body=Resend(content=blocks, limits=limits, speak=speak),
            options=options,
            said=Said(content=blocks),
        )

    async def compact(self, **options: Unpack[CallOptions]) -> SessionInfo:
        """Sum the conversation up, to make room; `compacted` or a `notice` tells what came of it.

        Raises:
            CommandRejected: A turn runs (`conflict`), or the session is closed (`gone`).
        """
        params = {"session": self.id}
        return await self._caller.call(
            "compact_session", SessionInfo, params=params, options=options
        )

    async def fork(
        self,
        turn: TurnId | None = None,
        *,
        title: str | None = None,
        **options: Unpack[CallOptions],
    ) -> SessionInfo:
        """Begin a new session that goes on from a turn of this one; `Client.open` takes its id.

        Args:
            turn: The last turn that it has; `None` for the last one that has ended.
            title: Its title; `None` for the one of this session.

        Raises:
            CommandRejected: The turn still runs (`conflict`), or there is none of that id.
        """
        return await self._say(
            "fork_session", SessionInfo, body=ForkSession(turn=turn, title=title), options=options
        )

    async def history(
        self, *, before: int | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> History:
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
        params = {"session": self.id}
        return await self._caller.call(
            "get_history", History, params=params, query=query, options=options
        )

    async def mark_read(self, seq: int | None = None, **options: Unpack[CallOptions]) -> int:
        """Say how far the person has read; gives where the mark stands, which never goes back.

        Args:
            seq: The number of the last event seen; `None` for all of the view.
        """
        body = MarkRead(seq=self.view.seq if seq is None else seq)
        return (await self._say("mark_read", ReadMark, body=body, options=options)).seq

    async def answer(
        self,
        request: PermissionRequested | PermissionId,
        option: str,
        *,
        note: str | None = None,
        **options: Unpack[CallOptions],
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
        answered = await self._say(
            "answer_permission",
            PermissionAnswered,
            params={"permission": found.permission},
            body=AnswerPermission(option=option, digest=found.digest, note=note),
            options=options,
        )
        self._note_answered(found.permission)
        return answered

    async def answer_question(
        self,
        question: QuestionAsked | QuestionId,
        answers: Mapping[str, str | Sequence[str]],
        **options: Unpack[CallOptions],
    ) -> QuestionAnswered:
        """Answer all items of a question.

        Args:
            question: The question, or its id.
            answers: Item id to the id of the option, or to own words where the item takes them;
                to several where it takes several.

        Raises:
            CommandRejected: The answers do not fit, somebody else was first, or it has ended.
        """
        id_ = question.question if isinstance(question, QuestionAsked) else question
        told = {
            item: (said,) if isinstance(said, str) else tuple(said)
            for item, said in answers.items()
        }
        answered = await self._say(
            "answer_question",
            QuestionAnswered,
            params={"question": id_},
            body=AnswerQuestion(answers=told),
            options=options,
        )
        self._note_answered(id_)
        return answered

    async def declare_tools(
        self, *tools: ClientTool, **options: Unpack[CallOptions]
    ) -> ToolsDeclared:
        """Say which tools run here, in place of those said before; counts from the next turn on.

        Args:
            tools: The tools; none to take them back.

        Raises:
            UsageError: Something is no `ClientTool`.
            ConnectionLost: No answer came.
            CommandRejected: A tool does not hold, such as one called as the agent's own.
        """
        for tool in cast("tuple[object, ...]", tools):
            if not isinstance(tool, ClientTool):
                raise UsageError(
                    f"declare_tools takes ClientTool, not {tool!r}; register a function with "
                    "@client.tool, which declares it by itself."
                )
        return await self._say(
            "declare_tools",
            ToolsDeclared,
            body=DeclareTools(reader=self.reader, tools=tools),
            options=options,
        )

    async def claim(self, call: CallId, **options: Unpack[CallOptions]) -> ClientCall:
        """Take a call before running it; note its id first, to find it again after a crash.

        Args:
            call: The call.

        Raises:
            ConnectionLost: No answer came; ask again before you run it.
            CommandRejected: Somebody else has it (`conflict`), or it has ended (`gone`).
        """
        return await self._say(
            "claim_call",
            ClientCall,
            params={"call": call},
            body=ClaimCall(reader=self.reader),
            options=options,
        )

    async def report_progress(
        self,
        call: CallId,
        text: str,
        *,
        fraction: float | None = None,
        **options: Unpack[CallOptions],
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
            options=options,
        )

    async def send_result(
        self,
        call: CallId,
        content: str | Sequence[ClientBlock],
        *,
        is_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> ClientCallEnded:
        """Say what a claimed call came to; it is durable when this returns.

        Args:
            call: The call.
            content: Words, or blocks; a picture with its bytes as base 64, 20 MiB at most.
            is_error: Whether the model is told that it failed.

        Raises:
            ConnectionLost: No answer came; the same result may be sent again.
            CommandRejected: The call is not this client's, has ended, or the result does not hold.
        """
        blocks = (Text(text=content),) if isinstance(content, str) else tuple(content)
        return await self._say(
            "send_result",
            ClientCallEnded,
            params={"call": call},
            body=SendResult(reader=self.reader, content=blocks, is_error=is_error),
            options=options,
        )

    async def _say(
        self,
        name: str,
        answer: type[_T],
        *,
        params: Mapping[str, str] | None = None,
        body: msgspec.Struct | None = None,
        options: CallOptions,
        said: Said | None = None,
    ) -> _T:
        """Say what does no harm twice, until it is acknowledged."""
        call = self._caller.prepare(
            name, params={"session": self.id, **(params or {})}, body=body, options=options
        )
        return await self._courier.carry(call, answer, options, said)

    def _note_answered(self, request: str) -> None:
        view = self.view
        opened = {each.permission for each in view.permissions}
        opened |= {each.question for each in view.questions}
        self._answered = (self._answered & opened) | {request}

    def _open_request(self, permission: PermissionId) -> PermissionRequested:
        for request in self.view.permissions:
            if request.permission == permission:
                return request
        raise UsageError(f"No open permission request {permission!r}; look at view.permissions.")


def to_blocks(content: str | Sequence[PromptBlock]) -> tuple[PromptBlock, ...]:
    """Words or blocks as blocks."""
    return (Text(text=content),) if isinstance(content, str) else tuple(content)
