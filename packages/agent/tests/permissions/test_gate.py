"""The gate's verdicts."""

import itertools
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.permissions.gate import (
    OPTIONS_ASKED,
    Case,
    Verdict,
    judge,
    offered_options,
)
from towline_agent.permissions.part import Part
from towline_agent.permissions.policy import MODES, Policy
from towline_agent.permissions.rules import ACTIONS, Rule, match, parse_rule
from towline_agent.tools.tool import EFFECTS
from towline_protocol import DENY

RULES = st.builds(
    Rule,
    action=st.sampled_from(ACTIONS),
    tool=st.sampled_from(["a", "b", "*"]),
    pattern=st.sampled_from([None, "x", "y"]),
)
LISTS = st.lists(RULES, max_size=4).map(tuple)
STRICTNESS = {"allow": 0, "ask": 1, "deny": 2}


def parse(*rules: str) -> tuple[Rule, ...]:
    return tuple(parse_rule(rule) for rule in rules)


def decide(mode: str, effect: str, *rules: str, part: Part | str = "x", **facts: Any) -> Verdict:
    """The verdict on a call of the tool `a` that does one thing."""
    part = Part(subject=part) if isinstance(part, str) else part
    made = parse(*rules)
    return judge(Case(tool="a", effect=effect, parts=(part,), mode=mode, rules=made, **facts))


@pytest.mark.rules("A5.44")
def test_asking_is_the_mode_for_all_that_does_something() -> None:
    asked = {effect: decide("ask", effect).action for effect in EFFECTS}
    assert asked == {
        "read": "allow",
        "own": "allow",
        "write": "ask",
        "exec": "ask",
        "network": "ask",
    }


@pytest.mark.rules("A5.44")
def test_in_auto_all_passes_that_no_rule_holds() -> None:
    assert {decide("auto", effect).action for effect in EFFECTS} == {"allow"}
    assert decide("auto", "exec", "deny a").action == "deny"
    assert decide("auto", "exec", "ask a").action == "ask"


@pytest.mark.rules("A5.44")
def test_accept_edits_lets_changes_of_files_pass_and_nothing_else() -> None:
    path = Part(subject="src/a.py", kind="path")
    assert decide("accept_edits", "write", part=path).action == "allow"
    assert decide("accept_edits", "read").action == "allow"
    assert decide("accept_edits", "write").action == "ask"  # no path: nobody knows what it changes
    assert decide("accept_edits", "exec").action == "ask"
    assert decide("accept_edits", "network").action == "ask"
    outside = Part(subject="/etc/a", kind="path", caution="It lies outside.")
    assert decide("accept_edits", "write", part=outside) == Verdict(
        "ask", "It lies outside.", (outside,)
    )


@pytest.mark.rules("A5.44")
def test_in_plan_nothing_but_reads_passes_whatever_a_rule_allows() -> None:
    found = {effect: decide("plan", effect, "allow a").action for effect in EFFECTS}
    assert found == {
        "read": "allow",
        "own": "allow",
        "write": "deny",
        "exec": "deny",
        "network": "deny",
    }
    assert "describe what you would do" in decide("plan", "write").reason


def test_an_unknown_mode_and_an_unknown_effect_ask() -> None:
    assert decide("yolo", "exec").action == "ask"
    assert decide("", "write").action == "ask"
    assert decide("ask", "teleport").action == "ask"
    assert decide("plan", "teleport").action == "deny"


@pytest.mark.rules("A5.48")
@given(LISTS, LISTS, LISTS, st.sampled_from([*MODES, "other"]), st.sampled_from(EFFECTS))
def test_a_denial_anywhere_wins_else_the_first_match_else_the_mode(
    session: tuple[Rule, ...],
    user: tuple[Rule, ...],
    project: tuple[Rule, ...],
    mode: str,
    effect: str,
) -> None:
    policy = Policy(user=user, project=project, trusted=True)
    facts: dict[str, Any] = {"tool": "a", "effect": effect, "parts": (Part(subject="x"),)}
    verdict = judge(Case(mode=mode, rules=session, policy=policy, **facts))
    rules = (*session, *user, *project)
    actions = [rule.action for rule in rules if match(rule, "a", "x")]
    by_mode = judge(Case(mode=mode, **facts))
    if "deny" in (*actions, by_mode.action):
        assert verdict.action == "deny"
    elif actions:
        assert verdict.action == actions[0]
    else:
        assert verdict == by_mode


