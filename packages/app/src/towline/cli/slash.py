"""What a person can do in a plain chat beside talking: the commands behind a slash, as a table."""

import re
from collections.abc import Awaitable, Callable, Iterable, Iterator
from functools import partial
from typing import Final

import msgspec

from towline.cli.command import name_command
from towline.cli.slash_trust import trust
from towline.cli.undo import SKIP, show_diff, undo
from towline_client import Client, CommandRejected, Session
from towline_protocol import PromptAccepted, QueueResumed, SessionInfo, UpdateSession, UsageError

__all__ = [
    "COMMANDS",
    "HELP",
    "LISTED",
    "MODES_SAID",
    "Came",
    "Command",
    "find_command",
    "first_line",
    "list_lines",
    "list_own",
]

LISTED: Final = 20
"""Sessions that `/resume` lists: what fits a screen."""

_OWN_NAME: Final = re.compile(r"/[a-z0-9][a-z0-9_-]{0,63}")

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
    """What it asks of the server, with what stands behind its name; `None` for what the chat does
    by itself."""
    takes: str = ""
    """What stands behind its name, in brackets where it may be left out; empty for nothing."""


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


async def _continue(client: Client, session: Session, words: str) -> Came:
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


async def _init(client: Client, session: Session, words: str) -> Came:
    del client
    return await session.project.run("init", words)


async def _model(client: Client, session: Session, words: str) -> Came:
    if not words:
        return f"(asks {session.view.model}; /model NAME asks another one)"
    changed = await client.life.update(session.id, UpdateSession(model=words))
    return f"(asks {changed.info.model} from the next turn on)"


async def _mode(client: Client, session: Session, words: str) -> Came:
    """Without a name the next one: to go round all of them takes no knowledge (A5.45)."""
    if not words:
        modes = (await client.discovery.capabilities()).modes
        now = session.view.mode
        words = modes[(modes.index(now) + 1) % len(modes)] if now in modes else modes[0]
    changed = await client.life.update(session.id, UpdateSession(mode=words))
    mode = changed.info.mode
    return f"(mode {mode!r} from the next turn on: {MODES_SAID.get(mode, 'see the docs')})"


async def _cost(client: Client, session: Session, words: str) -> Came:
    del client, words
    view = session.view
    used = view.usage
    cost = "not known" if view.cost is None else f"${view.cost:.4f}"
    return (
        f"This session used {used.input + used.cache_read + used.cache_write:,} tokens in "
        f"({used.cache_read:,} of them cached) and {used.output:,} out; the cost is {cost}."
    )


async def _tools(client: Client, session: Session, words: str) -> Came:
    del client, words
    tools = (await session.project.tools()).tools
    if not tools:
        return "There are no tools."
    wide = max(len(tool.name) for tool in tools)
    shown = (f"{tool.name:{wide}}  {tool.effect:7}  {first_line(tool.about)}" for tool in tools)
    return "\n".join(shown)


_ROWS: Final = (
    Command("/interrupt", "stop the running turn (also Ctrl+C)"),
    Command("/retry", "undo the last turn and say its prompt again", _retry),
    Command(
        "/undo", "undo the last turn, its files too; `skip`: but conflicts", _undo, f"[{SKIP}]"
    ),
    Command("/diff", "show what the last turn did to files", _diff),
    Command("/withdraw", "take back the prompt that waits last", _withdraw),
    Command("/continue", "run the prompts that a stop holds back", _continue),
    Command("/compact", "sum the conversation up, to make room", _compact),
    Command("/fork", "go on in a new session, from the last turn that has ended", _fork),
    Command("/init", "write AGENTS.md for this project", _init, "[WORDS]"),
    Command("/model", "ask another model", _model, "[MODEL]"),
    Command("/mode", "say what needs no asking; alone it takes the next", _mode, "[MODE]"),
    Command("/cost", "show what was used", _cost),
    Command("/tools", "list what the model may call", _tools),
    Command("/trust", "show what the folder brings along, and trust it", trust, "[CODE]"),
    Command("/title", "give the session another title", _title, "WORDS"),
    Command("/new", "begin another session"),
    Command("/clear", "begin anew in the same folder; this session stays"),
    Command("/resume", "list sessions and go on with one"),
    Command("/close", "end the session for good; it stays readable", _close),
    Command("/quit", "leave (also Ctrl+D, or Ctrl+C when nothing runs)"),
    Command("/help", "list these, and your own commands"),
)

