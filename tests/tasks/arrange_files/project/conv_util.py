"""Reading Roman numerals."""

from converter import SIGNS, to_roman


def from_roman(text):
    """The number of a numeral.

    Raises:
        ValueError: It is none.
    """
    number, rest = 0, text
    for value, sign in SIGNS:
        while rest.startswith(sign):
            number += value
            rest = rest[len(sign) :]
    if rest or not text or to_roman(number) != text:
        raise ValueError(text)
    return number