@pytest.mark.rules("A5.49", "A5.50")
@given(LISTS, LISTS, LISTS, st.sampled_from(MODES), st.sampled_from(EFFECTS), st.booleans())
def test_an_untrusted_projects_rules_only_make_things_stricter(
    session: tuple[Rule, ...],
    user: tuple[Rule, ...],
    project: tuple[Rule, ...],
    mode: str,
    effect: str,
    careful: bool,
) -> None:
    part = Part(subject="x", caution="Careful." if careful else None)
    facts: dict[str, Any] = {
        "tool": "a", "effect": effect, "parts": (part,), "mode": mode, "rules": session,
    }  # fmt: skip
    without = judge(Case(policy=Policy(user=user), **facts))
    verdict = judge(Case(policy=Policy(user=user, project=project), **facts))
    assert STRICTNESS[verdict.action] >= STRICTNESS[without.action]
    if any(rule.action == "deny" and match(rule, "a", "x") for rule in project):
        assert verdict.action == "deny"


@pytest.mark.rules("A5.65")
@given(st.lists(st.sampled_from(["p", "q", "r"]), min_size=1, max_size=5))
def test_the_strictest_part_decides(subjects: list[str]) -> None:
    rules = parse("allow a(p)", "ask a(q)", "deny a(r)")
    parts = tuple(Part(subject=subject) for subject in subjects)
    verdict = judge(Case(tool="a", effect="exec", parts=parts, mode="ask", rules=rules))
    wanted = "deny" if "r" in subjects else "ask" if "q" in subjects else "allow"
    assert verdict.action == wanted
    if wanted == "ask":
        assert {part.subject for part in verdict.asking} == {"q"}


@pytest.mark.rules("A5.65")
def test_of_two_parts_that_are_denied_the_first_one_is_told() -> None:
    parts = (Part(subject="p"), Part(subject="q"), Part(subject="r"))
    rules = parse("deny a(r)", "deny a(q)")
    verdict = judge(Case(tool="a", effect="exec", parts=parts, mode="auto", rules=rules))
    assert (verdict.action, verdict.reason) == ("deny", "rule 'deny a(q)'")


@pytest.mark.rules("A5.67", "A5.69")
@pytest.mark.parametrize("mode", ["ask", "accept_edits", "auto"])
def test_what_calls_for_caution_asks_in_every_mode_unless_a_rule_names_it(mode: str) -> None:
    part = Part(subject="/etc/hosts", kind="path", effect="read", caution="It lies outside.")
    assert decide(mode, "read", part=part) == Verdict("ask", "It lies outside.", (part,))
    for vague in ("allow a", "allow *", "allow a(/**)", "allow *(**)", "allow a(*)"):
        assert decide(mode, "read", vague, part=part).action == "ask"
    for explicit in ("allow a(/etc/**)", "allow a(=/etc/hosts)", "allow *(/etc/hosts)"):
        assert decide(mode, "read", explicit, part=part).action == "allow"


@pytest.mark.rules("A5.67")
def test_a_secret_is_let_pass_only_by_a_rule_that_names_secrets() -> None:
    part = Part(subject="src/.env", kind="path", effect="read", caution="It may hold secrets.")
    for vague in ("allow a(src/**)", "allow a(src/*)", "allow a(**/*)", "allow a"):
        assert decide("auto", "read", vague, part=part).action == "ask"
    for explicit in ("allow a(src/.env)", "allow a(**/.env)", "allow a(=src/.env)"):
        assert decide("auto", "read", explicit, part=part).action == "allow"


@pytest.mark.rules("A5.54")
@pytest.mark.parametrize("mode", ["ask", "accept_edits", "auto"])
def test_no_rule_lets_a_file_be_written_that_decides_on_permissions(mode: str) -> None:
    part = Part(subject=".towline/x", kind="path", caution="It decides.", firm=True)
    for rule in ("allow a", "allow a(.towline/**)", "allow a(=.towline/x)", "allow *"):
        assert decide(mode, "write", rule, part=part) == Verdict("ask", "It decides.", (part,))
    assert decide(mode, "write", "deny a(.towline/x)", part=part).action == "deny"


@pytest.mark.rules("A5.48")
def test_while_a_rule_cannot_be_read_everything_asks() -> None:
    policy = Policy(broken=("The file is broken.",))
    for effect in ("read", "write", "exec", "network"):
        verdict = decide("auto", effect, "allow a", policy=policy)
        assert (verdict.action, verdict.reason) == ("ask", "The file is broken.")
    assert decide("auto", "own", policy=policy).action == "allow"
    assert decide("auto", "read", "deny a", policy=policy).action == "deny"


