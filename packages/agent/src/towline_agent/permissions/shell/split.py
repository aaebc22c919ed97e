"""A shell command as the parts that rules and modes judge (A5.64 to A5.66)."""

import os
import posixpath
import re
import shlex
from collections.abc import Iterator
from typing import Final

from towline_agent.permissions.ground import GitRead, Ground, Sight, Sweep
from towline_agent.permissions.part import Part
from towline_agent.permissions.secret import (
    is_control,
    is_hook,
    is_secret,
    may_be_secret,
    path_part,
)
from towline_agent.permissions.shell.checks import Unreadable
from towline_agent.permissions.shell.reads import Read, find_read
from towline_agent.permissions.shell.syntax import read_commands
from towline_agent.permissions.shell.words import PIPE, Redirect, Simple, Word, join_words
from towline_agent.permissions.shell.wrappers import (
    RESERVED,
    Inner,
    find_inner,
    is_transparent,
    program_name,
)

__all__ = ["COMMAND_MAX_CHARS", "PARTS_MAX", "split_shell"]

COMMAND_MAX_CHARS: Final = 32_768
"""Characters of a command that is taken apart; no person reads more before they allow it."""
PARTS_MAX: Final = 200
"""Parts of one command, for the same reason."""
_LEVELS: Final = 6
"""Commands in commands in commands, such as `sh -c "sudo sh -c '…'"`."""
_WORD_SHOWN: Final = 80

_WRITERS: Final = frozenset(
    {
        "cp", "mv", "tee", "rm", "ln", "install", "rsync", "dd", "touch", "truncate", "chmod",
        "chown", "chgrp", "mkdir", "rmdir", "unlink", "shred", "sed", "patch", "mkfifo", "mknod",
        "link", "scp", "split", "csplit",
    }
)  # fmt: skip
"""Programs whose operands are mostly what they change."""
_RULERS: Final = re.compile(
    r"PATH|LD_.*|DYLD_.*|GIT_.*|BASH_.*|ENV|IFS|SHELLOPTS|BASHOPTS|PS[0-4]|PROMPT_COMMAND|CDPATH|"
    r"GLOBIGNORE|PYTHON.*|PERL.*|RUBY.*|NODE_.*|JAVA_.*|_JAVA_OPTIONS|JDK_JAVA_OPTIONS|GO.*FLAGS|"
    r"RUSTC.*|CARGO_.*|MAKEFLAGS|GNUMAKEFLAGS|CC|CXX|LD|AR|PAGER|.*_PAGER|MANPAGER|EDITOR|VISUAL|"
    r"BROWSER|LESS.*|SSH_.*|HOME|XDG_.*|npm_config_.*|NPM_CONFIG_.*|PIP_.*|UV_.*|SHELL|ZDOTDIR|"
    r"FPATH|TOWLINE_.*|GCONV_PATH|LOCPATH|NLSPATH|TERMINFO.*|MALLOC_.*|GLIBC_TUNABLES|OPENSSL_.*|RIPGREP_.*|GREP_.*|"
    r"RUSTUP_.*|GOTOOLCHAIN|RSYNC_.*|TAR_.*|.*_(OPTS|OPTIONS|CONFIG|CONFIG_PATH|CONFIG_FILE|RSH)"
)
"""Variables that decide which programs run, or what they do."""
_FREE: Final = frozenset({"/dev/null", "/dev/stdout", "/dev/stderr", "/dev/stdin", "/dev/tty"})
_NETWORK: Final = re.compile(r"/dev/(?:tcp|udp)/(?P<host>[^/]+)/(?P<port>.+)")
_READING: Final = frozenset({"<"})
_COPIES: Final = frozenset({">&", "<&", ">&-", "<&-"})
_WIDENS: Final = re.compile(r"dotglob|globstar|nocaseglob|extglob")
"""Options of the shell that make patterns fit more."""
_NO_DISK: Final = Ground()
_GIT_GLOBAL: Final = frozenset({"-C", "-c", "--git-dir", "--work-tree", "--namespace"})


