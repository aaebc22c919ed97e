"""Commands that only read, so that they run unasked where reads do (A5.44)."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent.permissions.ground import GitRead, Sweep
from towline_agent.permissions.shell.reach import (
    find_git_read,
    find_git_sweep,
    find_sweep,
    is_path_sure,
)
from towline_agent.permissions.shell.words import Word

__all__ = ["Read", "find_read"]


class Read(msgspec.Struct, frozen=True):
    """What a command that only reads looks at."""

    paths: tuple[str, ...] = ()
    """Paths, as they are written."""
    sweep: Sweep | None = None
    """How it reads all in the folders among them; `None` when it does not."""
    git: GitRead | None = None
    """How it reads what git keeps."""


class _Facts(msgspec.Struct, frozen=True):
    """When a program only reads."""

    letters: str = ""
    """Letters of short options with which it may do more."""
    longs: tuple[str, ...] = ()
    """Long options with which it may do more; also what they may be cut to."""
    paths: bool = True
    """Whether its operands are paths."""
    skip: int = 0
    """Operands before the paths, such as the pattern of `grep`."""
    most: int | None = None
    """Operands it may have; one more would be written to."""
    loose: bool = False
    """Whether words that only the run tells do no harm."""
    single_dash: tuple[str, ...] = ()
    """Options of one dash and more than one letter with which it may do more."""


_PLAIN: Final = _Facts()
_WORDS: Final = _Facts(paths=False, loose=True)
_FACTS: Final = {
    **dict.fromkeys(
        (
            "cat", "head", "tail", "wc", "nl", "tac", "rev", "cut", "paste", "fold", "expand",
            "unexpand", "comm", "cmp", "join", "ls", "dir", "vdir", "stat", "du", "df", "realpath",
            "readlink", "md5sum", "sha1sum", "sha224sum", "sha256sum", "sha384sum", "sha512sum",
            "b2sum", "cksum", "sum", "od", "hexdump", "column", "tsort",
        ),
        _PLAIN,
    ),
    **dict.fromkeys(
        (
            "echo", "true", "false", ":", "basename", "dirname", "seq", "expr", "exit", "return",
            "break", "continue", "sleep", "shift",
        ),
        _WORDS,
    ),
    **dict.fromkeys(
        ("pwd", "whoami", "id", "groups", "uname", "arch", "nproc", "uptime", "tty", "logname"),
        _Facts(paths=False),
    ),
    "printf": _Facts("v", paths=False),
    "wait": _Facts("p", paths=False),
    "tr": _Facts(paths=False),
    "which": _Facts(paths=False),
    "type": _Facts(paths=False),
    "date": _Facts("sf", ("set", "file"), paths=False),
    "hostname": _Facts("bF", ("file", "boot"), paths=False, most=0),
    "diff": _Facts("l", ("paginate",)),
    "file": _Facts("CzZ", ("compile", "uncompress")),
    "grep": _Facts(skip=1),
    "egrep": _Facts(skip=1),
    "fgrep": _Facts(skip=1),
    "rg": _Facts("z", ("pre", "pre-glob", "search-zip", "hostname-bin"), skip=1),
    "sort": _Facts("oTS", ("output", "compress-program", "temporary-directory", "files0-from")),
    "uniq": _Facts(most=1),
    "tree": _Facts("oR", ("output",)),
    "find": _Facts(
        single_dash=(
            "-exec", "-execdir", "-ok", "-okdir", "-delete", "-fprint", "-fprint0", "-fprintf",
            "-fls", "-files0-from",
        )
    ),
    "fd": _Facts("xX", ("exec", "exec-batch"), skip=1),
    "fdfind": _Facts("xX", ("exec", "exec-batch"), skip=1),
    "jq": _Facts("fL", ("from-file",), skip=1),
    "test": _Facts("vR", paths=False),
    "xxd": _Facts("r", ("revert",), most=1, single_dash=("-revert",)),
}  # fmt: skip
"""By program; all options that are not named do no more than read."""

_GIT: Final = {
    **dict.fromkeys(
        (
            "status", "log", "show", "diff", "blame", "ls-files", "ls-tree", "rev-parse",
            "rev-list", "describe", "shortlog", "merge-base", "name-rev", "for-each-ref",
            "count-objects", "diff-tree", "diff-index", "diff-files", "show-ref", "whatchanged",
            "cherry", "show-branch", "check-ignore",
        ),
        (),
    ),
    "grep": ("-O", "--open-files-in-pager"),
    "cat-file": ("--textconv", "--filters", "--batch-command"),
}  # fmt: skip
"""What git only reads by, with options that do more."""
_GIT_NEVER: Final = (
    "--output",
    "--ext-diff",
    "--textconv",
    "--exec",
    "--upload-pack",
    "--run",
    "--show-signature",
)
_GIT_LISTS: Final = {
    "branch": frozenset(
        {"-a", "-r", "-v", "-vv", "--all", "--remotes", "--verbose", "--list", "--show-current"}
    ),
    "tag": frozenset({"-l", "--list", "-n"}),
    "remote": frozenset({"-v", "--verbose"}),
    "stash": frozenset({"list"}),
    "worktree": frozenset({"list"}),
    "reflog": frozenset({"show"}),
}
"""What git lists when nothing but these words follows."""
_VERSIONS: Final = frozenset({"--version", "-V", "version"})
_VERSIONED: Final = frozenset(
    {
        "python", "python3", "node", "npm", "gcc", "clang", "make", "uv", "pip", "ruff", "git",
        "java", "ruby", "perl", "bash", "docker", "cmake",
    }
)  # fmt: skip
"""Programs that a project's files have no say in: `cargo` and `go` begin by the tool chain that
the folder asks for, and `pytest` may load what it holds."""
_SED_PRINT: Final = re.compile(r"(\d+|\$)(,(\d+|\$))?p")
_SET: Final = re.compile(r"[-+][euxo]+|pipefail|errexit|nounset|xtrace")
_FIND_BEGIN: Final = re.compile(r"-[HLP]|-O\d*")
"""Options of `find` that stand before its paths."""
_NO_PATTERN: Final = ("regexp", "file", "files", "search-path", "base-directory", "ignore-file")
"""Long options with which the first operand is no pattern, or that take a path as the next word."""
_NAMES: Final = re.compile(r"--(in|ex)clude=|--exclude-dir=|--i?glob=")
"""Options whose value is a pattern of names."""
_MODULES: Final = re.compile(r"\b(import|include)\b")
"""By these a filter of `jq` reads other files."""


def find_read(name: str, words: Sequence[Word]) -> Read | None:
    """What a command looks at; `None` for one that may do more than read.

    Args:
        name: The program as it is written; one with a folder is no program we know.
        words: Its arguments.
    """
    values = [word.value for word in words]
    known = [value for value in values if value is not None]
    whole = len(known) == len(values)
    if name in _VERSIONED and whole and len(known) == 1 and known[0] in _VERSIONS:
        return Read()
    if name == "git":
        return _read_git(words, known) if whole else None
    if name == "sed":
        fits = len(known) >= 2 and known[0] == "-n" and _SED_PRINT.fullmatch(known[1])
        return Read(_operands(known[2:])) if fits and whole and not _options(known[2:]) else None
    if name == "set":
        return Read() if whole and all(_SET.fullmatch(value) for value in known) else None
    facts = _FACTS.get(name)
    if facts is None or not (whole or facts.loose):
        return None
    if name == "find":
        return None if _read_known(name, facts, words, known) is None else _read_find(known)
    if name == "jq" and any(_MODULES.search(value) for value in known):
        return None
    return _read_known(name, facts, words, known)


def _read_find(known: list[str]) -> Read | None:
    """The paths of `find` stand before its tests."""
    start = 0
    while start < len(known) and _FIND_BEGIN.fullmatch(known[start]):
        start += 1
    if known[start : start + 1] in (["-D"], ["--"]):
        return None
    ends = [n for n, value in enumerate(known[start:]) if value[:1] in ("-", "(", "!", ",")]
    return Read(tuple(known[start:][: ends[0]] if ends else known[start:]))


def _options(values: Sequence[str]) -> list[str]:
    """The options among arguments: those before `--` that begin with a dash."""
    end = values.index("--") if "--" in values else len(values)
    return [value for value in values[:end] if value[:1] == "-" and value != "-"]


def _operands(values: Sequence[str]) -> tuple[str, ...]:
    options = set(_options(values))
    return tuple(value for value in values if value not in options and value != "--")


def _read_known(name: str, facts: _Facts, words: Sequence[Word], known: list[str]) -> Read | None:
    options, operands = _options(known), _operands(known)
    if any(_does_more(option, facts) for option in options):
        return None
    guarded = bool(facts.letters or facts.longs or facts.single_dash or facts.most is not None)
    if guarded and any(word.glob and word.source[:1] in "*?[" for word in words):
        return None  # a file's name may begin with a dash
    if facts.most is not None and (len(operands) > facts.most or any(w.glob for w in words)):
        return None
    if not facts.paths:
        return Read()
    skipped = 0 if any(_takes_no_pattern(option) for option in options) else facts.skip
    inside = [o.split("=", 1)[1] for o in options if "=" in o and not _NAMES.match(o)]
    glued = [option[2:] for option in options if option[:2] in ("-f", "-C") and option[2:]]
    paths = (*operands[skipped:], *inside, *glued)
    sweep = find_sweep(name, options, known)
    if sweep is not None and not is_path_sure(name, known, skipped):
        paths = (*paths, ".")
    return Read(paths, sweep)


def _takes_no_pattern(option: str) -> bool:
    """Whether the first operand may be a path too: an option holds the pattern, or asks for none.

    Letters may stand together, as in `-ie`, and long options may be cut short.
    """
    if option.startswith("--"):
        key = option[2:].split("=", 1)[0]
        return any(long.startswith(key) for long in _NO_PATTERN)
    return not {"e", "f", "C"}.isdisjoint(option[1:])


def _does_more(option: str, facts: _Facts) -> bool:
    if option in facts.single_dash:
        return True
    if option.startswith("--"):
        key = option[2:].split("=", 1)[0]
        return any(long.startswith(key) for long in facts.longs)  # they may be cut short
    if facts.single_dash:  # its options are words, not clusters of letters
        return False
    return not set(facts.letters).isdisjoint(option[1:])


def _read_git(words: Sequence[Word], known: list[str]) -> Read | None:
    while known and known[0] in ("--no-pager", "-P"):
        known = known[1:]
    if not known or any(word.glob and word.source[:1] in "*?[" for word in words):
        return None
    command, rest = known[0], known[1:]
    lists = _GIT_LISTS.get(command)
    if lists is not None:
        needs = command in ("stash", "worktree")
        fits = lists.issuperset(rest) and (rest or not needs)
        return Read(git=GitRead()) if fits else None
    more = _GIT.get(command)
    if more is None:
        return None
    for option in _options(rest):
        key = option.split("=", 1)[0]
        if any(never.startswith(key) and len(key) > 2 for never in _GIT_NEVER):
            return None
        if any(option.startswith(each) or each.startswith(key) for each in more):
            return None
    operands = _operands(rest)
    paths = tuple(name for value in operands for name in {value, value.rsplit(":", 1)[-1]})
    sweep = find_git_sweep(command, rest)
    if sweep is not None and command == "grep":
        paths = (*paths, ".")
    return Read(paths, sweep, find_git_read(command, rest))