@pytest.mark.rules("A5.69")
def test_the_reason_names_the_rule_or_the_mode() -> None:
    assert decide("ask", "exec", "ask b", "allow a(x)").reason == "rule 'allow a(x)'"
    assert decide("ask", "exec", "allow a", "deny *(x)").reason == "rule 'deny *(x)'"
    assert decide("auto", "exec", "ask a").reason == "The rule 'ask a' asks."
    assert decide("ask", "exec").reason == "It runs a program."
    assert "'auto'" in decide("auto", "exec").reason
    assert decide("ask", "write", reason="It is far.").reason == "It is far."


@pytest.mark.rules("A5.69")
def test_every_reason_is_told_once_and_no_more_than_can_be_read() -> None:
    parts = tuple(Part(subject=str(n), caution=f"Reason {n % 5}.") for n in range(10))
    verdict = judge(Case(tool="a", effect="exec", parts=parts, mode="auto"))
    assert verdict.reason == "Reason 0. Reason 1. Reason 2. There are 2 more reasons."


@pytest.mark.rules("A5.55", "A5.56")
def test_each_option_shows_the_rule_it_would_store() -> None:
    part = Part(subject="rm -r (x)", kind="command")
    options = offered_options("run_program", (part,), stores=True)
    assert tuple(option.id for option in options) == OPTIONS_ASKED
    once, session, always, deny = options
    assert (once.rule, deny.rule, deny.id) == (None, None, DENY)
    assert session.rule == always.rule == "allow run_program(=rm -r (x))"
    told = [option.id for option in offered_options("run_program", (part,))]
    assert told == ["allow_once", "allow_session", "deny"]  # nobody would keep it


@pytest.mark.rules("R39", "A5.56")
@given(st.text(max_size=30), st.text(max_size=30), st.sampled_from(["path", "command", "host"]))
def test_a_stored_rule_allows_what_was_seen_and_nothing_else(
    seen: str, other: str, kind: str
) -> None:
    part = Part(subject=seen, kind=kind)
    (_, session, _) = offered_options("run", (part,))
    assert session.rule is not None
    rule = parse_rule(session.rule)
    for mode, effect in itertools.product(("ask", "accept_edits", "auto"), EFFECTS):
        verdict = judge(Case(tool="run", effect=effect, parts=(part,), mode=mode, rules=(rule,)))
        assert verdict.action == "allow"
    assert match(rule, "run", Part(subject=other, kind=kind)) is (other == seen)
    assert not match(rule, "run2", part)


@pytest.mark.rules("R39")
def test_a_compound_command_is_stored_as_a_whole_and_never_for_always() -> None:
    parts = (
        Part(subject="git push", kind="command"),
        Part(subject="rm -rf ./tmp", kind="command"),
    )
    whole = "git push && rm -rf ./tmp"
    options = offered_options("a", parts, whole=whole, stores=True)
    assert [option.id for option in options] == ["allow_once", "allow_session", "deny"]
    rule = options[1].rule
    assert rule is not None
    assert rule == f"allow a(={whole})"
    case = Case(tool="a", effect="exec", parts=parts, mode="ask", rules=parse(rule), whole=whole)
    assert judge(case).action == "allow"
    for other in ("rm -rf ./other", "rm -rf ./tmp", "git push"):
        part = Part(subject=other, kind="command")
        assert decide("ask", "exec", rule, part=part, whole=other).action == "ask"


@pytest.mark.rules("R39")
def test_one_part_that_asks_is_stored_and_the_others_are_not() -> None:
    parts = (
        Part(subject="git status", kind="command", effect="read"),
        Part(subject="rm -rf ./tmp", kind="command"),
    )
    verdict = judge(Case(tool="a", effect="exec", parts=parts, mode="ask"))
    options = offered_options("a", verdict.asking, whole="…", stores=True)
    assert [option.rule for option in options if option.rule is not None] == [
        "allow a(=rm -rf ./tmp)"
    ] * 2


@pytest.mark.rules("A5.54", "A5.56")
def test_what_only_a_person_may_allow_is_stored_by_no_option() -> None:
    part = Part(subject=".towline/x", kind="path", caution="It decides.", firm=True)
    options = offered_options("a", (part,), stores=True)
    assert [option.id for option in options] == ["allow_once", "deny"]


def test_several_parts_that_no_line_names_are_allowed_once_alone() -> None:
    parts = (Part(subject="a.py", kind="path"), Part(subject="b.py", kind="path"))
    options = offered_options("a", parts, stores=True)
    assert [option.id for option in options] == ["allow_once", "deny"]
