"""How far a command reads: all of a folder, or all that git keeps (A5.67)."""

import re
from collections.abc import Sequence
from typing import Final

from towline_agent.permissions.ground import GitRead, Sweep

__all__ = ["find_git_read", "find_git_sweep", "find_sweep", "is_path_sure"]

_GREP: Final = frozenset({"grep", "egrep", "fgrep"})
_VALUES: Final = {**dict.fromkeys(_GREP, "ABCDdefm"), "rg": "ABCEMTdefgjmrt", "diff": "CDFISUWXx"}
"""Letters of short options that take a value, maybe the next word."""
_SWITCHES: Final = frozenset(
    {
        "--hidden", "--no-ignore", "--ignore-case", "--line-number", "--files-with-matches",
        "--count", "--fixed-strings", "--word-regexp", "--recursive", "--dereference-recursive",
        "--invert-match", "--no-heading", "--smart-case", "--follow", "--only-matching", "--json",
        "--extended-regexp", "--perl-regexp", "--no-filename", "--with-filename", "--text",
        "--no-messages", "--brief", "--unified", "--new-file", "--no-ignore-vcs", "--multiline",
    }
)  # fmt: skip
"""Long options that take none."""
_RG_SWEEPS_NOT: Final = frozenset({"--files", "--type-list", "--version", "--help"})
_PRINTS: Final = frozenset({"diff", "diff-tree", "diff-index", "diff-files", "show", "grep"})
"""Commands of git that print what files hold, unless told not to."""
_MAY_PRINT: Final = frozenset({"log", "whatchanged"})
_PAST: Final = frozenset({"show", "log", "whatchanged", "cat-file", "diff-tree"})
"""Commands that print of the history, whatever they are given."""
_QUIET: Final = frozenset(
    {
        "--stat", "--name-only", "--name-status", "--numstat", "--shortstat", "--summary",
        "--no-patch", "-s", "--quiet",
    }
)  # fmt: skip
_PATCH_LONG: Final = (
    "--patch", "--unified", "--cc", "--check", "--word-diff", "--color-words", "--binary",
    "--function-context", "--remerge-diff", "--diff-merges", "--dd", "--patch-with-stat",
    "--patch-with-raw", "--combined-all-paths",
)  # fmt: skip
_PATCH_SHORT: Final = ("-p", "-u", "-U", "-W", "-c", "-L", "-m")


def find_sweep(name: str, options: Sequence[str], values: Sequence[str]) -> Sweep | None:
    """How a command reads the folders that it is given; `None` when it reads none whole.

    Args:
        name: The program.
        options: Its options as they are written.
        values: All its arguments.
    """
    if name in _GREP:
        return _sweep_of_grep(options)
    if name == "rg":
        return _sweep_of_rg(options, values)
    if name == "diff" and any(_has(option, "r", "--recursive") for option in options):
        return Sweep(links=True)
    return None


def is_path_sure(name: str, values: Sequence[str], skip: int) -> bool:
    """Whether some word is a path for sure: else the command may read the folder it stands in.

    Args:
        name: The program.
        values: Its arguments.
        skip: Operands ahead of the paths.
    """
    sure, before, ended = 0, "", False
    for value in values:
        is_option = value[:1] == "-" and value != "-" and not ended
        if not is_option:
            sure += ended or not _takes_value(name, before)
        ended = ended or value == "--"
        before = value if is_option else ""
    return sure > skip


def _takes_value(name: str, option: str) -> bool:
    """Whether a word behind an option may be its value."""
    if not option:
        return False
    if option.startswith("--"):
        return "=" not in option and option not in _SWITCHES and option != "--"
    letters = _VALUES.get(name, "")
    found = [place for place, letter in enumerate(option) if place and letter in letters]
    return bool(found) and found[0] == len(option) - 1


def _has(option: str, letters: str, *longs: str) -> bool:
    """Whether an option is one of these, in a cluster of letters or cut short too."""
    if option.startswith("--"):
        key = option.split("=", 1)[0]
        return len(key) > 2 and any(long.startswith(key) for long in longs)
    return not set(letters).isdisjoint(option[1:])


