"""Permission rules: `allow|ask|deny tool(pattern)` (A5.47)."""

import re
from typing import Final

import msgspec

from towline_protocol import UsageError

__all__ = ["ACTIONS", "Rule", "match", "parse_rule"]

ACTIONS: Final = ("allow", "ask", "deny")
"""What a rule can say."""

_TOOL: Final = r"[A-Za-z0-9_-]{1,64}|\*"
_SHAPE: Final = r"(?s)(\S+) ([^\s(]+)(?:\((.*)\))?"
"""The pattern goes to the last bracket, so it may hold brackets, spaces and line ends itself."""


class Rule(msgspec.Struct, frozen=True, kw_only=True):
    """One rule; a bad one can't be made, so none is passed over in silence (`UsageError`)."""

    action: str
    """`allow`, `ask` or `deny`."""
    tool: str
    """The tool's name, or `*`."""
    pattern: str | None = None
    """What the call's subject must equal; `None` for any. A rule that people store from a prompt
    names exactly what they saw (R39)."""

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise UsageError(
                f"{self.action!r} is nothing a permission rule can say; use `allow`, `ask` or "
                "`deny`."
            )
        if re.fullmatch(_TOOL, self.tool) is None:
            raise UsageError(
                f"{self.tool!r} in a permission rule is no tool's name; use the name or `*`."
            )

    @property
    def text(self) -> str:
        """The rule as people read and write it."""
        return f"{self.action} {self.tool}" + ("" if self.pattern is None else f"({self.pattern})")


def parse_rule(text: str) -> Rule:
    """A rule out of its text.

    Raises:
        UsageError: The text is no rule.
    """
    found = re.fullmatch(_SHAPE, text.strip())
    if found is None:
        raise UsageError(
            f"{text!r} is not a permission rule; write `allow|ask|deny tool(pattern)`."
        )
    return Rule(action=found[1], tool=found[2], pattern=found[3])


def match(rule: Rule, tool: str, subject: str) -> bool:
    """Whether a rule speaks of a call."""
    return rule.tool in ("*", tool) and (rule.pattern is None or rule.pattern == subject)
