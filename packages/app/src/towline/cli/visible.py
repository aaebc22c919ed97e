"""Text on a terminal as it is: what would hide, move or redraw is spelled out, whoever wrote it."""

import re
from typing import Final

__all__ = ["show_line", "show_prose", "show_visible"]

# All controls but the line feed and the tab, line separators, the characters that Unicode's
# `Default_Ignorable_Code_Point` says are not drawn (direction marks, joiners, selectors, tags,
# fillers), and the anchors of annotations. The page spells out the same ones.
_HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
_JOINERS: Final = re.compile("[\u200c\u200d\ufe00-\ufe0f]")
_DELETE: Final = 0x7F


def show_visible(text: str) -> str:
    """Lines on which a person decides: a preview, a fault.

    Returns:
        The text with C0 controls as their pictures (`␛`) and other hidden characters as
        `<U+202E>`; line feeds and tabs stay.
    """
    return _HIDDEN.sub(_spell, text)


def show_line(text: str) -> str:
    """A single line on which a person decides, such as a rule: line feeds and tabs show too."""
    return show_visible(text).replace("\n", "␊").replace("\t", "␉")


def show_prose(text: str) -> str:
    """Text that is only read, such as an answer.

    Joiners and variation selectors stay, since emoji and some scripts are written with them; a part
    of a text gives that part of the result.
    """
    return _HIDDEN.sub(lambda found: found[0] if _JOINERS.match(found[0]) else _spell(found), text)


def _spell(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code == _DELETE:
        return "␡"
    return chr(0x2400 + code) if code < 0x20 else f"<U+{code:04X}>"
