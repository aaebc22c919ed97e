"""How people and clients answer what a turn asks."""

from towline_protocol.commands.body import Body

__all__ = ["AnswerPermission", "AnswerQuestion", "PermissionAnswered", "QuestionAnswered"]


class AnswerPermission(Body, frozen=True, kw_only=True):
    """A person's decision."""

    option: str
    """The id of one offered option."""
    digest: str
    """The request's digest, recited."""
    note: str | None = None
    """Words for the model."""


class PermissionAnswered(Body, frozen=True, kw_only=True):
    """The decision stands."""

    option: str
    """The option that was taken."""


class AnswerQuestion(Body, frozen=True, kw_only=True):
    """A person's answers, to all items at once."""

    answers: dict[str, tuple[str, ...]]
    """Item id to what was chosen: ids of its options, and own words where it takes them. None at
    all leaves the whole question to the agent."""


class QuestionAnswered(Body, frozen=True, kw_only=True):
    """The answers stand."""

    answers: dict[str, tuple[str, ...]]
    """The answers that were taken, by item id."""
