"""What a person can do in a plain chat beside talking: the commands behind a slash, as a table."""

from collections.abc import Awaitable, Callable, Iterable, Iterator
from typing import Final

import msgspec

from towline.cli.undo import SKIP, show_diff, undo
from towline_client import Client, Session
from towline_protocol import PromptAccepted, QueueResumed, SessionInfo, UpdateSession, UsageError

__all__ = ["COMMANDS", "HELP", "LISTED", "Came", "Command", "find_command", "list_lines"]

LISTED: Final = 20
"""Sessions that `/sessions` lists: what fits a screen."""

Came = PromptAccepted | QueueResumed | SessionInfo | str | None
"""What comes of a command: a prompt to follow, a queue that runs again, a session to go on with,
words to say; `None` where an event tells it."""


class Command(msgspec.Struct, frozen=True):
    """One command."""

    name: str
    """What is typed, with its slash."""
    about: str
    """What it does, for the list of them."""
    call: Callable[[Client, Session, str], Awaitable[Came]] | None = None
    """Its one request to the server, with what stands behind its name; `None` for what the chat
    does by itself."""
    takes: str = ""
    """What must stand behind its name, or may when it is in brackets; empty for nothing."""


async def _retry(client: Client, session: Session, words: str) -> Came:
    del client, words
    return await session.retry()


async def _undo(client: Client, session: Session, words: str) -> Came:
    del client
    return await undo(session, words)


async def _diff(client: Client, session: Session, words: str) -> Came:
    del client, words
    return await show_diff(session)


async def _withdraw(client: Client, session: Session, words: str) -> Came:
    del client, words
    waiting = session.view.queue
    if not waiting:
        return "Nothing waits."
    await session.withdraw(waiting[-1].prompt)
    return "(taken back)"


async def _resume(client: Client, session: Session, words: str) -> Came:
    del client, words
    resumed = await session.resume_queue()
    return resumed if resumed.queued else "Nothing waits."


async def _fork(client: Client, session: Session, words: str) -> Came:
    del client, words
    return await session.fork()


async def _compact(client: Client, session: Session, words: str) -> Came:
    del client, words
    await session.compact()
    return None


async def _title(client: Client, session: Session, words: str) -> Came:
    changed = await client.life.update(session.id, UpdateSession(title=words))
    return f"(called {changed.info.title!r} now)"


async def _close(client: Client, session: Session, words: str) -> Came:
    del words
    await client.life.close(session.id)
    return None


_ROWS: Final = (
    Command("/interrupt", "stop the running turn (also Ctrl+C)"),
    Command("/retry", "undo the last turn and say its prompt again", _retry),
    Command(
        "/undo", "undo the last turn, its files too; `skip`: but conflicts", _undo, f"[{SKIP}]"
    ),
    Command("/diff", "show what the last turn did to files", _diff),
    Command("/withdraw", "take back the prompt that waits last", _withdraw),
    Command("/resume", "run the prompts that a stop holds back", _resume),
    Command("/compact", "sum the conversation up, to make room", _compact),
    Command("/fork", "go on in a new session, from the last turn that has ended", _fork),
    Command("/title", "give the session another title", _title, "WORDS"),
    Command("/new", "begin another session"),
    Command("/sessions", "list sessions and go on with one"),
    Command("/close", "end the session for good; it stays readable", _close),
    Command("/quit", "leave (also Ctrl+D, or Ctrl+C when nothing runs); the session stays"),
    Command("/help", "list these"),
)

COMMANDS: Final[dict[str, Command]] = {row.name: row for row in _ROWS}
"""Name to command, in the order in which they are listed."""

_WIDTH: Final = max(len(f"{row.name} {row.takes}") for row in _ROWS) + 1

HELP: Final = "\n".join(
    [
        "Type a message and press Enter; while a turn runs it waits for the turn's end.",
        *(f"{f'{row.name} {row.takes}':{_WIDTH}}{row.about}" for row in _ROWS),
        "Put a space before a message that begins with a slash.",
    ]
)
"""What `/help` says."""


def find_command(line: str) -> tuple[Command, str]:
    """The command that a line means, and the words behind it.

    Args:
        line: It begins with a slash.

    Raises:
        UsageError: There is none, or what stands behind it does not fit.
    """
    name, _, rest = line.strip().partition(" ")
    words = rest.strip()
    found = COMMANDS.get(name)
    if found is None:
        raise UsageError(f"There is no command {name!r}; /help lists them.")
    if words and not found.takes:
        raise UsageError(
            f"{name} stands alone, and {words[:20]!r} stands behind it; put a space before a "
            "message that begins with a slash."
        )
    if found.takes and not words and not found.takes.startswith("["):
        raise UsageError(f"{name} needs {found.takes} behind it.")
    return found, words


def list_lines(rows: Iterable[SessionInfo]) -> Iterator[str]:
    """Sessions as `/sessions` lists them, numbered from 1."""
    for number, row in enumerate(rows, 1):
        state = "working" if row.live and row.turn else "closed" if row.closed else ""
        words = " · ".join(part for part in (row.title or "(no title)", row.id, state) if part)
        yield f"{number:2} {words}"
