"""May this call run? Decides without asking, or says that a person must (A5.44, A5.69)."""

import functools
from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent.permissions.part import Part
from towline_agent.permissions.policy import Policy
from towline_agent.permissions.rules import Rule, exact_rule, match, might_match, names_something
from towline_protocol import Option

__all__ = ["OPTIONS_ASKED", "Case", "Verdict", "judge", "offered_options"]

OPTIONS_ASKED: Final = ("allow_once", "allow_session", "allow_always", "deny")
"""What a person may be offered, in this order."""

_FREE: Final = frozenset({"read", "own"})
_DOES: Final = {
    "read": "only reads",
    "own": "touches nothing outside the conversation",
    "write": "changes files",
    "exec": "runs a program",
    "network": "reaches the network",
}
"""What an effect means, in words for people."""
_STRICTNESS: Final = {"allow": 0, "ask": 1, "deny": 2}
_REASONS_TOLD: Final = 3
"""Reasons of one request: more would not be read."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """All that a verdict depends on."""

    tool: str
    """The tool's name."""
    effect: str
    """What the call does to the world, where a part does not say otherwise."""
    parts: tuple[Part, ...]
    """What it would do; at least one."""
    mode: str
    """One of `MODES`; an unknown one asks."""
    rules: tuple[Rule, ...] = ()
    """The session's rules, first match first."""
    policy: Policy = Policy()
    """The rules that stand beside them."""
    root: str = "/"
    """The folder that relative paths begin at."""
    whole: str | None = None
    """The call in one line, if a rule may name it as one."""
    reason: str | None = None
    """Why a person is asked, if it is another reason than the effect."""
    looked: bool = False
    """Whether the tool looked at the world to say what it would do."""


class Verdict(msgspec.Struct, frozen=True):
    """What the gate says of one call."""

    action: str
    """`allow`, `ask` or `deny`."""
    reason: str
    """Which rule, mode or caution said so; shown to people."""
    asking: tuple[Part, ...] = ()
    """The parts that a person must allow."""


def judge(case: Case) -> Verdict:
    """The verdict on a call: each part by itself, and the strictest wins (A5.65)."""
    verdicts = [_judge_part(case, part) for part in case.parts]
    strictest = functools.reduce(_stricter, verdicts)
    if strictest.action != "ask":
        return strictest
    found = zip(case.parts, verdicts, strict=True)
    asking = [(part, verdict.reason) for part, verdict in found if verdict.action == "ask"]
    reasons = dict.fromkeys(reason for _, reason in asking)
    told = list(reasons)[:_REASONS_TOLD]
    if len(reasons) > len(told):
        told.append(f"There are {len(reasons) - len(told)} more reasons.")
    return Verdict("ask", " ".join(told), tuple(part for part, _ in asking))


def _judge_part(case: Case, part: Part) -> Verdict:
    """A denial anywhere wins, else the first match, else the mode (A5.48)."""
    policy = case.policy
    counted = (*case.rules, *policy.user, *(policy.project if policy.trusted else ()))
    verdict = _by_rules(case, part, counted) or _by_mode(case, part)
    if case.mode == "plan":
        verdict = _stricter(verdict, _deny_by_mode(case, part))
    if not policy.trusted:  # what a stranger's folder says may only hold back (A5.49, A5.50)
        verdict = _stricter(verdict, _by_rules(case, part, policy.project))
    if part.certain is not None:
        verdict = _stricter(verdict, _by_chance(case, part))
    if policy.broken and _effect(case, part) != "own":
        verdict = _stricter(verdict, Verdict("ask", policy.broken[0]))
    return verdict


def _stricter(verdict: Verdict, other: Verdict | None) -> Verdict:
    if other is None or _STRICTNESS[other.action] <= _STRICTNESS[verdict.action]:
        return verdict
    return other


def _effect(case: Case, part: Part) -> str:
    return part.effect or case.effect


def _by_rules(case: Case, part: Part, rules: Sequence[Rule]) -> Verdict | None:
    """What rules say of a part; `None` when none of them speaks of it."""
    if not rules:
        return None
    matching = [
        rule for rule in rules if match(rule, case.tool, part, root=case.root, whole=case.whole)
    ]
    for rule in matching:
        if rule.action == "deny":
            return Verdict("deny", f"rule {rule.text!r}")
    for rule in matching:
        if part.caution is None or rule.action != "allow" or _lets_pass(rule, part):
            return Verdict(rule.action, _ruled(rule))
    return None


def _by_chance(case: Case, part: Part) -> Verdict | None:
    """A rule might speak of a command of which only the run tells the words."""
    for rule in (*case.rules, *case.policy.user, *case.policy.project):
        if might_match(rule, case.tool, part):
            return Verdict("ask", f"The rule {rule.text!r} might speak of it.")
    return None


def _ruled(rule: Rule) -> str:
    return f"The rule {rule.text!r} asks." if rule.action == "ask" else f"rule {rule.text!r}"


def _lets_pass(rule: Rule, part: Part) -> bool:
    """Whether a rule is explicit enough for a part that calls for caution."""
    if part.firm or not names_something(rule):
        return False
    if part.kind == "path":
        from towline_agent.permissions.secret import is_secret  # few rules come so far

        if any(is_secret(name) for name in (part.subject, *part.also)):
            assert rule.pattern is not None
            return is_secret(rule.pattern.removeprefix("=")) or rule.pattern.startswith("=")
    return True


def _by_mode(case: Case, part: Part) -> Verdict:
    effect = _effect(case, part)
    if part.caution is not None:
        return Verdict("ask", part.caution)
    if effect in _FREE:
        return Verdict("allow", f"it {_DOES[effect]}")
    if case.mode == "auto":
        return Verdict("allow", "the mode is 'auto'")
    if case.mode == "accept_edits" and part.kind == "path" and effect == "write":
        return Verdict("allow", "the mode is 'accept_edits'")
    return Verdict("ask", case.reason or f"It {_DOES.get(effect, 'does something unknown')}.")


def _deny_by_mode(case: Case, part: Part) -> Verdict | None:
    """In `plan` nothing is done, whatever a rule allows."""
    if _effect(case, part) in _FREE:
        return None
    return Verdict(
        "deny",
        "the mode 'plan', in which nothing is changed or run: describe what you would do, step by "
        "step, and let the person decide",
    )


def offered_options(
    tool: str,
    asking: tuple[Part, ...],
    *,
    whole: str | None = None,
    stores: bool = False,
) -> tuple[Option, ...]:
    """The options of a request; each shows the rule it would store, and stores no other (A5.56).

    A rule names one thing that was seen, and that exactly. So "always" is offered only where one
    part asks, and several parts are stored as the one line that they are, for the session alone
    (R39).

    Args:
        tool: The tool's name.
        asking: The parts that ask.
        whole: The call in one line, if a rule may name it as one.
        stores: Whether somebody keeps the rule of "always".
    """
    subject = asking[0].subject if len(asking) == 1 else whole
    options = [Option(id="allow_once", label="Allow once")]
    if subject is not None and not any(part.firm for part in asking):
        rule = exact_rule("allow", tool, subject).text
        options.append(Option(id="allow_session", label="Allow for this session", rule=rule))
        if stores and len(asking) == 1:
            options.append(
                Option(id="allow_always", label="Always allow in this project", rule=rule)
            )
    return (*options, Option(id="deny", label="Deny"))
