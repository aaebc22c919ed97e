"""What can go wrong between a program and its server.

```
TowlineError                 all that is raised on purpose (towline_protocol, as the next two)
├─ UsageError                called in a way that cannot work
├─ VersionMismatch           the server speaks another major version
└─ ClientError               root of this branch; never raised itself
   ├─ ConnectionLost         no answer, or one that a proxy made up
   ├─ ContractUnavailable    a success that no towline server sent
   ├─ Unauthorized           the credential is missing, wrong or revoked
   ├─ CommandRejected        the server said no; .problem says why
   ├─ CallFailed             raised by a tool of this program, with words for the model
   ├─ TurnUnfinished         a turn that was asked for failed or was stopped
   └─ PersonNeeded           a turn that was asked for waits for a permission or an answer
```
"""

from typing import ClassVar

from towline_protocol import (
    Fault,
    PermissionRequested,
    Problem,
    PromptAccepted,
    QuestionAsked,
    TowlineError,
    UsageError,
    VersionMismatch,
)

__all__ = [
    "CallFailed",
    "ClientError",
    "CommandRejected",
    "ConnectionLost",
    "ContractUnavailable",
    "PersonNeeded",
    "TowlineError",
    "TurnUnfinished",
    "Unauthorized",
    "UsageError",
    "VersionMismatch",
]


class ClientError(TowlineError):
    """The root of all that this package raises on purpose. Never raised itself."""


class ConnectionLost(ClientError):
    """No answer came, or one that a proxy made up; trying again may help (C4.7)."""

    code: ClassVar[str] = "upstream_unavailable"

    def __init__(
        self, message: str, *, status: int | None = None, retry_after_s: float | None = None
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s)
        self.status = status
        """The HTTP status of what came instead of an answer; `None` when nothing came."""


class ContractUnavailable(ClientError):
    """A success without the contract's header: no towline server sent it, so no retry (C2.1).

    `reason` is `missing_header`, `bad_header` or `not_json`.
    """

    code: ClassVar[str] = "capability_unavailable"

    def __init__(self, message: str, *, status: int, reason: str) -> None:
        super().__init__(message, reason=reason)
        self.status = status
        """The HTTP status of that answer."""


class Unauthorized(ClientError):
    """The credential is missing, wrong or revoked (C4.6)."""

    code: ClassVar[str] = "unauthorized"

    def __init__(self, message: str, *, problem: Problem | None = None) -> None:
        super().__init__(
            message,
            scope="client.auth",
            reason=None if problem is None else problem.reason,
            details=None if problem is None else problem.details,
        )
        self.problem = problem
        """The server's own words; `None` when there were none."""


class CommandRejected(ClientError):
    """The server understood and said no. `problem` holds the code and whether to try again.

    `code` of an instance is the problem's own code (C2.3).
    """

    code: ClassVar[str] = "rejected"

    def __init__(self, problem: Problem) -> None:
        super().__init__(
            problem.detail,
            retry_after_s=problem.retry_after_s,
            reason=problem.reason,
            scope=problem.scope,
            details=problem.details,
        )
        self.problem = problem
        """The answer as it came (C2.2)."""
        self.code = problem.code  # pyright: ignore[reportAttributeAccessIssue] - each says its own

    @property
    def retry(self) -> str:
        """`none`, `same_request` or `refresh`: what the server advises."""
        return self.problem.retry

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self.problem.status


class CallFailed(ClientError):
    """Raise it in a tool of your own to tell the model, in these words, what went wrong.

    Of any other exception the model is told the type alone, for its text may hold what is nobody's
    business; the log has all of it.
    """

    code: ClassVar[str] = "tool_failed"


class TurnUnfinished(ClientError):
    """A turn that `Session.ask` waited for failed or was stopped."""

    code: ClassVar[str] = "internal_error"

    def __init__(self, message: str, *, outcome: str, fault: Fault | None = None) -> None:
        super().__init__(message)
        self.outcome = outcome
        """`failed` or `cancelled`."""
        self._fault = fault
        if fault is not None:
            self.code = fault.code  # pyright: ignore[reportAttributeAccessIssue] - the turn's own

    def fault(self) -> Fault:
        """The turn's own fault, when it had one."""
        return self._fault if self._fault is not None else super().fault()


class PersonNeeded(ClientError):
    """A turn that `Session.ask` waited for needs a person, and nothing in this program answers.

    The turn waits at the server until somebody does: `Session.answer` or `answer_question`, then
    `Session.wait_for(error.accepted)`.
    """

    code: ClassVar[str] = "conflict"

    def __init__(
        self,
        accepted: PromptAccepted,
        *,
        permissions: tuple[PermissionRequested, ...] = (),
        questions: tuple[QuestionAsked, ...] = (),
    ) -> None:
        wanted = [f"a permission for {request.title!r}" for request in permissions]
        wanted += [f"an answer to {item.prompt!r}" for each in questions for item in each.items]
        super().__init__(
            f"The turn waits for {', '.join(wanted)}. Answer with session.answer or "
            "session.answer_question, then session.wait_for(error.accepted); or ask with "
            "others_answer=True when somebody does elsewhere."
        )
        self.accepted = accepted
        """The prompt, for `Session.wait_for`."""
        self.permissions = permissions
        """The requests that nobody here answers, oldest first."""
        self.questions = questions
        """The questions that nobody here answers, oldest first."""
