"""The user's own rules, held against the tools that there are: a mistyped name does nothing."""

import difflib
from collections.abc import Iterable, Iterator
from typing import Final

from towline_agent import Tool
from towline_server import Config, Finding, Policies

__all__ = ["SESSION_TOOLS", "check_rules", "warn_of_rules"]

SESSION_TOOLS: Final = ("ask_user", "read_memory", "spawn_agent", "todo_write", "write_memory")
"""Tools that a session adds by itself to those that are set up."""

_ANY: Final = "*"


def warn_of_rules(config: Config, tools: Iterable[Tool]) -> tuple[str, ...]:
    """A sentence for each rule that names no tool, the user's own for all folders.

    Args:
        config: Says where they stand.
        tools: The tools that are on.
    """
    rules, _ = Policies(config.data_dir, config.rules_file).own_now()
    known = {_ANY, *SESSION_TOOLS, *(tool.name for tool in tools)}
    return tuple(
        f"The rule {rule.text!r} in {str(config.rules_file)!r} does nothing: there is no tool "
        f"{rule.tool!r}{_suggest(rule.tool, known)}, unless a program of yours brings it."
        for rule in rules
        if rule.tool not in known
    )


def check_rules(config: Config, tools: Iterable[Tool]) -> Iterator[Finding]:
    """The same as findings, with what cannot be read; one that all is well where it is.

    Args:
        config: Says where they stand.
        tools: The tools that are on.
    """
    rules, problems = Policies(config.data_dir, config.rules_file).own_now()
    for problem in problems:
        said = f"{problem} Until it is mended everything asks."
        yield Finding(level="fault", check="rules", message=said)
    warnings = warn_of_rules(config, tools)
    for warning in warnings:
        yield Finding(level="warning", check="rules", message=warning)
    if not problems and not warnings:
        said = f"Your own rules ({len(rules)}) can be read, and each names a tool."
        yield Finding(level="ok", check="rules", message=said)


def _suggest(name: str, known: Iterable[str]) -> str:
    near = difflib.get_close_matches(name, sorted(known), n=2, cutoff=0.6)
    return f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
