"""`/undo` and `/diff` of the plain chat: what turns did to files, and the way back."""

from itertools import islice
from typing import Final

from towline.cli.visible import show_line, show_visible
from towline_client import Session
from towline_protocol import FileChange, SessionView, TurnDiff, TurnId, TurnReverted, UsageError

__all__ = ["SKIP", "last_turn", "show_diff", "undo"]

SKIP: Final = "skip"
"""The word behind `/undo` that leaves alone what others have changed, and undoes the rest."""

_LINES: Final = 400
"""Lines of a diff that are shown; a longer one is for another program."""
_CONFLICTS: Final = 20


def last_turn(view: SessionView) -> TurnId | None:
    """The newest turn that the conversation still has."""
    for entry in reversed(view.messages):
        if entry.role == "user" and not entry.undone:
            return entry.turn
    return None


async def undo(session: Session, words: str) -> str | None:
    """Undo the last turn, its files and what was said; `None` where events tell of it.

    Raises:
        UsageError: There is no such way to undo.
        CommandRejected: A turn runs, or it was summed up.
    """
    if words not in ("", SKIP):
        raise UsageError(f"/undo takes nothing but the word {SKIP!r}, not {words[:20]!r}.")
    turn = last_turn(session.view)
    if turn is None:
        return "Nothing is there to undo."
    done = await session.files.revert(turn, skip_conflicts=words == SKIP, conversation=True)
    return _say(done)


async def show_diff(session: Session) -> str:
    """What the last turn did to files.

    Raises:
        CommandRejected: It cannot be read.
    """
    turn = last_turn(session.view)
    if turn is None:
        return "No turn has run here."
    found = await session.files.diff(turn)
    if not found.changes:
        return "The last turn changed no files."
    return _cut(found)


def _say(done: TurnReverted) -> str | None:
    if not done.conversation:
        lines = ["Nothing was undone, for somebody has changed since:"]
        lines += [
            f"  {show_line(conflict.path)}: {show_line(conflict.what)}"
            for conflict in done.conflicts[:_CONFLICTS]
        ]
        if len(done.conflicts) > _CONFLICTS:
            lines.append(f"  … and {len(done.conflicts) - _CONFLICTS} more")
        lines.append(f"/undo {SKIP} leaves these alone and undoes the rest.")
        return "\n".join(lines)
    if done.reverted or not done.unkept:
        return None  # events tell of it
    return "\n".join(f"not undone: {show_line(words)}" for words in done.unkept)


def _cut(found: TurnDiff) -> str:
    lines = [line for change in found.changes for line in _lines(change)]
    shown = list(islice(lines, _LINES))
    if len(lines) > _LINES:
        shown.append(f"… {len(lines) - _LINES} more lines")
    if found.next is not None:
        shown.append("… and more files")
    return "\n".join(shown)


def _lines(change: FileChange) -> list[str]:
    head = f"{change.kind} {show_line(change.path)}"
    diff = show_visible(change.diff or "").splitlines()
    return [head, *diff, *(["… this file's diff is longer"] if change.truncated else [])]
