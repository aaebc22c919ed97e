"""What turns did to files, and how to go back to before them."""

from towline_protocol.commands.body import Body
from towline_protocol.events import FileChange, FileConflict
from towline_protocol.ids import TurnId

__all__ = ["Checkpoint", "CheckpointList", "RevertTurn", "TurnDiff", "TurnReverted"]


class Checkpoint(Body, frozen=True, kw_only=True):
    """A turn that files can go back to before."""

    turn: TurnId
    """The turn."""
    time: str
    """RFC 3339 time of its first change."""
    files: int
    """Paths that it changed and that were not put back since."""
    unkept: tuple[str, ...] = ()
    """What it did that cannot be undone, such as what commands did, a sentence each."""


class CheckpointList(Body, frozen=True, kw_only=True):
    """One page, newest first."""

    checkpoints: tuple[Checkpoint, ...]
    """The turns; those that left all files alone are none."""
    next: str | None = None
    """`after` for the next page; `None` at the end."""


class TurnDiff(Body, frozen=True, kw_only=True):
    """What a turn did to files: one page, by path."""

    turn: TurnId
    """The turn."""
    changes: tuple[FileChange, ...]
    """From before its first touch to after its last one; a folder's path ends with `/`. Also what
    was put back since."""
    next: str | None = None
    """`after` for the next page; `None` at the end."""


class RevertTurn(Body, frozen=True, kw_only=True):
    """Put files back to what they were before a turn, this one and all later ones undone."""

    skip_conflicts: bool = False
    """Whether to put back the others when somebody has changed some since; else nothing is."""
    conversation: bool = False
    """Whether the conversation goes back as well."""


class TurnReverted(Body, frozen=True, kw_only=True):
    """What was put back."""

    turn: TurnId
    """The first turn that is undone."""
    reverted: tuple[str, ...] = ()
    """The paths that were put back, or went."""
    conflicts: tuple[FileConflict, ...] = ()
    """The paths that somebody has changed since. Without `skip_conflicts` even one of them keeps
    everything as it is, the conversation too."""
    unkept: tuple[str, ...] = ()
    """What could not be undone, a sentence each."""
    conversation: bool = False
    """Whether the conversation went back."""