def split_shell(
    command: str,
    *,
    root: str = "/",
    ground: Ground = _NO_DISK,
) -> tuple[Part, ...]:
    """All that a shell command would do, part by part.

    Each simple command is one part, wherever it stands: behind `&&` or a pipe, in a substitution,
    a loop or a function, behind `sudo` or in `sh -c`. So is each place that it reads from or writes
    to, each file that is secret or decides on permissions, each variable that decides what
    programs do. A command that can't be read whole is one part of the kind `unknown`.

    Args:
        command: The command as a shell would read it.
        root: The folder that it runs in, absolute.
        ground: Knows what it would find there.

    Returns:
        One part at least.
    """
    splitter = _Splitter(root, ground)
    try:
        if len(command) > COMMAND_MAX_CHARS:
            raise Unreadable(f"The command has more than {COMMAND_MAX_CHARS} characters.")
        splitter.split(command, 0)
        if len(splitter.parts) > PARTS_MAX:
            raise Unreadable(f"The command has more than {PARTS_MAX} parts.")
    except Unreadable as error:
        whole = Part(subject=command, kind="unknown", effect="exec", caution=str(error))
        control = (splitter.name_control(command),) if ".towline" in command.casefold() else ()
        return (whole, *control, *splitter.parts)
    return tuple(splitter.parts) or (Part(subject=command, kind="command", effect="read"),)


