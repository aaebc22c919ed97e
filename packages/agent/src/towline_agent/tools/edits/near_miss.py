"""Why a text that should be replaced was not found (A5.14)."""

import re
from collections import Counter
from collections.abc import Callable
from difflib import SequenceMatcher
from typing import Final

__all__ = ["explain_miss", "show_lines"]

_LINES_MAX: Final = 50_000
"""Lines of a file that are looked at; a miss must not take longer than the edit."""
_WANTED_MAX: Final = 400
"""Lines of the wanted text that are looked at."""
_COMPARED_MAX: Final = 4000
"""Lines that are compared letter by letter, which is slow."""
_COMPARED_CHARS: Final = 160
"""Letters of each of them."""
_ALIKE: Final = 0.6
"""Below this two lines have nothing to do with each other; it is difflib's own rule of thumb."""
_SHOWN_LINES: Final = 12
_SHOWN_CHARS: Final = 200
_TELLING_CHARS: Final = 4
"""A shorter line, such as a bracket, says nothing about the place."""

_FOLDED: Final = str.maketrans(
    {
        **dict.fromkeys('\u2018\u2019\u201a\u201b\u2032`"\u201c\u201d\u201e\u2033', "'"),
        **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2212", "-"),
        "\u2026": "...",
    }
)


def _squeeze(line: str) -> str:
    return " ".join(line.split())


_FORMS: Final[tuple[tuple[str, Callable[[str], str]], ...]] = (
    ("white space at line ends", str.rstrip),
    ("indentation", str.strip),
    ("white space", _squeeze),
    ("quotes or dashes", lambda line: _squeeze(line.translate(_FOLDED))),
    ("upper and lower case", lambda line: _squeeze(line.translate(_FOLDED)).casefold()),
)
"""What two texts may differ in, the least first, and how a line looks without it."""


def explain_miss(text: str, old: str, new: str = "") -> str:
    r"""One or more lines for the model: where the closest place is, and how it differs.

    Args:
        text: The file's text, with `\n` for every line end.
        old: What was looked for and is not there, with the same line ends.
        new: What should have come in its place.
    """
    lines = text.split("\n")[:_LINES_MAX]
    wanted = old.strip("\n").split("\n")[:_WANTED_MAX]
    return (
        _slip(text, old, new)
        or _same_but_for(lines, wanted)
        or _closest(lines, wanted)
        or "Nothing like it stands in the file; read it again."
    )


def show_lines(lines: list[str], first: int) -> str:
    """Some lines with their numbers, as `read_file` shows them; long ones and long runs cut.

    Args:
        lines: The lines.
        first: The number of the first, from 1.
    r
    """
    shown = [f"{number}\t{_cut(line)}" for number, line in enumerate(lines, first)]
    if len(shown) <= _SHOWN_LINES:
        return "\n".join(shown)
    half = _SHOWN_LINES // 2
    left_out = len(shown) - 2 * half
    return "\n".join((*shown[:half], f"[{left_out} lines between]", *shown[-half:]))


def _cut(line: str) -> str:
    if len(line) <= _SHOWN_CHARS:
        return line
    return f"{line[:_SHOWN_CHARS]}… [{len(line) - _SHOWN_CHARS} more characters]"


def _slip(text: str, old: str, new: str) -> str:
    """A slip of the pen that has a name."""
    numbered = [re.sub(r"^\s*\d+\t", "", line) for line in old.split("\n")]
    bare = "\n".join(numbered)
    if bare != old and bare.strip() and bare in text:
        return "It begins its lines with the numbers that read_file shows; leave them out."
    escaped = old.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"')
    if escaped != old and escaped.strip() and escaped in text:
        return (
            "It is escaped once too often: the file has line breaks, tabs or quotes where you "
            "wrote a backslash and a letter."
        )
    if len(new.strip()) >= _TELLING_CHARS and new in text:
        line = text.count("\n", 0, text.index(new)) + 1
        return f"The new text stands there already, at line {line}."
    return ""


