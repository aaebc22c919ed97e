"""Permission rules as text and as matches."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.permissions.rules import ACTIONS, Rule, match, parse_rule
from towline_protocol import UsageError

TOOLS = st.from_regex(r"[A-Za-z0-9_-]{1,64}", fullmatch=True) | st.just("*")
RULES = st.builds(
    Rule, action=st.sampled_from(ACTIONS), tool=TOOLS, pattern=st.none() | st.text(max_size=30)
)


@pytest.mark.rules("A5.47", "A5.56")
@given(RULES)
def test_the_text_of_any_rule_is_read_back_as_that_rule(rule: Rule) -> None:
    assert parse_rule(rule.text) == rule
    assert parse_rule(f"  {rule.text}\n") == rule


@pytest.mark.rules("A5.47")
@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("allow now", Rule(action="allow", tool="now")),
        ("deny *", Rule(action="deny", tool="*")),
        ("ask read_file(.env)", Rule(action="ask", tool="read_file", pattern=".env")),
        ("deny *(.env)", Rule(action="deny", tool="*", pattern=".env")),
        ("allow t()", Rule(action="allow", tool="t", pattern="")),
        (
            "allow run_program(sh -c 'f() { a; }\nf (b)')",
            Rule(action="allow", tool="run_program", pattern="sh -c 'f() { a; }\nf (b)'"),
        ),
    ],
)
def test_a_rule_is_read(text: str, rule: Rule) -> None:
    assert parse_rule(text) == rule


@pytest.mark.parametrize(
    "text",
    [
        "",
        "allow",
        "permit now",
        "Allow now",
        "allow  now",
        "allow now(",
        "allow now)",
        "allow now(a) b",
        "allow a b(c)",
        "allow **",
        "allow re*d",
        "allow (a)",
        "allow " + "x" * 65,
        "allow zürich",
    ],
)
def test_what_is_no_rule_is_refused_with_its_shape(text: str) -> None:
    with pytest.raises(UsageError):
        parse_rule(text)


@pytest.mark.parametrize(
    "facts", [{"action": "permit", "tool": "a"}, {"action": "deny", "tool": ""}]
)
def test_a_bad_rule_cannot_be_made(facts: dict[str, str]) -> None:
    with pytest.raises(UsageError):
        Rule(**facts)


@pytest.mark.rules("R39")
@pytest.mark.parametrize(
    ("text", "tool", "subject", "speaks"),
    [
        ("allow run(git status)", "run", "git status", True),
        ("allow run(git status)", "run", "git status && rm -rf x", False),
        ("allow run(git status)", "run", "git  status", False),
        ("allow run(git *)", "run", "git status", False),
        ("allow run", "run", "anything", True),
        ("allow run", "running", "anything", False),
        ("allow run()", "run", "anything", False),
        ("allow run()", "run", "", True),
        ("deny *", "any", "thing", True),
        ("deny *(.env)", "read_file", ".env", True),
        ("deny *(.env)", "read_file", ".env2", False),
    ],
)
def test_a_pattern_names_exactly_one_subject(
    text: str, tool: str, subject: str, speaks: bool
) -> None:
    assert match(parse_rule(text), tool, subject) is speaks
