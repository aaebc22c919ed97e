"""What a session's folder brings along: mentioned files, own commands, words to agents."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from towline_agent import (
    Attachment,
    LeftOut,
    LocalWorkspace,
    OwnCommand,
    ToolError,
    find_commands,
    find_instructions,
    find_mentions,
    find_paths,
    is_secret,
    read_mention,
    suggest_starts,
    tell_attached,
    tell_left_out,
)
from towline_protocol import Block, CommandInfo, File, Image, Notice, Text, UsageError
from towline_server.errors import BodyTooLarge, Rejected, RootForbidden
from towline_server.sessions.bulk import MAX_FILE
from towline_server.sessions.files import Files
from towline_server.sessions.folder import check_folder, find_folder
from towline_server.sessions.policies import Policies
from towline_server.sessions.sniff import PDF, PICTURES, TEXT

__all__ = ["COMMANDS", "INIT", "Mentioned", "Projects"]

_MENTIONS_SEEN: Final = 1_000  # of those that do not count: enough to say how many they are

COMMANDS: Final = (
    CommandInfo(name="new", about="begin another session", operation="create_session"),
    CommandInfo(name="clear", about="begin anew, in the same folder", operation="create_session"),
    CommandInfo(name="resume", about="go on with an earlier session", operation="list_sessions"),
    CommandInfo(name="fork", about="go on in a copy of this session", operation="fork_session"),
    CommandInfo(name="init", about="write AGENTS.md for this project", operation="run_command"),
    CommandInfo(
        name="compact", about="sum the conversation up, to make room", operation="compact_session"
    ),
    CommandInfo(name="model", about="ask another model", takes="MODEL", operation="update_session"),
    CommandInfo(
        name="mode", about="say what needs no asking", takes="MODE", operation="update_session"
    ),
    CommandInfo(name="cost", about="show what was used", operation="get_usage"),
    CommandInfo(name="tools", about="list what the model may call", operation="list_tools"),
    CommandInfo(name="help", about="list these", operation="list_commands"),
)
"""Those that there are everywhere (A5.77)."""

INIT: Final = OwnCommand(
    name="init",
    about="write AGENTS.md for this project",
    takes="WORDS",
    source="towline",
    body=(
        "Write AGENTS.md in the top folder of this project, for agents that work on it later. Look "
        "around first: the layout, how it is built, run and tested, the conventions in the code. "
        "Keep it under 60 lines: what the project is, the commands that matter (run one to be sure "
        "that it works), where things stand, and what must be kept to. If there is an AGENTS.md or "
        "a CLAUDE.md, mend it rather than begin anew. $ARGUMENTS"
    ),
)
"""What `/init` says."""

_OWN_FOLDER: Final = Path(".towline") / "commands"
_OWN_PREFIX: Final = f"{_OWN_FOLDER.as_posix()}/"
_UNTRUSTED: Final = (
    "This folder has commands of its own. They count once you trust it: /trust in the chat, or "
    "`towline trust` in the folder."
)


class Projects:
    """Looks into the folders that sessions work in.

    Args:
        roots: The folders that the server may work in: instructions are looked for up to these.
        hidden: Places that nobody may read through it.
        commands: The user's own folder of commands; `None` for none.
        policies: Knows whether a folder's own commands count (A5.53); one that keeps nothing when
            left out.
        secret: Whether a path is one that nobody mentions by accident (A5.67).
    """

    def __init__(
        self,
        roots: Sequence[Path],
        *,
        hidden: Sequence[Path] = (),
        commands: Path | None = None,
        policies: Policies | None = None,
        secret: Callable[[str], bool] = is_secret,
    ) -> None:
        self._roots = tuple(roots)
        self._hidden = tuple(hidden)
        self._commands = commands
        self.policies = Policies(None) if policies is None else policies
        """Which rules, mode and trust a folder has."""
        self._secret = secret

    def folder(self, cwd: str | None) -> str:
        """The folder that a client names, as `find_folder` takes it."""
        return find_folder(cwd, self._roots)

    def check(self, cwd: str) -> None:
        """Refuse a turn in a folder that is gone, or lies outside the roots, see `check_folder`."""
        check_folder(cwd, self._roots)

    @property
    def roots(self) -> tuple[str, ...]:
        """The folders that sessions may begin in or below, absolute."""
        return tuple(str(root.resolve()) for root in self._roots)

    async def instructions(self, cwd: str) -> str:
        """What the folder and those above it, up to a root, say to agents (A5.82)."""
        folder = Path(cwd)
        around = [root for root in self._roots if folder.is_relative_to(root.resolve())]
        top = min((root.resolve() for root in around), key=lambda p: len(p.parts), default=folder)
        place = folder.relative_to(top).as_posix()
        return await find_instructions(self._workspace(str(top)), place)

    async def attach(
        self, user: str, cwd: str, content: tuple[Block, ...], files: Files
    ) -> "Mentioned":
        """A prompt with the files that it mentions ahead of it (A5.79).

        A mention that names nothing which can be shown stays a word, and a notice says why. In a
        folder that may not be worked in any more all stay words: the turn says why.

        Args:
            user: Whose prompt it is.
            cwd: The folder of the session.
            content: What was said.
            files: Where the bytes go.

        Raises:
            StoreError: A file could not be kept.
        """
        if not self._may_look(cwd):
            return Mentioned(content, ())
        text = "\n".join(block.text for block in content if isinstance(block, Text))
        workspace = self._workspace(cwd)
        blocks: list[Block] = []
        attached: list[str] = []
        mentions = find_mentions(text)
        why = f"a prompt takes {len(mentions)} files along"
        more = find_mentions(text, most=_MENTIONS_SEEN)[len(mentions) :]
        left_out = [LeftOut(mention.plain, why) for mention in more]
        for mention in mentions:
            found = await read_mention(workspace, mention, secret=self._secret)
            block = found if isinstance(found, LeftOut) else await _keep(user, found, files)
            if isinstance(block, LeftOut):
                left_out.append(block)
            elif isinstance(found, Attachment):
                blocks.append(block)
                attached.append(found.about)
        told = {"attached": tell_attached(attached), "not_attached": tell_left_out(left_out)}
        notices = tuple(Notice(code=code, message=said) for code, said in told.items() if said)
        return Mentioned((*blocks, *content), notices)

    async def paths(self, cwd: str, typed: str, limit: int) -> tuple[tuple[str, ...], bool]:
        """Paths that may be meant, the best first, and whether not all were looked at.

        Raises:
            Rejected: The folder is gone.
            RootForbidden: It lies outside the roots by now.
            ToolError: It cannot be read.
        """
        self.check(cwd)
        return await find_paths(self._workspace(cwd), typed, limit)

    async def suggestions(self, cwd: str) -> tuple[str, ...]:
        """Prompts to begin with."""
        if not self._may_look(cwd):
            return suggest_starts(())
        try:
            walk = await self._workspace(cwd).walk(".", deep=False, ignored=True)
        except ToolError:  # it is gone: there is still something to say
            return suggest_starts(())
        return suggest_starts(entry.name for entry in walk.entries)

    async def commands(self, cwd: str) -> tuple[tuple[OwnCommand, ...], tuple[str, ...]]:
        """The commands in the user's folder, then in the project's if it is trusted; and notices.

        Of two that are called the same the user's own counts.
        """
        found: dict[str, OwnCommand] = {INIT.name: INIT}
        trusted, waits = False, False
        if self._may_look(cwd):
            trust = await self.policies.trust(cwd)
            trusted = trust.trusted
            waits = not trusted and any(name.startswith(_OWN_PREFIX) for name in trust.files)
        notices = [_UNTRUSTED] if waits else []
        for folder, source in self._command_folders(cwd, trusted=trusted):
            within = Path(cwd) if source == "project" else None
            read, told = await find_commands(folder, source, within=within)
            found = {**{command.name: command for command in read}, **found}
            notices += told
        return tuple(found[name] for name in sorted(found)), tuple(notices)

    async def command(self, cwd: str, name: str) -> OwnCommand:
        """The command of that name.

        Raises:
            Rejected: There is none that says a prompt, or it stands in a folder that nobody trusts.
        """
        found, _ = await self.commands(cwd)
        for command in found:
            if command.name == name:
                return command
        if await self._waits_for_trust(cwd, name):
            raise Rejected(
                f"This folder has a command {f'/{name}'!r} of its own. It counts once you trust "
                "the folder's own files: /trust in the chat shows them, and so does "
                "`towline trust` in the folder.",
                reason="untrusted_command",
            )
        raise Rejected(
            f"There is no command {name[:64]!r} that says something to the agent; list the "
            "commands to see those there are.",
            reason="unknown_command",
        )

    async def _waits_for_trust(self, cwd: str, name: str) -> bool:
        """Whether the folder has a command of that name which does not count yet (A5.53)."""
        if not self._may_look(cwd):
            return False
        trust = await self.policies.trust(cwd)
        return not trust.trusted and f"{_OWN_PREFIX}{name}.md" in trust.files

    def _may_look(self, cwd: str) -> bool:
        """Whether a session's folder is there and may still be looked into."""
        try:
            self.check(cwd)
        except (Rejected, RootForbidden):
            return False
        return True

    def _command_folders(self, cwd: str, *, trusted: bool) -> list[tuple[Path, str]]:
        found: list[tuple[Path, str]] = []
        if self._commands is not None:
            found.append((self._commands, "user"))
        if trusted:
            found.append((Path(cwd) / _OWN_FOLDER, "project"))
        return found

    def _workspace(self, folder: str) -> LocalWorkspace:
        return LocalWorkspace(folder, hidden=self._hidden)


class Mentioned(NamedTuple):
    """What a prompt says with the files that it mentions."""

    content: tuple[Block, ...]
    """The blocks, files first."""
    notices: tuple[Notice, ...]
    """Which files go along and which not, for all who look on."""


async def _keep(user: str, found: Attachment, files: Files) -> Block | LeftOut:
    if len(found.data) > MAX_FILE:
        return LeftOut(found.path, f"it is larger than {MAX_FILE // 2**20} MiB")
    name = found.path.rstrip("/").rpartition("/")[2]
    try:
        row = await files.add(user, found.data, name=name)
    except (UsageError, BodyTooLarge) as error:
        return LeftOut(found.path, error.message.removesuffix("."))
    if row.media_type in PICTURES:
        return Image(media_type=row.media_type, file=row.file)
    if row.media_type not in (TEXT, PDF):
        return LeftOut(found.path, f"models read no {row.media_type}; the agent has tools for it")
    return File(
        name=name, media_type=row.media_type, file=row.file, path=found.path, lines=found.lines
    )
