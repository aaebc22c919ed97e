"""What `towline run` is given: words, mentioned files, and what another program pipes in."""

import os
import stat
from typing import Final

from towline_agent import (
    ToolError,
    Workspace,
    cut_lines,
    find_mentions,
    read_unasked,
    wrap_text,
)
from towline_protocol import Text, UsageError

__all__ = ["ATTACHMENT_CHARS", "INPUT_MAX_BYTES", "make_prompt", "read_input"]

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


async def make_prompt(
    words: str | None, given: bytes | None, workspace: Workspace
) -> tuple[Text, ...]:
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
    for mention in find_mentions(words):
        for path, lines in ((mention.plain, None), (mention.path, mention.lines)):
            shown = await _show(workspace, path, lines, mention.first, mention.last)
            if shown is not None:
                blocks.append(Text(text=shown))
                break
    return (*blocks, Text(text=words))


async def _show(
    workspace: Workspace, path: str, lines: str | None, first: int | None, last: int | None
) -> str | None:
    try:
        data = (await read_unasked(workspace, path)).data
    except ToolError:  # it is a word, then; naming a secret is no leave to send it away (A5.67)
        return None
    if b"\0" in data:
        return None
    text = data.decode("utf-8-sig", "replace")
    if lines is not None and first is not None and last is not None:
        text = cut_lines(text, first, last)
    return wrap_text("file", _cut(text), path=path, lines=lines)


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
