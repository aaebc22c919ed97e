"""One file written anew by a program: looked at as a diff, then written only as it was shown."""

from typing import Final, NamedTuple

from towline_agent.errors import ToolError
from towline_agent.tools.builtin.change import Plan, preview_files
from towline_agent.tools.builtin.place import Spot, locate
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import FileData, Put
from towline_agent.workspaces.text import decode_text

__all__ = ["Original", "plan_rewrite", "read_original"]

_DIFF_SHOWN: Final = 4000
"""Characters of the diff that the model is told; what is longer it reads again."""
_MARK: Final = b"\xef\xbb\xbf"


class Original(NamedTuple):
    """A file as it stands."""

    spot: Spot
    """Where."""
    file: FileData
    """Its bytes."""
    text: str
    """Its text, without a mark."""


async def read_original(context: ToolContext, path: str) -> Original:
    """A file that is to be rewritten.

    Raises:
        ToolError: It is no text in UTF-8.
    """
    spot = await locate(context, path)
    file = await context.workspace.read(spot.path)
    decoded = decode_text(file.data)
    if decoded is None or decoded[1] not in ("utf-8", "utf-8-sig"):
        raise ToolError(f"{path!r} is no text in UTF-8, so it can't be rewritten safely.")
    return Original(spot, file, decoded[0])


async def plan_rewrite(original: Original, text: str, done: str) -> Plan:
    """What is to be changed; nothing where the text is the same.

    Args:
        original: The file as it stands.
        text: Its text when it is written; its mark is kept.
        done: What the model is told when it is done; the diff is added.
    """
    spot, file, _ = original
    before = file.data
    after = (_MARK if before.startswith(_MARK) else b"") + text.encode()
    preview = await preview_files([(spot.path, spot.path, before, after)])
    fits = len(preview.text) <= _DIFF_SHOWN
    diff = preview.text if fits else "[the diff is long; read the file to see it]"
    edits = (Put(path=spot.path, data=after, expect=file.hash),) if before != after else ()
    return Plan(
        parts=(spot.part("write"),),
        edits=edits,
        preview=preview,
        bases={spot.path: file.hash},
        told=f"{done}\n{diff}".rstrip(),
    )
