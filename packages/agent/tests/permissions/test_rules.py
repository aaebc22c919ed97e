"""Permission rules as text and as matches."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.permissions.part import Part
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
        None,
        3,
    ],
)
def test_what_is_no_rule_is_refused_with_its_shape(text: Any) -> None:
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
        ("allow run(=git status)", "run", "git status", True),
        ("allow run(=git status)", "run", "=git status", False),
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


def speaks(text: str, subject: str, kind: str, **facts: Any) -> bool:
    part = Part(subject=subject, kind=kind, also=facts.pop("also", ()))
    return match(parse_rule(text), "t", part, root="/home/ann/shop", **facts)


@pytest.mark.rules("A5.47")
@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("src/*.py", "src/a.py", True),
        ("src/*.py", "src/sub/a.py", False),
        ("src/**", "src/sub/a.py", True),
        ("src/**", "src", True),
        ("src/**", "srcx/a", False),
        ("src/", "src/a", True),
        ("**/a.py", "a.py", True),
        ("**/a.py", "x/y/a.py", True),
        ("**/a.py", "x/ba.py", False),
        ("src/**/a.py", "src/a.py", True),
        ("src/**/a.py", "src/x/y/a.py", True),
        ("src/**.py", "src/x/a.py", True),
        ("a?.py", "ab.py", True),
        ("a?.py", "a/.py", False),
        ("app/[id].tsx", "app/[id].tsx", True),
        ("app/[id].tsx", "app/i.tsx", False),
        ("*", "a", True),
        ("*", "a/b", False),
        ("**", "a/b", True),
        ("./a", "a", True),
        ("a.py", "a.py\n", False),
        ("a.py", "aXpy", False),
        ("**", "/etc/passwd", False),
        ("/etc/**", "/etc/passwd", True),
        ("/etc/*", "/etc/ssl/key", False),
        ("/home/ann/shop/src/**", "src/a", True),
        ("/home/ann/shopping/**", "src/a", False),
        ("../**", "../x", True),
        ("=a*", "a*", True),
        ("=a*", "ab", False),
    ],
)
def test_a_path_is_matched_by_globs(pattern: str, subject: str, fits: bool) -> None:
    assert speaks(f"allow t({pattern})", subject, "path") is fits
    assert speaks(f"deny t({pattern})", subject, "path") is fits


@pytest.mark.rules("A5.47")
def test_a_home_folder_in_a_pattern_is_the_users(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ann")
    assert speaks("allow t(~/notes/**)", "/home/ann/notes/a", "path")
    assert not speaks("allow t(~/notes/**)", "/home/bob/notes/a", "path")


@pytest.mark.rules("A5.47", "R39")
@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("git status", "git status", True),
        ("git status", "git status -s", True),
        ("git status", "git statusx", False),
        ("git status", "git", False),
        ("git  status", "git status -s", True),
        ("git *", "git push", True),
        ("git *", "gitk", False),
        ("*", "anything at all", True),
        ("git commit -m 'a b'", "git commit -m 'a b' -a", True),
        ("git commit -m 'a b'", "git commit -m a b", False),
        ("echo", "'echo x' y", False),
        ("rm", "rm -rf /", True),
        ("rm", "/bin/rm -rf /", False),
        ("=git status", "git status", True),
        ("=git status", "git status -s", False),
    ],
)
def test_a_command_is_matched_by_a_prefix_that_ends_at_a_word(
    pattern: str, subject: str, fits: bool
) -> None:
    assert speaks(f"allow t({pattern})", subject, "command") is fits


@pytest.mark.rules("A5.47")
@pytest.mark.parametrize(
    ("pattern", "subject", "fits"),
    [
        ("example.com", "example.com", True),
        ("example.com", "EXAMPLE.com.", True),
        ("example.com", "a.example.com", False),
        ("example.com", "example.com:8080", True),
        ("example.com:80", "example.com:8080", False),
        ("example.com:8080", "example.com:8080", True),
        ("*.example.com", "a.b.example.com", True),
        ("*.example.com", "example.com", False),
        ("*.example.com", "badexample.com", False),
        ("*.example.com", "example.com.evil.net", False),
        ("*", "anything.net", True),
        ("[::1]", "[::1]:80", True),
        ("example.com", "example.com@evil.net", False),
    ],
)
def test_a_host_is_matched_by_its_name(pattern: str, subject: str, fits: bool) -> None:
    assert speaks(f"allow t({pattern})", subject, "host") is fits


@pytest.mark.rules("A5.47", "A5.48")
@pytest.mark.parametrize(
    ("pattern", "subject", "kind", "also"),
    [
        ("secrets/**", "SECRETS/key", "path", ()),
        ("Secrets/**", "secrets/key", "path", ()),
        ("caf\u00e9", "cafe\u0301", "path", ()),
        ("pub/**", "secrets/key", "path", ("pub/link",)),
        ("rm", "RM -rf x", "command", ()),
        ("rm", "/bin/rm -rf x", "command", ("rm -rf x",)),
        ("git push", "git -C . push", "command", ("git push",)),
        ("rm", "rm $(", "unknown", ()),
    ],
)
def test_a_denial_is_read_widely_and_an_allowance_narrowly(
    pattern: str, subject: str, kind: str, also: tuple[str, ...]
) -> None:
    assert speaks(f"deny t({pattern})", subject, kind, also=also)
    assert speaks(f"ask t({pattern})", subject, kind, also=also)
    assert not speaks(f"allow t({pattern})", subject, kind, also=also)


def test_an_exact_rule_names_a_part_or_the_whole_call() -> None:
    assert speaks("allow t(=a && b)", "a", "command", whole="a && b")
    assert not speaks("allow t(=a && b)", "a", "command", whole="a && b && c")
    assert not speaks("allow t(a && b)", "a", "command", whole="a && b")
