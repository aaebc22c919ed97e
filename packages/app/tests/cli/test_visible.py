"""What hides in text is spelled out: pure functions."""

import sys
import unicodedata
from itertools import chain
from typing import Final

from towline.cli.visible import show_line, show_prose, show_visible

# What Unicode says is not drawn, of the characters that are no controls: first and last.
_RUNS: Final = (
    *((0x00, 0x08), (0x0B, 0x1F), (0x7F, 0x9F), (0xAD, 0xAD), (0x34F, 0x34F), (0x61C, 0x61C)),
    *((0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180F), (0x200B, 0x200F), (0x2028, 0x202E)),
    *((0x2060, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F), (0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0)),
    *((0xFFF0, 0xFFFB), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0000, 0xE0FFF)),
)
_HIDDEN: Final = frozenset(
    chr(code) for code in chain.from_iterable(range(first, last + 1) for first, last in _RUNS)
)
_JOINERS: Final = frozenset("\u200c\u200d" + "".join(map(chr, range(0xFE00, 0xFE10))))
_C0: Final = frozenset(map(chr, range(0x20)))
_KINDS: Final = {"Cc", "Zl", "Zp"}


def test_every_hidden_character_is_spelled_out_and_no_other() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    assert {char for char in every if show_visible(char) != char} == _HIDDEN
    assert all(show_visible(char) in {f"<U+{ord(char):04X}>", "␡"} for char in _HIDDEN - _C0)


def test_no_control_and_no_line_separator_of_unicode_is_left_out() -> None:
    unseen = {char for char in map(chr, range(0x10000)) if unicodedata.category(char) in _KINDS}
    assert unseen - _HIDDEN == {"\n", "\t"}


def test_a_single_line_has_no_line_feed() -> None:
    assert show_line("a\tb\nc\r\u2028☃ 🚢") == "a␉b␊c␍<U+2028>☃ 🚢"
    assert show_visible("a\tb\nc ☃ 🚢") == "a\tb\nc ☃ 🚢"


def test_only_joiners_and_variation_selectors_stay_in_prose() -> None:
    assert {char for char in _HIDDEN if show_prose(char) == char} == _JOINERS
    assert show_prose("👩\u200d💻\u202e\x1b") == "👩\u200d💻<U+202E>␛"
