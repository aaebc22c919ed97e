"""What of an answer is said aloud (A4.30, A4.31)."""

import re
from collections.abc import Iterator
from typing import Final

__all__ = ["ASK_TO_SPEAK", "speak_text", "without_speak"]

ASK_TO_SPEAK: Final = (
    "Your answer will be read aloud. Begin it with <speak>…</speak>: what the person should hear, "
    "in at most three plain sentences, without code, tables, lists or URLs. After that write the "
    "answer as usual."
)
"""What a model is told when its answer will be heard."""

_CHARS: Final = 600
"""Of what is made of an answer without `<speak>` (A4.31)."""

_FENCE: Final = r" {0,3}(`{3,}|~{3,})"
_TAG: Final = r"(?i)(?<!`)<(/?)speak>(?!`)"
_RULE: Final = r"\s*[-=*_][-=*_\s]*"
_BELOW_HEAD: Final = r"\s*\|?[ \t]*:?-+:?[ \t]*(\|[ \t]*:?-+:?[ \t]*)*\|?\s*"
_MARK: Final = r"\s*(?:(?:#{1,6}|[-*+]|\d{1,3}[.)])\s+|>\s?)+(?:\[[ xX]\]\s)?"
_DEFINITION: Final = r" {0,3}\[[^\[\]]{1,300}\]: ?\S+.*"
_ADDRESS: Final = r"\([^()\s]{0,2000}(?:\([^()\s]{0,300}\)[^()\s]{0,300})?(?: \"[^\"]{0,300}\")?\)"
_IMAGE: Final = r"!\[[^\[\]]{0,300}\]" + _ADDRESS
_LINK: Final = r"\[([^\[\]]{1,300})\]" + _ADDRESS
_URL: Final = r"(?i)<?(?:https?://|\bwww\.)[^\s<>]*[^\s<>.,;:!?)\]}'\"]>?"
_EMPHASIS: Final = r"(?<!\w)[*_]{1,3}(?=\S)|(?<=\S)[*_]{1,3}(?!\w)|~~|`"
_HOLLOW: Final = r"\(\s*\)|\[\s*\]"
_LOOSE: Final = r"\s+([.,;:!?)\]])"
_SENTENCE: Final = r"[.!?…]['\")\]]?(?=\s|$)|[\u3002\uff01\uff1f]"


def speak_text(answer: str) -> str:
    """What to say aloud: what the model wrote in `<speak>`, else a short form of its words.

    The short form has no code, tables and URLs, and 600 characters at most, cut at a sentence; it
    is empty for an answer that has nothing else.
    """
    spoken, written = _part(answer)
    return spoken or _cut(" ".join(_prose(written)))


def without_speak(text: str) -> str:
    """An answer as it is to be read: without what is only to be said."""
    return _part(text)[1]


def _part(text: str) -> tuple[str, str]:
    """What stands in `<speak>`, and the rest; tags in code are none.

    One that is never closed counts to the end where it begins a line: the answer was cut there.
    """
    if "<" not in text or re.search(_TAG, text) is None:
        return "", text
    spoken: list[str] = []
    written: list[str] = []
    at = 0  # the end of what is parted
    begin: re.Match[str] | None = None
    for tag in _tags(text):
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
        return "", text
    written.append(text[at:])
    return " ".join(" ".join(spoken).split()), "".join(written).strip()


def _tags(text: str) -> Iterator[re.Match[str]]:
    """The tags that do not stand in fenced code."""
    code = iter(_code_spans(text))
    start, end = next(code, (len(text), len(text)))
    for tag in re.finditer(_TAG, text):
        while end <= tag.start():
            start, end = next(code, (len(text), len(text)))
        if tag.start() < start:
            yield tag


def _code_spans(text: str) -> list[tuple[int, int]]:
    """Where fenced code stands; a fence that is never closed goes to the end."""
    spans: list[tuple[int, int]] = []
    fence, start, at = "", 0, 0
    for line in text.splitlines(keepends=True):
        mark = re.match(_FENCE, line)
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
        if re.fullmatch(_RULE, line) or re.fullmatch(_DEFINITION, line):
            continue
        mark = re.match(_MARK, line)
        said = _plain(line[mark.end() :] if mark else line)
        if said:
            yield f"{said}." if mark and said[-1].isalnum() else said


def _without_tables(lines: list[str]) -> Iterator[str]:
    """All lines but those of a table: its head, the line below that, and rows up to a blank."""
    table = False
    for place, line in enumerate(lines):
        after = lines[place + 1] if place + 1 < len(lines) else ""
        if "|" in line and "|" in after and re.fullmatch(_BELOW_HEAD, after):
            table = True
        elif not line.strip() or "|" not in line:
            table = False
        if not table:
            yield line


def _plain(line: str) -> str:
    line = re.sub(_LINK, r"\1", re.sub(_IMAGE, "", line))
    line = re.sub(_HOLLOW, "", re.sub(_EMPHASIS, "", re.sub(_URL, "", line)))
    return re.sub(_LOOSE, r"\1", " ".join(line.split()))


def _cut(words: str) -> str:
    """The words up to a sentence's end within the bound, or to a word's."""
    if len(words) <= _CHARS:
        return words
    ends = [found.end() for found in re.finditer(_SENTENCE, words[: _CHARS + 1])]
    whole = [end for end in ends if end <= _CHARS]
    if whole:
        return words[: whole[-1]]
    head = words[: _CHARS - 1]
    return f"{head.rpartition(' ')[0] or head}…"