class _Splitter:
    """Collects parts, with the folders that paths may begin at."""

    def __init__(self, root: str, ground: Ground) -> None:
        self.parts: dict[Part, None] = {}
        self._root = ground.real(root)
        self._ground = ground
        self._real = ground.real
        self._wide = False
        self._folders = [self._root]

    def split(self, command: str, level: int) -> None:
        """Take a command apart, and those in it."""
        if level > _LEVELS:
            raise Unreadable("The command holds commands in commands, too deep to be taken apart.")
        self._wide = self._wide or _WIDENS.search(command) is not None
        script = read_commands(command)
        for simple in script.commands:
            self._take(simple, level)
        if script.repeats and len(self._folders) > 1:
            raise Unreadable("The command goes to another folder, and repeats some of its parts.")

    def name_control(self, text: str) -> Part:
        """The part for a command that names a file of permissions somewhere in its text."""
        return Part(
            subject=text,
            kind="unknown",
            effect="write",
            caution="It names a file that decides what is allowed in this project.",
            firm=True,
        )

    def _add(self, part: Part) -> None:
        self.parts[part] = None

    def _take(self, simple: Simple, level: int) -> None:
        for redirect in simple.redirects:
            self._take_redirect(redirect)
        self._take_assigns(simple.assigns)
        if simple.words:
            self._take_words(simple.words, level, ())

    def _take_assigns(self, assigns: tuple[tuple[str, Word], ...]) -> None:
        for name, word in assigns:
            if _RULERS.fullmatch(name) is not None:
                text = f"{name}={word.source}"
                self._add(
                    Part(
                        subject=text,
                        kind="unknown",
                        effect="exec",
                        caution=f"{name} decides which programs run, or what they do.",
                    )
                )

    # where it reads from and writes to

    def _take_redirect(self, redirect: Redirect) -> None:
        target = redirect.target
        if target is None or (redirect.operator in _COPIES and _is_number(target)):
            return
        if target.value is None or target.glob:
            shown = target.source[:_WORD_SHOWN]
            self._add(
                Part(
                    subject=f"{redirect.operator} {target.source}",
                    kind="unknown",
                    effect="write",
                    caution=f"Where {shown!r} leads is known only when it runs.",
                )
            )
            return
        network = _NETWORK.fullmatch(target.value)
        if network is not None:
            host = f"{network['host']}:{network['port']}"
            self._add(Part(subject=host, kind="host", effect="network"))
            return
        effect = "read" if redirect.operator in _READING else "write"
        self._add_paths(target.value, effect)

    def _add_paths(self, path: str, effect: str) -> None:
        """The part of a path, from each folder that the command may stand in."""
        if path in _FREE or path.startswith("/dev/fd/"):
            return
        for folder in self._folders:
            self._add(self._path_part(folder, path, effect))

    def _path_part(self, folder: str, path: str, effect: str) -> Part:
        written = posixpath.normpath(posixpath.join(folder, path))
        real = self._real(posixpath.join(folder, path))
        subject, shown = self._relative(real), self._relative(written)
        also = () if shown == subject else (shown,)
        grants = (real,) if subject.startswith("/") else ()
        names = self._ground.names(real)
        return path_part(
            subject, effect=effect, also=(*also, *names.paths), grants=grants, caution=names.doubt
        )

    def _relative(self, path: str) -> str:
        if path == self._root:
            return "."
        inside = path.startswith(self._root.rstrip("/") + "/")
        return path[len(self._root.rstrip("/")) + 1 :] if inside else path

    # commands

    def _take_words(self, words: tuple[Word, ...], level: int, also: tuple[str, ...]) -> None:
        name = words[0].value
        if name is None or name == PIPE or words[0].glob:
            shown = words[0].source[:_WORD_SHOWN]
            self._add(
                Part(
                    subject=join_words(words),
                    kind="unknown",
                    effect="exec",
                    caution=f"Which program {shown!r} is, is known only when it runs.",
                )
            )
            return
        if words[0].source in RESERVED - {"time", "coproc"}:  # the grammar took syntax for a name
            raise Unreadable(f"The command can't be read at {join_words(words)[:_WORD_SHOWN]!r}.")
        if name in ("cd", "pushd", "popd"):
            self._take_folder(words)
            return
        inner = find_inner(words)
        outer = join_words(words)
        for each in inner:
            self._take_inner(each, level, (*also, outer))
        if inner and is_transparent(program_name(words[0]) or ""):
            return
        self._take_command(words, also)

    def _take_inner(self, inner: Inner, level: int, also: tuple[str, ...]) -> None:
        self._take_assigns(inner.assigns)
        if inner.text is not None:
            self.split(inner.text, level + 1)
        elif level < _LEVELS:
            self._take_words(inner.words, level + 1, also)
        else:
            raise Unreadable("The command holds commands in commands, too deep to be taken apart.")

    def _take_folder(self, words: tuple[Word, ...]) -> None:
        """`cd`: what follows may stand in another folder."""
        values = [word.value for word in words[1:] if word.value not in ("--", "-P", "-L", "-e")]
        if values == [] and words[0].value == "cd":
            values = [os.path.expanduser("~")]  # noqa: PTH111 - `pathlib` is slow to import
        (value,) = values if len(values) == 1 else (None,)
        glob = any(word.glob for word in words)
        if value is None or glob or value[:1] in ("-", "+") or words[0].value == "popd":
            raise Unreadable(f"Where {join_words(words)[:_WORD_SHOWN]!r} leads can't be made out.")
        self._add_paths(value, "read")
        self._folders += [
            folder
            for folder in (self._real(posixpath.join(each, value)) for each in self._folders)
            if folder not in self._folders
        ]

    def _take_command(self, words: tuple[Word, ...], also: tuple[str, ...]) -> None:
        name = words[0].value or ""
        subject = join_words(words)
        read = find_read(name, words[1:])
        starts = None if read is None or read.git is None else self._take_git(read.git, words)
        declares = name in ("export", "declare", "typeset", "local", "readonly", "unset")
        effect = "read" if (read is not None and starts is None) or declares else "exec"
        unsure = [place for place, word in enumerate(words) if word.value is None or word.glob]
        self._add(
            Part(
                subject=subject,
                kind="command",
                effect=effect,
                caution=starts,
                also=tuple(dict.fromkeys((*_other_names(words), *also))),
                certain=unsure[0] if unsure else None,
            )
        )
        if read is not None:
            self._take_reads(read, words)
        else:
            self._take_arguments(name, words)

    def _take_reads(self, read: Read, words: tuple[Word, ...]) -> None:
        globs = {word.value for word in words if word.glob}
        for path in read.paths:
            if path in globs and (may_be_secret(path) or _may_climb(path)):
                part = path_part(path, effect="read", caution=f"{path!r} may name secret files.")
                self._add(part)
                continue
            self._add_paths(path, "read")
            for folder in self._folders:
                if path in globs:
                    self._take_pattern(folder, path, read, words)
                elif read.sweep is not None:
                    self._take_sight(
                        self._ground.find_secrets(posixpath.join(folder, path), read.sweep), words
                    )

    def _take_pattern(self, folder: str, pattern: str, read: Read, words: tuple[Word, ...]) -> None:
        """What a pattern stands for at this moment."""
        found = self._ground.expand(folder, pattern, wide=self._wide)
        self._take_sight(found, words)
        for path in found.paths if read.sweep is not None else ():
            self._take_sight(self._ground.find_secrets(path, read.sweep or Sweep()), words)

    def _take_git(self, read: GitRead, words: tuple[Word, ...]) -> str | None:
        """What git prints of secrets; returns why it may start a program, if it may."""
        for folder in self._folders:
            found = self._ground.look_at_git(folder, read)
            if found.starts is not None:
                return found.starts
            self._take_sight(Sight(paths=found.secrets, doubt=found.doubt), words)
        return None

    def _take_sight(self, found: Sight, words: tuple[Word, ...]) -> None:
        """What of the found files a person is asked about."""
        for path in found.paths:
            part = self._path_part(self._root, path, "read")
            if part.caution is not None:
                self._add(part)
        if found.doubt is not None:
            text = join_words(words)
            self._add(Part(subject=text, kind="unknown", effect="read", caution=found.doubt))

    def _take_arguments(self, name: str, words: tuple[Word, ...]) -> None:
        """What a command that does more names of secrets, permissions and places outside."""
        base = name.rsplit("/", 1)[-1]
        text = join_words(words)
        if ".towline" in text.casefold():
            self._add(self.name_control(text))
        for word in words[1:]:
            for path in _paths_in(word):
                for folder in self._folders:
                    part = self._path_part(folder, path, "write")
                    if part.firm or _calls_for_care(part, base):
                        self._add(part)


