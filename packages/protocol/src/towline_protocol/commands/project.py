"""What the folder of a session offers: paths, commands, a start."""

from towline_protocol.commands.body import Body
from towline_protocol.messages import Limits

__all__ = [
    "CommandInfo",
    "CommandList",
    "PathList",
    "RunCommand",
    "SetTrust",
    "StartInfo",
    "SuggestionList",
    "ToolInfo",
    "ToolList",
    "TrustFile",
    "TrustInfo",
]


class PathList(Body, frozen=True, kw_only=True):
    """Paths that somebody may mean (A5.81)."""

    paths: tuple[str, ...]
    """Relative to the session's folder, the best first; a folder ends with `/`."""
    truncated: bool = False
    """Whether the folder holds more than was looked through."""


class CommandInfo(Body, frozen=True, kw_only=True):
    """One command behind a slash (A5.77, A5.78)."""

    name: str
    """What is typed behind the slash."""
    about: str
    """What it does, as one line."""
    takes: str = ""
    """What may stand behind it, for people."""
    source: str = "towline"
    """`towline`, or whose folder it stands in: `user` or `project`."""
    operation: str | None = None
    """The operation that a client carries it out by; `None` for what it does by itself."""


class CommandList(Body, frozen=True, kw_only=True):
    """The commands of a session."""

    commands: tuple[CommandInfo, ...]
    """Ours, then those of the user, then those of the project."""
    notices: tuple[str, ...] = ()
    """Files that are no commands, and why."""


class RunCommand(Body, frozen=True, kw_only=True):
    """Ask for what a command says, as a prompt."""

    arguments: str = ""
    """What was written behind its name."""
    when: str = "auto"
    """As in `send_prompt`."""
    limits: Limits | None = None
    """Bounds of the turn; `None` for the session's."""


class SuggestionList(Body, frozen=True, kw_only=True):
    """Prompts to begin with."""

    suggestions: tuple[str, ...]
    """Words to send as they are, or a command with its slash."""


class StartInfo(Body, frozen=True, kw_only=True):
    """What a session would have that begins in a folder now, before there is one."""

    folder: str
    """The folder, absolute."""
    roots: tuple[str, ...]
    """The folders that sessions may begin in or below; a session that names none begins in the
    first."""
    model: str
    """`provider/model` of a session that names none."""
    mode: str
    """The mode of a session that names none: the one last chosen in this folder, else the
    server's."""
    suggestions: tuple[str, ...]
    """As in `SuggestionList`."""
    commands: tuple[CommandInfo, ...]
    """As in `CommandList`."""
    notices: tuple[str, ...] = ()
    """Files that are no commands, and why."""


class ToolInfo(Body, frozen=True, kw_only=True):
    """One tool that a session's model may call."""

    name: str
    """Its name."""
    about: str
    """What it does, in the words that the model reads."""
    effect: str
    """`read`, `write`, `exec`, `network` or `own` (A5.42)."""


class ToolList(Body, frozen=True, kw_only=True):
    """The tools of a session."""

    tools: tuple[ToolInfo, ...]
    """In the order in which the model reads them."""


class TrustFile(Body, frozen=True, kw_only=True):
    """What one of a folder's own files says."""

    path: str
    """Relative to the folder."""
    text: str = ""
    """Its text, or the beginning of it; empty where it is no text, or not to be shown."""
    bytes: int = 0
    """The size of all of it."""
    shown: str = "whole"
    """`whole`, `cut` (it goes on), `binary` (it is no text), or `secret` (its name says that it
    holds secrets)."""


class TrustInfo(Body, frozen=True, kw_only=True):
    """Whether a folder's own rules, servers, commands and skills count (A5.49)."""

    folder: str
    """The folder."""
    trusted: bool
    """Whether a person trusts exactly these files."""
    changed: bool = False
    """Whether a person trusted other files than these (A5.52)."""
    digest: str
    """The hash of the files, which an answer names."""
    files: tuple[str, ...] = ()
    """The files that it is about, relative to the folder; none when there is nothing to trust."""
    rules: tuple[str, ...] = ()
    """The permission rules among them."""
    problems: tuple[str, ...] = ()
    """Sentences on what can't be read, or keeps the folder from being trusted."""
    contents: tuple[TrustFile, ...] = ()
    """What the files say, in their order, as far as 64 KiB reach; only where somebody may still
    decide, so not of a folder that is trusted."""


class SetTrust(Body, frozen=True, kw_only=True):
    """Trust a folder's files as they were seen, or no longer (A5.51)."""

    digest: str | None = None
    """The hash of the files that were seen; `None` to trust the folder no longer."""
