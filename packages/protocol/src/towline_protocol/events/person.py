"""What concerns a person: permissions, questions, the plan, notices."""

from towline_protocol.events.data import Data, EventData
from towline_protocol.events.tool import Preview
from towline_protocol.ids import CallId, PermissionId, QuestionId
from towline_protocol.permissions import Option

__all__ = [
    "Notice",
    "PermissionRequested",
    "PermissionResolved",
    "QuestionAsked",
    "QuestionItem",
    "QuestionResolved",
    "Todo",
    "TodosUpdated",
]


class PermissionRequested(EventData, frozen=True, kw_only=True, tag="permission_requested"):
    """A call waits for a person. The same id again replaces the request (C5.8)."""

    permission: PermissionId
    """Its id."""
    call: CallId
    """The call that waits."""
    tool: str
    """The tool's name."""
    title: str
    """One line for a person."""
    preview: Preview
    """What would happen."""
    digest: str
    """Binds the answer to exactly this call; recited with it (C5.11)."""
    options: tuple[Option, ...]
    """What may be answered."""
    reason: str | None = None
    """What made the gate ask (A5.69)."""
    expires_at: str
    """RFC 3339 server time; then it is denied."""


class PermissionResolved(EventData, frozen=True, kw_only=True, tag="permission_resolved"):
    """A request was answered, once, for all devices."""

    permission: PermissionId
    """Its id."""
    option: str
    """The option's id."""
    by: str
    """Who answered, or `deadline`, `cancel`."""
    note: str | None = None
    """Words for the model."""


class QuestionItem(Data, frozen=True, kw_only=True):
    """One question of a set."""

    id: str
    """Its id within the set."""
    prompt: str
    """What is asked."""
    options: tuple[Option, ...] = ()
    """What may be chosen."""
    multiple: bool = False
    """Whether several may be chosen."""
    free_text: bool = False
    """Whether own words may be given."""


class QuestionAsked(EventData, frozen=True, kw_only=True, tag="question_asked"):
    """The agent asks the person. The same id again replaces the question."""

    question: QuestionId
    """Its id."""
    items: tuple[QuestionItem, ...]
    """What is asked."""
    expires_at: str | None = None
    """RFC 3339 server time; `None` while somebody is attached."""


class QuestionResolved(EventData, frozen=True, kw_only=True, tag="question_resolved"):
    """The question was answered, once."""

    question: QuestionId
    """Its id."""
    answers: dict[str, tuple[str, ...]]
    """Answers by item id."""
    by: str
    """Who answered, or `deadline`, `cancel`."""


class Todo(Data, frozen=True, kw_only=True):
    """One line of the agent's plan."""

    id: str
    """Its id."""
    content: str
    """What is to do."""
    status: str
    """`pending`, `in_progress` or `completed`."""


class TodosUpdated(EventData, frozen=True, kw_only=True, tag="todos_updated"):
    """The agent's plan, whole."""

    todos: tuple[Todo, ...]
    """All lines."""


class Notice(EventData, frozen=True, kw_only=True, tag="notice"):
    """Something worth a line, that ends nothing."""

    code: str
    """A word for programs."""
    message: str
    """A sentence for people."""
    scope: str = "turn"
    """`turn` or `session`."""
