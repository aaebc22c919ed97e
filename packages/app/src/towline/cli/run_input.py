"""What `towline run` is given: words, mentioned files, and what another program pipes in."""

import os
import stat
from typing import Final, NamedTuple

from towline_agent import (
    Attachment,
    LeftOut,
    Workspace,
    find_mentions,
    read_mention,
    tell_attached,
    tell_left_out,
    wrap_text,
)
from towline_protocol import Text, UsageError

__all__ = ["ATTACHMENT_CHARS", "INPUT_MAX_BYTES", "GivenPrompt", "make_prompt", "read_input"]

ATTACHMENT_CHARS: Final = 40_000
"""Characters of one attachment that a model is shown (A5.80)."""
INPUT_MAX_BYTES: Final = 16 * 2**20
"""Bytes that are read of standard input; what is shown of them is much less."""

_PIECE: Final = 65_536
_CUT: Final = "\n[… the rest is left out …]"


def read_input(fd: int) -> bytes | None:
    """What another program or a file gives; `None` when nobody does.

    Args:
        fd: Standard input.

    Raises:
        UsageError: It is endless.
    """
    try:
        kind = os.fstat(fd).st_mode
    except OSError:  # it is closed
        return None
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return None  # a terminal, or /dev/null
    pieces: list[bytes] = []
    size = 0
    while piece := os.read(fd, _PIECE):
        pieces.append(piece)
        size += len(piece)
        if size > INPUT_MAX_BYTES:
            raise UsageError(
                f"Standard input has more than {INPUT_MAX_BYTES // 2**20} MiB; pass the part that "
                "matters, such as by `tail -n 500`."
            )
    return b"".join(pieces) or None


class GivenPrompt(NamedTuple):
    """What a run is given, and what the person is told of it."""

    blocks: tuple[Text, ...]
    """What was piped in, mentioned files, then the words."""
    told: tuple[str, ...]
    """Which files go along and which not, as sentences."""


async def make_prompt(words: str | None, given: bytes | None, workspace: Workspace) -> GivenPrompt:
    """The prompt: what was piped in, mentioned files, then the words (A5.79).

    Args:
        words: What to do; `None` when that is what was piped in.
        given: What was piped in.
        workspace: Where mentioned files stand.

    Raises:
        UsageError: There is nothing to do, or what was piped in is no text.
    """
    piped = None if given is None else _as_text(given)
    if words is None or words == "-":
        if not piped or not piped.strip():
            raise UsageError('Say what to do: towline run "What is in this folder?"')
        words, piped = piped.strip(), None
    if not words.strip():
        raise UsageError("The prompt is empty; say what to do.")
    blocks = [] if piped is None else [Text(text=wrap_text("file", _cut(piped), name="stdin"))]
    attached = [] if piped is None else [_about("standard input", piped)]
    left_out: list[LeftOut] = []
    for mention in find_mentions(words):
        found = await read_mention(workspace, mention)
        if isinstance(found, Attachment) and b"\0" in found.data:
            found = LeftOut(found.path, "it is no text; the agent can look at it with its tools")
        if isinstance(found, LeftOut):
            left_out.append(found)
            continue
        text = found.data.decode("utf-8-sig", "replace")
        blocks.append(Text(text=wrap_text("file", _cut(text), path=found.path, lines=found.lines)))
        attached.append(_about(found.about, text))
    told = (tell_attached(attached), tell_left_out(left_out))
    return GivenPrompt((*blocks, Text(text=words)), tuple(filter(None, told)))


def _about(name: str, text: str) -> str:
    if len(text) <= ATTACHMENT_CHARS:
        return name
    return f"{name}, of which the first {ATTACHMENT_CHARS:,} characters"


def _as_text(given: bytes) -> str:
    if b"\0" in given:
        raise UsageError(
            "Standard input is no text; name the file in the prompt instead, so that the agent can "
            "look at it with a tool."
        )
    return given.decode("utf-8-sig", "replace")


def _cut(text: str) -> str:
    if len(text) <= ATTACHMENT_CHARS:
        return text
    return text[: ATTACHMENT_CHARS - len(_CUT)] + _CUT
