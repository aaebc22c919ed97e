"""Programs that run another command, such as `sudo`, `env`, `xargs`, `find -exec`, `sh -c`."""

import re
from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent.permissions.shell.checks import Unreadable
from towline_agent.permissions.shell.words import Word, join_words

__all__ = ["RESERVED", "Inner", "find_inner", "is_transparent", "program_name"]


class Inner(msgspec.Struct, frozen=True):
    """A command in a command."""

    words: tuple[Word, ...] = ()
    """The program that is run and its arguments."""
    text: str | None = None
    """Or a command line that a shell reads."""
    assigns: tuple[tuple[str, Word], ...] = ()
    """Variables that are set for it."""


class _Options(msgspec.Struct, frozen=True):
    """How a wrapper is called, before the command that it runs."""

    with_value: str = ""
    """Letters of options that take the next word, or the rest of theirs."""
    without: str = ""
    """Letters of options that take nothing."""
    long_with_value: tuple[str, ...] = ()
    """Long options that take the next word where there is no `=`."""
    long_without: tuple[str, ...] = ()
    """Long options that take nothing."""
    operands: int = 0
    """Words before the command, such as the seconds of `timeout`."""
    assigns: bool = False
    """Whether `NAME=value` may stand before the command."""


_WRAPPERS: Final = {
    "sudo": _Options(
        "ughpCTUrt", "AbEeHiknPSsvV", ("user", "group", "host", "prompt"),
        ("preserve-env", "set-home", "login", "non-interactive", "stdin", "background"),
        assigns=True,
    ),
    "doas": _Options("uC", "Lns"),
    "nohup": _Options(),
    "setsid": _Options("", "cfw", (), ("ctty", "fork", "wait")),
    "nice": _Options("n", "0123456789", ("adjustment",)),
    "ionice": _Options("cn", "t", ("class", "classdata"), ("ignore",)),
    "time": _Options("fo", "apvq", ("format", "output"), ("portability", "verbose", "append")),
    "command": _Options("", "p"),
    "builtin": _Options(),
    "exec": _Options("a", "cl"),
    "env": _Options(
        "u", "i0v", ("unset",), ("ignore-environment", "null", "debug"), assigns=True
    ),
    "timeout": _Options(
        "sk", "v", ("signal", "kill-after"), ("foreground", "preserve-status", "verbose"), 1
    ),
    "stdbuf": _Options("ioe", "", ("input", "output", "error")),
    "xargs": _Options(
        "IEndLPsa", "0rtxpo",
        ("replace", "max-args", "delimiter", "max-lines", "max-procs", "max-chars", "arg-file"),
        ("null", "no-run-if-empty", "verbose", "exit", "interactive", "open-tty"),
    ),
    "chrt": _Options("", "abfior", (), ("batch", "fifo", "idle", "other", "rr"), 1),
    "taskset": _Options("", "ac", (), ("all-tasks", "cpu-list"), 1),
    "chroot": _Options("", "", ("userspec", "groups"), ("skip-chdir",), 1),
    "coproc": _Options(),
    "busybox": _Options(),
    "toybox": _Options(),
    "caffeinate": _Options("tw", "disum"),
    "unbuffer": _Options("", "p"),
    "winpty": _Options(),
    "catchsegv": _Options(),
    "noglob": _Options(),
    "nocorrect": _Options(),
    "-": _Options(),
}  # fmt: skip
"""Programs whose arguments are a command; each word before it must be understood."""
_TRANSPARENT: Final = frozenset(
    {
        "nohup", "setsid", "nice", "ionice", "time", "command", "builtin", "env", "timeout",
        "stdbuf", "noglob", "nocorrect",
    }
)  # fmt: skip
"""Wrappers that add nothing that needs a permission of its own."""
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"})
_EXECUTORS: Final = {
    "find": frozenset({"-exec", "-execdir", "-ok", "-okdir"}),
    "fd": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
    "fdfind": frozenset({"-x", "-X", "--exec", "--exec-batch"}),
}
"""Programs that take a command behind an option."""
_LINES: Final = frozenset({"eval", "watch", "su", "script", "parallel", "flock", "runuser"})
"""Programs that give their arguments to a shell in ways of their own; `eval` alone is plain."""
RESERVED: Final = frozenset(
    {
        "!", "{", "}", "(", "if", "then", "else", "elif", "fi", "while", "until", "for", "do",
        "done", "case", "esac", "in", "select", "function", "[[", "]]", "time", "coproc",
    }
)  # fmt: skip
"""Words that are syntax to a shell where a command may begin."""
_ASSIGN: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=", re.ASCII)


def program_name(word: Word) -> str | None:
    """A program's name without its folder; `None` when only the run tells."""
    return None if word.value is None else word.value.rsplit("/", 1)[-1]


def is_transparent(name: str) -> bool:
    """Whether a wrapper adds nothing to what the command in it does."""
    return name in _TRANSPARENT


def find_inner(words: tuple[Word, ...]) -> list[Inner]:
    """The commands that a command runs; none for one that runs only itself.

    Raises:
        Unreadable: It runs something that can't be made out.
    """
    name = program_name(words[0])
    if name is None:
        return []
    if name in _SHELLS:
        return _of_shell(words)
    if name in _EXECUTORS:
        return _of_executor(words, _EXECUTORS[name])
    if name == "eval":
        return [Inner(text=" ".join(_known(words[1:])))] if words[1:] else []
    if name == "trap":
        return _of_trap(words)
    if name == "alias":
        return [Inner(text=text.split("=", 1)[1]) for text in _known(words[1:]) if "=" in text]
    if name in _LINES:
        raise Unreadable(f"What {join_words(words)[:80]!r} runs can't be made out.")
    options = _WRAPPERS.get(name)
    if options is None or (name == "command" and _only_asks(words)):
        return []
    return _of_wrapper(words, options)


