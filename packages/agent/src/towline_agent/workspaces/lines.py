"""Which lines of a text became which of another."""

import difflib
from collections.abc import Sequence
from typing import Final

__all__ = ["COMPARED_MAX", "Opcode", "compare_lines"]

COMPARED_MAX: Final = 2000
"""Lines that are compared one by one, apart from those that are the same at both ends; comparing
costs up to their square, so more count as all taken out and put in."""

Opcode = tuple[str, int, int, int, int]
"""`equal`, `replace`, `delete` or `insert`, and from where to where in both texts, from 0."""


def compare_lines(old: Sequence[str], new: Sequence[str]) -> list[Opcode]:
    """What became what, in order and without gaps; what is the same at both ends is found first."""
    head = 0
    shorter = min(len(old), len(new))
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    a, b = old[head : len(old) - tail], new[head : len(new) - tail]
    if max(len(a), len(b)) > COMPARED_MAX:
        middle: list[Opcode] = [("replace", 0, len(a), 0, len(b))]
    else:
        middle = list(difflib.SequenceMatcher(None, a, b).get_opcodes())
    found: list[Opcode] = [("equal", 0, head, 0, head)]
    found += [(tag, i + head, j + head, k + head, m + head) for tag, i, j, k, m in middle]
    found.append(("equal", len(old) - tail, len(old), len(new) - tail, len(new)))
    return [opcode for opcode in found if opcode[1] < opcode[2] or opcode[3] < opcode[4]]
