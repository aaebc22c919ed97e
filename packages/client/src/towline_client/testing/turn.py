"""What a script plays a turn with."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from towline_client.testing.log import ScriptedSession, time_at
from towline_protocol import (
    DENY,
    CallId,
    CallView,
    ClientCallOffered,
    Event,
    MessageEnded,
    MessageId,
    MessageStarted,
    Option,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    QuestionAsked,
    QuestionId,
    QuestionItem,
    QuestionResolved,
    Text,
    TextDelta,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnId,
)

__all__ = ["Answers", "Script", "ScriptedTurn"]

Answers = dict[str, tuple[str, ...]]
"""What a person answers, by item id."""

_OPTIONS: Final = (
    Option(id="allow_once", label="Allow once"),
    Option(id="allow_session", label="Allow for this session", rule="run_program: make test"),
    Option(id=DENY, label="Deny"),
)


class ScriptedTurn:
    """What a script plays with: one turn of a session."""

    def __init__(
        self,
        session: ScriptedSession,
        turn: TurnId,
        *,
        mint: Callable[[str], str],
        expect: Callable[[str], Awaitable[Any]],
    ) -> None:
        """Make it playable; nothing is emitted yet.

        Args:
            session: The session it runs in.
            turn: Its id.
            mint: Makes ids.
            expect: Gives what people or clients answer to the thing of an id.
        """
        self.session = session
        """The session it runs in."""
        self.id = turn
        """Its id."""
        self._mint = mint
        self._expect = expect

    def emit(self, event: Event) -> None:
        """Any event of this turn."""
        self.session.emit(event, self.id)

    async def say(self, *pieces: str) -> None:
        """A message, written piece by piece."""
        message = MessageId(self._mint("msg"))
        self.emit(MessageStarted(message=message, role="assistant"))
        at = 0
        for piece in pieces:
            await asyncio.sleep(0)
            self.emit(TextDelta(message=message, block=0, at=at, text=piece))
            at += len(piece)
        self.emit(MessageEnded(message=message, content=(Text(text="".join(pieces)),)))

    async def ask(
        self, tool: str, title: str, *, preview: Preview, effect: str = "exec"
    ) -> tuple[CallId, str]:
        """Propose a call and wait for a person.

        Returns:
            The call and the option taken.
        """
        call = self.propose(tool, title, preview=preview, effect=effect)
        request = PermissionRequested(
            permission=PermissionId(self._mint("prm")),
            call=call,
            tool=tool,
            title=title,
            preview=preview,
            digest=f"digest of {call}",
            options=_OPTIONS,
            reason="the script says so",
            expires_at=time_at(9000),
        )
        answered = self._expect(request.permission)
        self.emit(request)
        option: str = await answered
        self.emit(PermissionResolved(permission=request.permission, option=option, by="me"))
        return call, option

    async def question(self, *items: QuestionItem) -> Answers:
        """Ask a person and wait for the answers."""
        asked = QuestionAsked(question=QuestionId(self._mint("qst")), items=items)
        told = self._expect(asked.question)
        self.emit(asked)
        answers: Answers = await told
        self.emit(QuestionResolved(question=asked.question, answers=answers, by="me"))
        return answers

    async def call_client(
        self,
        tool: str,
        title: str,
        *,
        arguments: str = "{}",
        arguments_file: str | None = None,
    ) -> CallView:
        """Offer a call to the session's clients and wait for its result (C5.12).

        Args:
            tool: The tool.
            title: One line.
            arguments: JSON text.
            arguments_file: The hash of a file with all of it, when that is only a part.

        Returns:
            The call as it ended; its `content` is what the client answered.
        """
        call = self.propose(
            tool, title, effect="write", arguments=arguments, arguments_file=arguments_file
        )
        ended = self._expect(call)
        self.emit(ClientCallOffered(call=call, expires_at=time_at(9000)))
        found: CallView = await ended
        return found

    def propose(
        self,
        tool: str,
        title: str,
        *,
        preview: Preview | None = None,
        effect: str = "exec",
        arguments: str = "{}",
        arguments_file: str | None = None,
    ) -> CallId:
        """Propose a call, in a message of its own."""
        call = CallId(self._mint("call"))
        message = MessageId(self._mint("msg"))
        self.emit(MessageStarted(message=message, role="assistant"))
        asked = ToolCall(id=call, name=tool, arguments=arguments)
        self.emit(MessageEnded(message=message, content=(asked,)))
        self.emit(
            ToolProposed(
                call=call,
                tool=tool,
                arguments=arguments,
                title=title,
                effect=effect,
                preview=preview,
                arguments_file=arguments_file,
            )
        )
        return call

    def end_call(
        self, call: CallId, output: str, *, status: str = "completed", duration_ms: int = 1200
    ) -> None:
        """Start a call, unless it was denied, and end it."""
        if status != "denied":
            self.emit(ToolStarted(call=call))
        self.emit(
            ToolEnded(
                call=call,
                status=status,
                content=(Text(text=output),),
                is_error=status != "completed",
                duration_ms=duration_ms,
            )
        )


Script = Callable[[ScriptedTurn, str], Awaitable[None]]
"""Plays one turn: gets the turn and the prompt's words. When it returns, the turn is completed."""