def _only_asks(words: Sequence[Word]) -> bool:
    return len(words) > 1 and words[1].value in ("-v", "-V")


def _known(words: Sequence[Word]) -> list[str]:
    values = [word.value for word in words if word.value is not None and not word.glob]
    if len(values) != len(words):
        raise Unreadable(f"What {join_words(words)[:80]!r} runs is known only when it runs.")
    return values


def _of_shell(words: tuple[Word, ...]) -> list[Inner]:
    """`sh -c 'line'`; a shell that runs a script or reads its input runs what can't be seen."""
    for place, word in enumerate(words[1:], 1):
        if word.value is None:
            raise Unreadable(f"What {join_words(words)[:80]!r} runs is known only when it runs.")
        if word.value[:1] not in ("-", "+") or word.value in ("-", "--"):
            return []  # a script: the command itself is judged
        if word.value.startswith("--"):
            if word.value.lstrip("-") in ("rcfile", "init-file"):
                raise Unreadable("A shell that reads another start file runs what can't be seen.")
            continue
        if "c" in word.value:
            lines = [w for w in words[place + 1 :] if w.value is None or w.value[:1] not in "-+"]
            return [Inner(text=_known(lines[:1])[0])] if lines else []
        if word.value[-1:] in "oO":
            raise Unreadable("Options of a shell that take words are not read.")
    return []


def _of_executor(words: tuple[Word, ...], signs: frozenset[str]) -> list[Inner]:
    found: list[Inner] = []
    place = 1
    while place < len(words):
        value = words[place].value
        place += 1
        if value is None:
            continue
        if value not in signs:
            if any(value.startswith(f"{sign}=") for sign in signs):
                raise Unreadable(f"What {join_words(words)[:80]!r} runs can't be made out.")
            continue
        end = place
        while end < len(words) and words[end].value not in (";", "+"):
            end += 1
        found.append(Inner(words=_opened(words[place:end])))
        place = end + 1
    return found


def _opened(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """A command whose `{}` stands for what is found."""
    opened = tuple(
        Word(word.source, None) if word.value is not None and "{" in word.value else word
        for word in words
    )
    if not opened or opened[0].value is None:
        raise Unreadable("What is run for each file is known only when it runs.")
    return opened


def _of_trap(words: tuple[Word, ...]) -> list[Inner]:
    texts = _known(words[1:])
    return [Inner(text=texts[0])] if len(texts) > 1 and texts[0] not in ("", "-", "-p") else []


def _of_wrapper(words: tuple[Word, ...], options: _Options) -> list[Inner]:
    name = program_name(words[0]) or ""
    place = _skip_options(words, options, name)
    assigns: list[tuple[str, Word]] = []
    while options.assigns and place < len(words):
        value = words[place].value
        if value is None or _ASSIGN.match(value) is None:
            break
        key, _, text = value.partition("=")
        assigns.append((key, Word(text, text)))
        place += 1
    place += options.operands
    rest = words[place:]
    if name == "time" and rest and rest[0].value == "!":
        rest = rest[1:]
    if not rest:
        return []
    if rest[0].value in RESERVED:
        raise Unreadable(f"What {join_words(words)[:80]!r} runs can't be made out.")
    if rest[0].value is None:
        raise Unreadable(f"What {join_words(words)[:80]!r} runs is known only when it runs.")
    if name == "xargs":
        rest = (*_opened_for_xargs(words, rest), Word("…", None))
    return [Inner(words=rest, assigns=tuple(assigns))]


def _opened_for_xargs(words: tuple[Word, ...], rest: tuple[Word, ...]) -> tuple[Word, ...]:
    """With `-I x` each `x` in the command stands for a line of the input."""
    before = words[1 : len(words) - len(rest)]
    if not any((word.value or "")[:2] in ("-I", "-i", "--") for word in before):
        return rest
    if len(rest) > 1 and program_name(rest[0]) in _SHELLS:
        raise Unreadable("A shell that is given lines of an input runs what can't be seen.")
    return rest[:1] + tuple(Word(word.source, None) for word in rest[1:])


def _skip_options(words: tuple[Word, ...], options: _Options, name: str) -> int:
    place = 1
    while place < len(words):
        value = words[place].value
        if value is None:
            break
        if value == "--":
            return place + 1
        if value[:1] != "-" or value == "-":
            break
        place += _option_length(value, options, name)
    return place


def _option_length(value: str, options: _Options, name: str) -> int:
    """Words that an option takes, itself included."""
    if value.startswith("--"):
        key, equals, _ = value[2:].partition("=")
        if key in options.long_with_value:
            return 1 if equals else 2
        if key in options.long_without:
            return 1
    else:
        for place, letter in enumerate(value[1:], 1):
            if letter in options.with_value:
                return 1 if value[place + 1 :] else 2
            if letter not in options.without:
                break
        else:
            return 1
    raise Unreadable(f"The option {value!r} of {name!r} is not known here.")
