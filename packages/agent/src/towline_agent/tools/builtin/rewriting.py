"""One file written anew by a program: looked at as a diff, then written only as it was shown."""

from typing import Final, NamedTuple

from towline_agent.errors import ToolError
from towline_agent.permissions.secret import path_part
from towline_agent.tools.builtin.after_edit import tell_after_edit
from towline_agent.tools.tool import Look, ToolContext, ToolOutput
from towline_agent.workspaces.base import Put, hash_bytes
from towline_agent.workspaces.diff import diff_bytes
from towline_agent.workspaces.text import decode_text
from towline_protocol import Preview, Text

__all__ = ["Rewritten", "look_at", "read_utf8", "write"]

_DIFF_SHOWN: Final = 4000
"""Characters of the diff that the model is told; what is longer it reads again."""
_CODINGS: Final = ("utf-8", "utf-8-sig")


class Rewritten(NamedTuple):
    """A file before and after."""

    path: str
    """Which."""
    before: bytes
    """Its bytes now."""
    after: bytes
    """Its bytes when it is written."""


async def read_utf8(context: ToolContext, path: str) -> tuple[bytes, str]:
    """A file's bytes and text.

    Raises:
        ToolError: It is no text in UTF-8.
    """
    raw = (await context.workspace.read(path)).data
    decoded = decode_text(raw)
    if decoded is None or decoded[1] not in _CODINGS:
        raise ToolError(f"{path!r} is no text in UTF-8, so it can't be rewritten safely.")
    return raw, decoded[0]


def look_at(new: Rewritten) -> Look:
    """What a call that writes it is about."""
    diff = diff_bytes(new.before, new.after, new.path) if new.before != new.after else None
    preview = (
        Preview(kind="text", text=f"{new.path} stays as it is.")
        if diff is None
        else Preview(kind="diff", text=diff.text, truncated=diff.truncated)
    )
    return Look(
        parts=(path_part(new.path, effect="write"),),
        preview=preview,
        bases={new.path: hash_bytes(new.before)},
    )


async def write(context: ToolContext, new: Rewritten, done: str) -> ToolOutput:
    """Write it, unless it changed since it was looked at, and tell what came of it.

    Args:
        context: The call.
        new: The file.
        done: What was done, as a sentence without its dot.
    """
    expect = context.bases.get(new.path, hash_bytes(new.before))
    put = Put(path=new.path, data=new.after, expect=expect)
    changes = await context.workspace.apply((put,))
    diff = diff_bytes(new.before, new.after, new.path)
    words = [f"{done}."]
    if diff is not None:
        fits = len(diff.text) <= _DIFF_SHOWN
        words.append(diff.text if fits else "[the diff is long; read the file to see it]")
    words.append(await tell_after_edit(context, {new.path: new.before}))
    text = "\n".join(word for word in words if word)
    return ToolOutput(content=(Text(text=text),), changes=changes)
