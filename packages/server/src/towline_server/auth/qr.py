"""A link as a picture, for a camera."""

import io
from typing import Final

__all__ = ["draw_svg"]

_SCALE: Final = 6  # pixels of a module: a phone reads it from a screen at arm's length


def draw_svg(text: str) -> str:
    """A QR code of the text as an SVG element, black on white."""
    import segno  # takes longer to import than all else that a start needs of this folder

    drawn = io.BytesIO()
    code = segno.make_qr(text, error="m")
    code.save(drawn, kind="svg", xmldecl=False, nl=False, scale=_SCALE, light="#fff")
    return drawn.getvalue().decode()
