"""Own commands out of Markdown files."""

import pytest

from towline_agent.project.command import BODY_CHARS, expand_command, read_command
from towline_protocol import UsageError

REVIEW = """---
description: Look over the changes
argument-hint: [branch]
allowed-tools: Bash(git:*)
---

Look over the changes against $ARGUMENTS.
"""


@pytest.mark.rules("A5.78")
def test_the_head_of_a_file_says_what_a_command_does_and_takes() -> None:
    command = read_command("review", REVIEW, "project")
    assert (command.name, command.source) == ("review", "project")
    assert (command.about, command.takes) == ("Look over the changes", "[branch]")
    assert command.body == "Look over the changes against $ARGUMENTS."


def test_without_a_head_the_first_line_says_it() -> None:
    command = read_command("tidy", "# Tidy up\n\nSort the imports.", "user")
    assert (command.about, command.takes) == ("Tidy up", "")
    assert command.body == "# Tidy up\n\nSort the imports."


def test_a_rule_within_the_text_is_no_head() -> None:
    assert read_command("a", "First\n---\nb: c\n---\n", "user").body.startswith("First")


@pytest.mark.parametrize(
    ("body", "arguments", "text"),
    [
        ("Compare with $ARGUMENTS.", "main", "Compare with main."),
        ("From $1 to $2$3", "a 'b c'", "From a to b c"),
        ("Costs $10 and $ARGUMENTSX", "x", "Costs $10 and $ARGUMENTSX\n\nx"),
        ("Plain", "", "Plain"),
        ("Plain", " more ", "Plain\n\nmore"),
        ("$1!", "it's late", "it's!"),
        ("$ARGUMENTS", "$1 and $ARGUMENTS", "$1 and $ARGUMENTS"),
        ("$1", "", ""),
    ],
)
def test_placeholders_take_what_was_written_behind_the_name(
    body: str, arguments: str, text: str
) -> None:
    assert expand_command(read_command("a", body, "user"), arguments) == text


@pytest.mark.parametrize("name", ["", "A", "../a", "a b", "a.b", "é", "-a", "a" * 65])
def test_a_name_that_cannot_be_typed_is_refused(name: str) -> None:
    with pytest.raises(UsageError, match="call the file by"):
        read_command(name, "text", "user")


def test_an_empty_or_endless_text_is_refused() -> None:
    with pytest.raises(UsageError, match="has no text"):
        read_command("a", "---\ndescription: x\n---\n  ", "user")
    with pytest.raises(UsageError, match="is the most"):
        read_command("a", "x" * (BODY_CHARS + 1), "user")
