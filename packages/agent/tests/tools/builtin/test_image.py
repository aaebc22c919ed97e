"""The tool `view_image`."""

import io
import struct
import zlib
from base64 import b64decode
from collections.abc import Callable, Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pillow

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin import image
from towline_agent.tools.builtin.image import SIDE_MAX, prepare_picture, view_image
from towline_agent.tools.memory import MemoryContext
from towline_protocol import Image, Text

Make = Callable[[Mapping[str, str | bytes]], MemoryContext]


def _picture(kind: str, size: tuple[int, int], mode: str = "RGB") -> bytes:
    out = io.BytesIO()
    Pillow.new(mode, size, 1).save(out, kind)
    return out.getvalue()


@pytest.mark.rules("A5.T12")
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "GIF", "WEBP"])
async def test_a_small_picture_is_shown_as_it_is(make: Make, kind: str) -> None:
    data = _picture(kind, (40, 20))
    output = await make({"a/pic": data}).use(view_image, path="a/pic")
    text, shown = output.content
    assert text == Text(text="a/pic: 40 x 20 pixels")
    assert isinstance(shown, Image)
    assert shown.media_type == f"image/{kind.lower()}"
    assert b64decode(shown.data or "") == data


@pytest.mark.rules("A5.T12")
@pytest.mark.parametrize(
    ("kind", "mode", "wanted"),
    [
        ("PNG", "RGBA", "PNG"), ("PNG", "P", "PNG"), ("PNG", "L", "PNG"), ("PNG", "1", "PNG"),
        ("JPEG", "RGB", "JPEG"), ("JPEG", "CMYK", "JPEG"), ("GIF", "P", "PNG"),
        ("WEBP", "RGB", "PNG"),
    ],
)  # fmt: skip
def test_a_large_picture_is_scaled(kind: str, mode: str, wanted: str) -> None:
    shown = prepare_picture(_picture(kind, (4000, 1000), mode), "a", Pillow)
    with Pillow.open(io.BytesIO(shown.data)) as opened:
        assert opened.format == wanted
        assert opened.size == (SIDE_MAX, 392)
    assert shown.media_type == f"image/{wanted.lower()}"
    assert shown.note == "4000 x 1000 pixels, shown at 1568 x 392"


def _bomb(width: int, height: int) -> bytes:
    """A PNG of few bytes that says it is huge."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 1000)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", body) + chunk(b"IEND", b"")


@pytest.mark.rules("A5.T12")
@pytest.mark.parametrize(
    ("data", "told"),
    [
        (b"", "is no PNG, JPEG, GIF or WebP"),
        (b"<svg/>", "is no PNG, JPEG, GIF or WebP"),
        (b"\x89PNG\r\n\x1a\n", "is broken, or far too large"),
        (_picture("PNG", (90, 90))[:100], "is broken, or far too large"),
        (_picture("JPEG", (90, 90))[:400], "is broken, or far too large"),
        (b"RIFF\0\0\0\0WEBPVP8 ", "is broken, or far too large"),
        (_bomb(8000, 8000), "8000 x 8000 pixels, too many to open"),
        (_bomb(10_000, 10_000), "is broken, or far too large"),
        (_bomb(60_000, 60_000), "is broken, or far too large"),
        (_bomb(300, 300), "is broken, or far too large"),
    ],
)
async def test_what_is_no_picture_or_too_large_is_refused(
    make: Make, data: bytes, told: str
) -> None:
    with pytest.raises(ToolInputInvalid, match=told):
        await make({"a": data}).use(view_image, path="a")


@pytest.mark.rules("A5.T12")
async def test_without_pillow_small_pictures_pass(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(image, "_import_pillow", lambda: None)
    data = _picture("PNG", (4000, 10))
    context = make({"a": data, "b": data + b"\0" * image.PLAIN_BYTES, "c": "text"})
    text, _ = (await context.use(view_image, path="a")).content
    assert text == Text(text="a: as it is")
    with pytest.raises(ToolError, match="install pillow"):
        await context.use(view_image, path="b")
    with pytest.raises(ToolInputInvalid, match="is no PNG"):
        await context.use(view_image, path="c")


@pytest.mark.rules("A5.T12")
@settings(max_examples=60)
@given(data=st.data(), kind=st.sampled_from(["PNG", "JPEG", "GIF", "WEBP"]))
def test_a_damaged_picture_is_shown_or_refused(data: st.DataObject, kind: str) -> None:
    raw = bytearray(_picture(kind, (30, 30)))
    for _ in range(3):
        raw[data.draw(st.integers(0, len(raw) - 1))] = data.draw(st.integers(0, 255))
    try:
        shown = prepare_picture(bytes(raw), "a", Pillow)
    except ToolInputInvalid:
        return
    assert shown.media_type.startswith("image/")