def _sweep_of_grep(options: Sequence[str]) -> Sweep | None:
    whole = ("--recursive", "--dereference-recursive", "--directories")
    if not any(_has(option, "rRd", *whole) for option in options):
        return None
    return Sweep(
        links=any(_has(option, "R", "--dereference-recursive") for option in options),
        globs=_globs(options, "--include=", "--exclude="),
        folders=tuple(o.partition("=")[2] for o in options if o.startswith("--exclude-dir=")),
    )


def _globs(options: Sequence[str], wanted: str, unwanted: str) -> tuple[str, ...]:
    found: list[str] = []
    for option in options:
        if option.startswith(wanted):
            found.append(option.removeprefix(wanted))
        elif option.startswith(unwanted):
            found.append(f"!{option.removeprefix(unwanted)}")
    return tuple(found)


def _sweep_of_rg(options: Sequence[str], values: Sequence[str]) -> Sweep | None:
    if not _RG_SWEEPS_NOT.isdisjoint(options):
        return None
    wide = sum(_count_wide(option) for option in options)
    # a pattern of names that is wanted lets hidden and ignored files in
    names = any(_has(option, "g", "--glob", "--iglob") for option in options)
    return Sweep(
        hidden=wide > 1 or names or any(_has(option, ".", "--hidden") for option in options),
        ignored=wide > 0 or names or any(option.startswith("--no-i") for option in options),
        links=any(_has(option, "L", "--follow") for option in options),
        globs=_plain_globs(options, values),
    )


def _count_wide(option: str) -> int:
    if option.startswith("--"):
        return int(len(option) > 2 and "--unrestricted".startswith(option))
    return option.count("u")


def _plain_globs(options: Sequence[str], values: Sequence[str]) -> tuple[str, ...]:
    """The patterns of `rg`, where all of them are written in the ways that are read here."""
    named = [option for option in options if _has(option, "g", "--glob", "--iglob")]
    found: list[str] = []
    for option, after in zip(values, (*values[1:], ""), strict=True):
        if option in ("-g", "--glob"):
            found.append(after)
        elif option in named and re.match(r"-g.|--glob=.", option):
            found.append(re.sub(r"^(-g|--glob)=?", "", option))
    return tuple(found) if len(found) == len(named) else ()


def find_git_read(command: str, values: Sequence[str]) -> GitRead:
    """How a command of git reads.

    Args:
        command: Such as `log`.
        values: What follows it.
    """
    end = values.index("--") if "--" in values else len(values)
    options = [value for value in values[:end] if value[:1] == "-"]
    operands = [value for value in values[:end] if value[:1] != "-"]
    if command == "grep":
        operands = operands[0 if any(_has(o, "ef") for o in options) else 1 :]
    paths = tuple(values[end + 1 :])
    if command == "cat-file":
        prints = _QUIET_BLOB.isdisjoint(options)
    elif any(_is_patch(option) for option in options):
        prints = command in _PRINTS | _MAY_PRINT
    else:
        prints = command in _PRINTS and _QUIET.isdisjoint(o.split("=")[0] for o in options)
    return GitRead(
        prints=prints,
        history=command in _PAST,
        operands=tuple(operands),
        paths=paths,
    )


def find_git_sweep(command: str, values: Sequence[str]) -> Sweep | None:
    """How a command of git reads files that it does not track; `None` when it reads none.

    Args:
        command: Such as `grep`.
        values: What follows it.
    """
    options = [value for value in values if value[:1] == "-"]
    if command == "grep":
        wide = any(_has(option, "", *_UNTRACKED) for option in options)
        return Sweep() if wide else None
    if command != "diff":
        return None
    two = len(values) - len(options) > 1  # outside a repository these are two folders
    return Sweep() if two or any(_has(option, "", "--no-index") for option in options) else None


_UNTRACKED: Final = ("--no-index", "--untracked", "--no-exclude-standard")
_QUIET_BLOB: Final = frozenset({"-t", "-s", "-e"})


def _is_patch(option: str) -> bool:
    if option.startswith("--"):
        key = option.split("=", 1)[0]
        return len(key) > 3 and any(long.startswith(key) for long in _PATCH_LONG)
    return option.startswith(_PATCH_SHORT)
