"""Looking at pictures (A5.T12)."""

import io
import struct
import zlib
from base64 import b64encode
from types import ModuleType
from typing import Final, NamedTuple

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.place import locate, look_at
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext, ToolOutput
from towline_agent.workspaces.threads import ThreadPool
from towline_protocol import Image, Text

__all__ = ["SIDE_MAX", "Picture", "prepare_picture", "view_image"]

SIDE_MAX: Final = 1568
"""Pixels of the longer side that a model is shown (A5.T12); providers scale what is larger."""
PIXELS_MAX: Final = 50_000_000
"""Of a picture that is opened at all: 200 MB while it is scaled."""
PLAIN_BYTES: Final = 2**20
"""A picture that passes as it is where pillow is not installed."""
_SENT_BYTES: Final = 4 * 2**20
"""A picture that passes as it is; one of more bytes is written anew, as providers take 5 MB."""

_PICTURES: Final = ThreadPool("towline-pictures", 2)
"""Scaling takes a whole core and much memory."""
_SIGNS: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_FORMATS: Final = ("PNG", "JPEG", "GIF", "WEBP")
_BROKEN: Final = (
    *(OSError, ValueError, TypeError, SyntaxError, EOFError, IndexError, KeyError, OverflowError),
    *(MemoryError, AttributeError, ZeroDivisionError, RuntimeError, struct.error, zlib.error),
)
"""What readers of broken pictures raise."""


class Picture(NamedTuple):
    """A picture as a model is shown it."""

    data: bytes
    """Its bytes."""
    media_type: str
    """Such as `image/png`."""
    note: str
    """What was done to it."""


def prepare_picture(data: bytes, path: str, pillow: ModuleType | None) -> Picture:
    """A picture that models take; blocking.

    Args:
        data: The file.
        path: Its path, for messages.
        pillow: The module `PIL.Image`; `None` where it is not installed.

    Raises:
        ToolInputInvalid: It is no picture of a known kind, broken, or too large.
        ToolError: It has to be scaled, and nothing can.
    """
    media_type = _sniff(data)
    if media_type is None:
        raise ToolInputInvalid(
            f"{path!r} is no PNG, JPEG, GIF or WebP picture; read it with read_file, or convert it "
            "with a program."
        )
    if pillow is None:
        if len(data) > PLAIN_BYTES:
            raise ToolError(
                f"{path!r} has {len(data)} bytes, too many to show as they are; to have pictures "
                "scaled install pillow (towline-agent[coding])."
            )
        return Picture(data, media_type, "as it is")
    bombs: tuple[type[Exception], ...] = (
        pillow.DecompressionBombError,
        pillow.DecompressionBombWarning,
    )
    try:
        return _scale(data, media_type, path, pillow)
    except (*bombs, *_BROKEN) as error:
        raise ToolInputInvalid(
            f"{path!r} is broken, or far too large; it can't be shown."
        ) from error


def _sniff(data: bytes) -> str | None:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for sign, kind in _SIGNS if data.startswith(sign)), None)


def _scale(data: bytes, media_type: str, path: str, pillow: ModuleType) -> Picture:
    with pillow.open(io.BytesIO(data), formats=_FORMATS) as picture:
        width, height = picture.size
        if width * height > PIXELS_MAX:
            raise ToolInputInvalid(
                f"{path!r} has {width} x {height} pixels, too many to open; scale it down with a "
                "program."
            )
        told = f"{width} x {height} pixels"
        if picture.format == "JPEG":
            picture.draft("RGB", (SIDE_MAX, SIDE_MAX))  # read small what is shown small
        picture.load()
        if max(width, height) <= SIDE_MAX and len(data) <= _SENT_BYTES:
            return Picture(data, media_type, told)
        shown = picture if picture.mode in ("RGB", "L") else picture.convert("RGBA")
        shown.thumbnail((SIDE_MAX, SIDE_MAX))
        out = io.BytesIO()
        is_opaque = shown.mode in ("RGB", "L")
        if media_type == "image/jpeg" or (is_opaque and len(data) > _SENT_BYTES):
            shown.convert("RGB").save(out, "JPEG", quality=85)
            media_type = "image/jpeg"
        else:
            shown.save(out, "PNG")
            media_type = "image/png"
        small = f"{shown.size[0]} x {shown.size[1]}"
    return Picture(out.getvalue(), media_type, f"{told}, shown at {small}")


def _import_pillow() -> ModuleType | None:
    try:
        import PIL.Image  # most programs show no pictures
    except ImportError:
        return None
    return PIL.Image


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Look at {arguments['path']}",
    look=look_at("read"),
)
async def view_image(context: ToolContext, path: str) -> ToolOutput:
    """Look at a picture: PNG, JPEG, GIF or WebP.

    Args:
        context: The call.
        path: Path of the file.
    """
    spot = await locate(context, path)
    data = (await context.workspace.read(spot.path)).data
    picture = await _PICTURES.run(lambda: prepare_picture(data, spot.path, _import_pillow()))
    shown = Image(media_type=picture.media_type, data=b64encode(picture.data).decode())
    return ToolOutput(content=(Text(text=f"{spot.path}: {picture.note}"), shown))