def _same_but_for(lines: list[str], wanted: list[str]) -> str:
    for name, form in _FORMS:
        needle = "\n".join(map(form, wanted)).strip("\n")
        if not needle.strip():
            return ""
        hay = "\n".join(map(form, lines))
        found = hay.find(needle)
        if found < 0:
            continue
        first = hay.count("\n", 0, found)
        there = lines[first : first + needle.count("\n") + 1]
        if name == "indentation":
            name = _indentation(there, wanted)
        where = _lines_word(first + 1, len(there))
        word = "differ" if len(there) > 1 else "differs"
        again = " Other places do too." if hay.find(needle, found + 1) >= 0 else ""
        shown = show_lines(there, first + 1)
        return f"{where} {word} only in {name}.{again} The file has:\n{shown}"
    return ""


def _indentation(there: list[str], wanted: list[str]) -> str:
    def has_tabs(lines: list[str]) -> bool:
        return any(line.startswith("\t") for line in lines)

    if has_tabs(there) and not has_tabs(wanted):
        return "indentation (the file has tabs)"
    if has_tabs(wanted) and not has_tabs(there):
        return "indentation (the file has spaces, no tabs)"
    return "indentation"


def _closest(lines: list[str], wanted: list[str]) -> str:
    """The place with most lines in common, or with the one line that is most alike."""
    first = _place_by_votes(lines, wanted)
    if first is None:
        first = _place_by_likeness(lines, wanted)
    if first is None:
        return ""
    begin, end = max(first, 0), min(first + len(wanted), len(lines))
    there = lines[begin:end]
    shown: list[str] = []
    for number, line in enumerate(there, begin + 1):
        yours = wanted[number - 1 - first]
        if line == yours:
            shown.append(f"  {number}\t{_cut(line)}")
        else:
            shown += (f"- yours\t{_cut(yours)}", f"+ {number}\t{_cut(line)}")
    where = _lines_word(begin + 1, len(there))
    kept = shown[: 2 * _SHOWN_LINES]
    more = f"\n[{len(shown) - len(kept)} more lines]" if len(shown) > len(kept) else ""
    word = "come" if len(there) > 1 else "comes"
    told = f"{where} {word} closest (- is yours, + is the file):"
    return "\n".join((told, *kept)) + more


def _place_by_votes(lines: list[str], wanted: list[str]) -> int | None:
    places: dict[str, list[int]] = {}
    for number, line in enumerate(lines):
        places.setdefault(_squeeze(line), []).append(number)
    votes: Counter[int] = Counter()
    for offset, line in enumerate(wanted):
        form = _squeeze(line)
        found = places.get(form, [])
        if len(form) >= _TELLING_CHARS and len(found) <= _WANTED_MAX:
            for number in found:
                votes[number - offset] += 1
    if not votes:
        return None
    return max(votes, key=lambda place: (votes[place], -place))


def _place_by_likeness(lines: list[str], wanted: list[str]) -> int | None:
    offset = max(range(len(wanted)), key=lambda place: len(wanted[place].strip()))
    aim = wanted[offset].strip()[:_COMPARED_CHARS]
    if len(aim) < _TELLING_CHARS:
        return None
    matcher = SequenceMatcher(autojunk=False)
    matcher.set_seq2(aim)
    best, found = _ALIKE, None
    for number, line in enumerate(lines[:_COMPARED_MAX]):
        matcher.set_seq1(line.strip()[:_COMPARED_CHARS])
        if matcher.real_quick_ratio() < best or matcher.quick_ratio() < best:
            continue
        ratio = matcher.ratio()
        if ratio > best:
            best, found = ratio, number - offset
    return found


def _lines_word(first: int, count: int) -> str:
    return f"Lines {first}-{first + count - 1}" if count > 1 else f"Line {first}"