COMMANDS: Final[dict[str, Command]] = {row.name: row for row in _ROWS}
"""Name to command, in the order in which they are listed."""

_OTHER_NAMES: Final = {"/sessions": "/resume", "/exit": "/quit", "/stop": "/interrupt"}

MODES_SAID: Final = {
    "ask": "all but reading asks",
    "accept_edits": "edits in the folder need no asking",
    "auto": "nothing asks but what rules or secrets make ask",
    "plan": "it only reads, and says what it would do",
}
"""What a mode means, for people."""

_WIDTH: Final = max(len(f"{row.name} {row.takes}") for row in _ROWS) + 1

HELP: Final = "\n".join(
    [
        "Type a message and press Enter; while a turn runs it waits for the turn's end.",
        *(f"{f'{row.name} {row.takes}':{_WIDTH}}{row.about}" for row in _ROWS),
        "@path in a message shows that file. A space before a slash makes it a message.",
    ]
)
"""What `/help` says."""


def find_command(line: str) -> tuple[Command, str]:
    """The command that a line means, and the words behind it.

    A name that is none of ours is looked for on the server, among the user's and the project's own.

    Args:
        line: It begins with a slash.

    Raises:
        UsageError: It can be no command, or what stands behind it does not fit.
    """
    name, _, rest = line.strip().partition(" ")
    words = rest.strip()
    found = COMMANDS.get(_OTHER_NAMES.get(name, name))
    if found is None:
        if not _OWN_NAME.fullmatch(name):
            raise UsageError(f"There is no command {name!r}; /help lists them.")
        return Command(name, "", partial(_run_own, name[1:]), "[WORDS]"), words
    if words and not found.takes:
        raise UsageError(
            f"{name} stands alone, and {words[:20]!r} stands behind it; put a space before a "
            "message that begins with a slash."
        )
    if found.takes and not found.takes.startswith("[") and not words:
        raise UsageError(f"{name} needs {found.takes} behind it.")
    return found, words


async def _run_own(name: str, client: Client, session: Session, words: str) -> Came:
    del client
    try:
        return await session.project.run(name, words)
    except CommandRejected as error:
        if error.reason != "unknown_command":
            raise
        raise UsageError(f"There is no command {f'/{name}'!r}; /help lists them.") from error


async def list_own(session: Session) -> Iterable[str]:
    """The user's and the project's own commands, as lines below `HELP`; none where there are none.

    Raises:
        TowlineError: The server cannot be asked.
    """
    listed = await session.project.commands()
    own = [row for row in listed.commands if row.source != "towline"]
    # One that is longer than all of ours still stands apart from what it does.
    lines = [f"{f'/{row.name} {row.takes}':{_WIDTH - 1}} {row.about}" for row in own]
    return (*(["Your own:"] if own else []), *lines, *map(name_command, listed.notices))


def first_line(text: str) -> str:
    """The first sentence or line of a text, for a list."""
    return text.strip().partition("\n")[0].partition(". ")[0].rstrip(".")


def list_lines(rows: Iterable[SessionInfo]) -> Iterator[str]:
    """Sessions as `/resume` lists them, numbered from 1; what was said last stands under each."""
    for number, row in enumerate(rows, 1):
        state = "working" if row.live and row.turn else "closed" if row.closed else ""
        words = " · ".join(part for part in (row.title or "(no title)", row.id, state) if part)
        yield f"{number:2} {words}"
        if row.last_line:
            yield f"   {row.last_line}"
