"""What of an answer is said aloud (A4.30, A4.31)."""

import re
from bisect import bisect_right
from collections.abc import Iterator
from typing import Final, NamedTuple

__all__ = ["ASK_TO_SPEAK", "speak_text", "without_speak"]

ASK_TO_SPEAK: Final = (
    "Your answer will be read aloud. Begin it with <speak>…</speak>: what the person should hear, "
    "in at most three plain sentences, without code, tables, lists or URLs. After that write the "
    "answer as usual."
)
"""What a model is told when its answer will be heard."""

_CHARS: Final = 600
"""Of what is made of an answer without `<speak>` (A4.31)."""

_FENCE: Final = re.compile(r" {0,3}(`{3,}|~{3,})")
_TAG: Final = re.compile(r"(?<!`)<(/?)speak>(?!`)", re.IGNORECASE)
_RULE: Final = re.compile(r"\s*[-=*_][-=*_\s]*")
_BELOW_HEAD: Final = re.compile(r"\s*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?\s*")
_MARK: Final = re.compile(r"\s*(?:(?:#{1,6}|[-*+]|\d{1,3}[.)])\s+|>\s?)+(?:\[[ xX]\]\s)?")
_DEFINITION: Final = re.compile(r" {0,3}\[[^\[\]]{1,300}\]: ?\S+.*")
_ADDRESS: Final = r"\([^()\s]{0,2000}(?:\([^()\s]{0,300}\)[^()\s]{0,300})?(?: \"[^\"]{0,300}\")?\)"
_IMAGE: Final = re.compile(r"!\[[^\[\]]{0,300}\]" + _ADDRESS)
_LINK: Final = re.compile(r"\[([^\[\]]{1,300})\]" + _ADDRESS)
_URL: Final = re.compile(r"<?(?:https?://|\bwww\.)[^\s<>]*[^\s<>.,;:!?)\]}'\"]>?", re.IGNORECASE)
_EMPHASIS: Final = re.compile(r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|~~|`")
_HOLLOW: Final = re.compile(r"\(\s*\)|\[\s*\]")
_LOOSE: Final = re.compile(r"\s+([.,;:!?)\]])")
_SENTENCE: Final = re.compile(r"[.!?…]['\")\]]?(?=\s|$)|[\u3002\uff01\uff1f]")


class _Parted(NamedTuple):
    spoken: str
    written: str


def speak_text(answer: str) -> str:
    """What to say aloud: what the model wrote in `<speak>`, else a short form of its words.

    The short form has no code, tables and URLs, and 600 characters at most, cut at a sentence; it
    is empty for an answer that has nothing else.
    """
    spoken, written = _part(answer)
    return spoken or _cut(" ".join(_prose(written)))


def without_speak(text: str) -> str:
    """An answer as it is to be read: without what is only to be said."""
    return _part(text).written


def _part(text: str) -> _Parted:
    """Part what is in `<speak>` from the rest; tags in code are none.

    One that is never closed counts to the end where it begins a line: the answer was cut there.
    """
    code = _code_spans(text)
    spoken: list[str] = []
    written: list[str] = []
    at = 0  # the end of what is parted
    begin: re.Match[str] | None = None
    for tag in _TAG.finditer(text):
        before = bisect_right(code, tag.start(), key=_start_of) - 1
        if before >= 0 and tag.start() < code[before][1]:
            continue
        if tag[1] and begin is not None:
            written.append(text[at : begin.start()])
            spoken.append(text[begin.end() : tag.start()])
            at, begin = tag.end(), None
        elif not tag[1] and begin is None:
            begin = tag
    if begin is not None and not text[: begin.start()].rpartition("\n")[2].strip():
        written.append(text[at : begin.start()])
        spoken.append(text[begin.end() :])
        at = len(text)
    if not at:
        return _Parted("", text)
    written.append(text[at:])
    return _Parted(" ".join(" ".join(spoken).split()), "".join(written).strip())


def _start_of(span: tuple[int, int]) -> int:
    return span[0]


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Where fenced code stands; a fence that is never closed goes to the end."""
    spans: list[tuple[int, int]] = []
    fence, start, at = "", 0, 0
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if not fence and mark:
            fence, start = mark[1], at
        elif fence and mark and mark[1].startswith(fence) and not line[mark.end() :].strip():
            spans.append((start, at + len(line)))
            fence = ""
        at += len(line)
    if fence:
        spans.append((start, len(text)))
    return spans


def _prose(text: str) -> Iterator[str]:
    """The lines that can be said, without their Markdown."""
    kept: list[str] = []
    at = 0
    for start, end in (*_code_spans(text), (len(text), len(text))):
        kept += (*text[at:start].splitlines(), "")
        at = end
    for line in _without_tables(kept):
        if _RULE.fullmatch(line) or _DEFINITION.fullmatch(line):
            continue
        mark = _MARK.match(line)
        said = _plain(line[mark.end() :] if mark else line)
        if said:
            yield f"{said}." if mark and said[-1].isalnum() else said


def _without_tables(lines: list[str]) -> Iterator[str]:
    """All lines but those of a table: its head, the line below that, and rows up to a blank."""
    table = False
    for place, line in enumerate(lines):
        after = lines[place + 1] if place + 1 < len(lines) else ""
        if "|" in line and "|" in after and _BELOW_HEAD.fullmatch(after):
            table = True
        elif not line.strip() or "|" not in line:
            table = False
        if not table:
            yield line


def _plain(line: str) -> str:
    line = _LINK.sub(r"\1", _IMAGE.sub("", line))
    line = _HOLLOW.sub("", _EMPHASIS.sub("", _URL.sub("", line)))
    return _LOOSE.sub(r"\1", " ".join(line.split()))


def _cut(words: str) -> str:
    """The words up to a sentence's end within the bound, or to a word's."""
    if len(words) <= _CHARS:
        return words
    ends = [found.end() for found in _SENTENCE.finditer(words[: _CHARS + 1])]
    whole = [end for end in ends if end <= _CHARS]
    if whole:
        return words[: whole[-1]]
    head = words[: _CHARS - 1]
    return f"{head.rpartition(' ')[0] or head}…"
