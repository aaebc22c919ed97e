"""May this call run? Decides without asking, or says that a person must (A5.44, A5.69)."""

from typing import Final

import msgspec

from towline_agent.permissions.rules import Rule, match
from towline_protocol import Option

__all__ = ["MODES", "OPTIONS_ASKED", "Verdict", "judge", "offered_options"]

MODES: Final = ("ask", "auto")
"""`ask`: reads pass, all else asks. `auto`: all passes, denials excepted."""

OPTIONS_ASKED: Final = ("allow_once", "allow_session", "deny")
"""What a person is offered, in this order."""

_FREE: Final = frozenset({"read", "own"})
_DOES: Final = {
    "read": "only reads",
    "own": "touches nothing outside the conversation",
    "write": "changes files",
    "exec": "runs a program",
    "network": "reaches the network",
}
"""What an effect means, in words for people."""


class Verdict(msgspec.Struct, frozen=True):
    """What the gate says of one call."""

    action: str
    """`allow`, `ask` or `deny`."""
    reason: str
    """Which rule or mode said so; shown to people."""


def judge(
    *,
    mode: str,
    rules: tuple[Rule, ...],
    tool: str,
    effect: str,
    subject: str,
    reason: str | None = None,
) -> Verdict:
    """The verdict on one call: a denial anywhere wins, else the first match, else the mode (A5.48).

    Args:
        mode: One of `MODES`; an unknown one asks.
        rules: The session's rules, first match first.
        tool: The tool's name.
        effect: What the call does to the world.
        subject: What the rules are matched against.
        reason: Why a person is asked, if it is another reason than the effect.
    """
    matching = [rule for rule in rules if match(rule, tool, subject)]
    for rule in matching:
        if rule.action == "deny":
            return Verdict("deny", f"rule {rule.text!r}")
    if matching:
        return Verdict(matching[0].action, f"rule {matching[0].text!r}")
    if effect in _FREE:
        return Verdict("allow", f"it {_DOES[effect]}")
    if mode == "auto":
        return Verdict("allow", "the mode is 'auto'")
    return Verdict("ask", reason or f"It {_DOES.get(effect, 'does something unknown')}.")


def offered_options(tool: str, subject: str) -> tuple[Option, ...]:
    """The options of a request; each shows the rule it would store (A5.56)."""
    rule = Rule(action="allow", tool=tool, pattern=subject)
    return (
        Option(id="allow_once", label="Allow once"),
        Option(id="allow_session", label="Allow for this session", rule=rule.text),
        Option(id="deny", label="Deny"),
    )
