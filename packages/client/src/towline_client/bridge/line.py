"""What a bridge says to the server."""

from collections.abc import Mapping, Sequence
from typing import Protocol, Unpack

from towline_client.options import CallOptions
from towline_protocol import (
    CallId,
    ClientBlock,
    ClientCall,
    ClientCallEnded,
    ClientTool,
    PermissionAnswered,
    PermissionRequested,
    QuestionAnswered,
    QuestionAsked,
    SessionId,
    ToolsDeclared,
)

__all__ = ["Line"]


class Line(Protocol):
    """A session's own calls, as `Talk` has them: sent under one key until acknowledged."""

    id: SessionId
    """The session's id."""
    reader: str
    """How the line names itself."""

    async def declare_tools(
        self, *tools: ClientTool, **options: Unpack[CallOptions]
    ) -> ToolsDeclared:
        """Say which tools run here."""
        ...

    async def claim(self, call: CallId, **options: Unpack[CallOptions]) -> ClientCall:
        """Take a call."""
        ...

    async def report_progress(
        self,
        call: CallId,
        text: str,
        *,
        fraction: float | None = None,
        **options: Unpack[CallOptions],
    ) -> None:
        """Show how far a call is."""
        ...

    async def send_result(
        self,
        call: CallId,
        content: str | Sequence[ClientBlock],
        *,
        is_error: bool = False,
        **options: Unpack[CallOptions],
    ) -> ClientCallEnded:
        """Say what a call came to."""
        ...

    async def answer(
        self,
        request: PermissionRequested,
        option: str,
        *,
        note: str | None = None,
        **options: Unpack[CallOptions],
    ) -> PermissionAnswered:
        """Decide a permission request."""
        ...

    async def answer_question(
        self,
        question: QuestionAsked,
        answers: Mapping[str, str | Sequence[str]],
        **options: Unpack[CallOptions],
    ) -> QuestionAnswered:
        """Answer a question."""
        ...