def _calls_for_care(part: Part, program: str) -> bool:
    names = (part.subject, *part.also)
    if any(is_secret(name) or is_hook(name) or is_control(name) for name in names):
        return True
    return program in _WRITERS and part.subject.startswith("/") and part.subject not in _FREE


def _paths_in(word: Word) -> Iterator[str]:
    """What a word may name: itself, or what follows `=`, `@` or `:` in it."""
    value = word.value
    if not value or len(value) > 4096:
        return
    seen = {value, value.split("=", 1)[-1], value.rsplit(":", 1)[-1], value.split("@", 1)[-1]}
    if value.startswith("-") and not value.startswith("--"):
        seen.add(value[2:])
    yield from (path for path in seen if path and not path.startswith("-") and "\0" not in path)


def _may_climb(pattern: str) -> bool:
    """Whether a pattern may name the folder above, as `.*` does in some shells."""
    return any(part[:1] == "." and part.strip(".?*[]!") == "" for part in pattern.split("/"))


def _is_number(word: Word) -> bool:
    value = word.value or ""
    return value == "-" or value.rstrip("-").isdecimal()


def _other_names(words: tuple[Word, ...]) -> Iterator[str]:
    """Other ways to write a command, so that a denial of one denies them all."""
    base = program_name(words[0]) or ""
    plain = (Word(base, base), *words[1:])
    if base != words[0].value:
        yield join_words(plain)
    if base != "git":
        return
    place = 1
    while place < len(words):
        value = words[place].value or ""
        if value[:1] != "-":
            break
        place += 2 if value in _GIT_GLOBAL else 1
    if place > 1:
        yield shlex.join(["git"]) + " " + join_words(words[place:])
