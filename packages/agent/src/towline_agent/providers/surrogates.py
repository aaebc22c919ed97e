"""Halves of UTF-16 pairs in JSON text (A2.22 to A2.25, R55).

A gateway written in JavaScript may cut a character between its two halves and escape each half by
itself. Python reads such an escape as a surrogate code point, which no UTF-8 text can hold. So each
text is mended before it leaves a decoder.
"""

from typing import Any, Final, cast

__all__ = ["REPLACEMENT", "mend", "mend_all", "split_half"]

REPLACEMENT: Final = "\N{REPLACEMENT CHARACTER}"
"""What stands for half a character whose other half never came."""


def mend(text: str) -> str:
    """The text with its pairs joined and each lone half replaced."""
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def split_half(text: str) -> tuple[str, str]:
    """The mended text without a first half at its end, and that half, or an empty string.

    The half must be put before the next text of the same block: the other half may be there.
    """
    if text and "\ud800" <= text[-1] <= "\udbff":
        return mend(text[:-1]), text[-1]
    return mend(text), ""


def mend_all(value: Any) -> Any:
    """A JSON value with all its texts mended."""
    match value:
        case str():
            return mend(value)
        case list():
            return [mend_all(item) for item in cast("list[Any]", value)]
        case dict():
            found = cast("dict[str, Any]", value)
            return {mend(key): mend_all(item) for key, item in found.items()}
        case _:
            return value
