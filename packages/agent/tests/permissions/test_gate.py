"""The gate's verdicts."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.permissions.gate import (
    MODES,
    OPTIONS_ASKED,
    Verdict,
    judge,
    offered_options,
)
from towline_agent.permissions.rules import ACTIONS, Rule, match, parse_rule
from towline_agent.tools.tool import EFFECTS
from towline_protocol import DENY

RULES = st.builds(
    Rule,
    action=st.sampled_from(ACTIONS),
    tool=st.sampled_from(["a", "b", "*"]),
    pattern=st.sampled_from([None, "x", "y"]),
)


def _judge(mode: str, effect: str, *rules: str, tool: str = "a", subject: str = "x") -> Verdict:
    made = tuple(parse_rule(rule) for rule in rules)
    return judge(mode=mode, rules=made, tool=tool, effect=effect, subject=subject)


@pytest.mark.rules("A5.44")
def test_asking_is_the_mode_for_all_that_does_something() -> None:
    asked = {effect: _judge("ask", effect).action for effect in EFFECTS}
    assert asked == {
        "read": "allow",
        "own": "allow",
        "write": "ask",
        "exec": "ask",
        "network": "ask",
    }


@pytest.mark.rules("A5.44")
def test_in_auto_all_passes_that_no_rule_holds() -> None:
    assert {_judge("auto", effect).action for effect in EFFECTS} == {"allow"}
    assert _judge("auto", "exec", "deny a").action == "deny"
    assert _judge("auto", "exec", "ask a").action == "ask"


def test_an_unknown_mode_and_an_unknown_effect_ask() -> None:
    assert _judge("yolo", "exec").action == "ask"
    assert _judge("", "write").action == "ask"
    assert _judge("ask", "teleport").action == "ask"


@pytest.mark.rules("A5.48")
@given(st.lists(RULES, max_size=6), st.sampled_from([*MODES, "other"]), st.sampled_from(EFFECTS))
def test_a_denial_anywhere_wins_else_the_first_match_else_the_mode(
    rules: list[Rule], mode: str, effect: str
) -> None:
    verdict = judge(mode=mode, rules=tuple(rules), tool="a", effect=effect, subject="x")
    actions = [rule.action for rule in rules if match(rule, "a", "x")]
    if "deny" in actions:
        assert verdict.action == "deny"
    elif actions:
        assert verdict.action == actions[0]
    else:
        assert verdict == judge(mode=mode, rules=(), tool="a", effect=effect, subject="x")


@pytest.mark.rules("A5.69")
def test_the_reason_names_the_rule_or_the_mode() -> None:
    assert _judge("ask", "exec", "ask b", "allow a(x)").reason == "rule 'allow a(x)'"
    assert _judge("ask", "exec", "allow a", "deny *(x)").reason == "rule 'deny *(x)'"
    assert _judge("ask", "exec").reason == "It runs a program."
    assert "'auto'" in _judge("auto", "exec").reason
    other = judge(mode="ask", rules=(), tool="a", effect="write", subject="", reason="It is far.")
    assert other == Verdict("ask", "It is far.")


@pytest.mark.rules("A5.55", "A5.56")
def test_each_option_shows_the_rule_it_would_store() -> None:
    once, session, deny = offered_options("run_program", "rm -r (x)")
    assert tuple(option.id for option in (once, session, deny)) == OPTIONS_ASKED
    assert (once.rule, deny.rule, deny.id) == (None, None, DENY)
    assert session.rule == "allow run_program(rm -r (x))"


@pytest.mark.rules("R39", "A5.56")
@given(st.text(max_size=30), st.text(max_size=30))
def test_a_stored_rule_allows_what_was_seen_and_nothing_else(seen: str, other: str) -> None:
    (_, session, _) = offered_options("run", seen)
    assert session.rule is not None
    rule = parse_rule(session.rule)
    for mode, effect in itertools.product(MODES, EFFECTS):
        verdict = judge(mode=mode, rules=(rule,), tool="run", effect=effect, subject=seen)
        assert verdict.action == "allow"
    assert match(rule, "run", other) is (other == seen)
    assert not match(rule, "run2", seen)


@pytest.mark.rules("R39")
def test_a_compound_command_is_stored_as_a_whole() -> None:
    (_, session, _) = offered_options("run", "git status && rm -rf ./tmp")
    assert session.rule is not None
    rule = session.rule
    assert _judge("ask", "exec", rule, tool="run", subject="rm -rf ./other").action == "ask"
    assert _judge("ask", "exec", rule, tool="run", subject="git status").action == "ask"
