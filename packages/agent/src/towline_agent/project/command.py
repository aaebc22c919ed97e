"""Own commands out of Markdown files (A5.78).

```markdown
---
description: Look over what has changed
argument-hint: [branch]
---
Look over the changes against $ARGUMENTS and list what is wrong.
```

The file's name is the command's. `$ARGUMENTS` stands for all that was written behind it, `$1` to
`$9` for its words; what no placeholder takes is put below the text.
"""

import re
import shlex
from typing import Final

import msgspec

from towline_protocol import UsageError

__all__ = ["ABOUT_CHARS", "BODY_CHARS", "OwnCommand", "expand_command", "read_command"]

BODY_CHARS: Final = 40_000
"""Characters of a command's text: what an attachment may have as well (A5.80)."""
ABOUT_CHARS: Final = 200
"""Characters of what a list says of it."""

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9_-]{0,63}")
_HEAD: Final = re.compile(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_FIELD: Final = re.compile(r"([A-Za-z][\w-]*)[ \t]*:[ \t]*(.*?)[ \t]*")
_PLACE: Final = re.compile(r"\$(ARGUMENTS\b|[1-9](?!\d))")


class OwnCommand(msgspec.Struct, frozen=True, kw_only=True):
    """A command that somebody wrote."""

    name: str
    """What is typed behind the slash."""
    about: str
    """What it does, as one line."""
    takes: str = ""
    """What may stand behind it, for people."""
    body: str
    """The text, with its placeholders."""
    source: str
    """`user` or `project`: whose folder it stands in."""


def read_command(name: str, text: str, source: str) -> OwnCommand:
    """A command out of its file.

    Args:
        name: The file's name without `.md`.
        text: What stands in it.
        source: Whose folder it stands in.

    Raises:
        UsageError: The name or the text cannot be a command's.
    """
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be a command's name; call the file by lower-case letters, digits, "
            "`-` and `_`, such as `review.md`."
        )
    text = text.replace("\r\n", "\n").removeprefix("\ufeff")
    head = _HEAD.match(text)
    fields = _read_fields(head[1]) if head else {}
    body = (text[head.end() :] if head else text).strip()
    if not body:
        raise UsageError(f"The command {name!r} has no text; write below its head what to do.")
    if len(body) > BODY_CHARS:
        raise UsageError(
            f"The command {name!r} has {len(body)} characters, and {BODY_CHARS} is the most; put "
            "what is long into a file and mention that."
        )
    about = fields.get("description") or body.lstrip("# ").partition("\n")[0]
    return OwnCommand(
        name=name,
        about=" ".join(about.split())[:ABOUT_CHARS],
        takes=" ".join(fields.get("argument-hint", "").split())[:ABOUT_CHARS],
        body=body,
        source=source,
    )


def _read_fields(head: str) -> dict[str, str]:
    """The plain `name: value` lines of a head; all else that YAML can say is passed over."""
    found = (_FIELD.fullmatch(line) for line in head.splitlines())
    return {match[1].lower(): match[2].strip("\"'") for match in found if match}


def expand_command(command: OwnCommand, arguments: str) -> str:
    """What a command asks of the agent.

    Args:
        command: The command.
        arguments: What was written behind its name.
    """
    words = _split(arguments)
    taken = False

    def put(match: re.Match[str]) -> str:
        nonlocal taken
        taken = True
        if match[1] == "ARGUMENTS":
            return arguments.strip()
        place = int(match[1]) - 1
        return words[place] if place < len(words) else ""

    text = _PLACE.sub(put, command.body)
    return text if taken or not arguments.strip() else f"{text}\n\n{arguments.strip()}"


def _split(arguments: str) -> list[str]:
    try:
        return shlex.split(arguments)
    except ValueError:  # an open quote: an apostrophe, most often
        return arguments.split()
