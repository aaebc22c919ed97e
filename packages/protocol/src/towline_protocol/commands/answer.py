"""How people and clients answer what a turn asks."""

from towline_protocol.commands.body import Body

__all__ = ["AnswerPermission", "PermissionAnswered"]


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
