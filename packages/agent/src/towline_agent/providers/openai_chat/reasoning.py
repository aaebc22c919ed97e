"""Thinking that comes in unusual dress: between tags, or as a list of details (A2.15, A2.16)."""

from typing import Any, Final, cast

__all__ = ["DetailLog", "TagSplitter", "detail_text"]

_Json = dict[str, Any]

_OPEN: Final = "<think>"
_CLOSE: Final = "</think>"
_HELD_MAX: Final = 1024
"""Characters held back, nearly all white space; what has more of it before a tag is no thinking."""
_DETAIL_CHARS: Final = 16
"""What a detail counts for besides its texts, so that an endless list of empty ones has an end."""
_TEXT_KEYS: Final = ("text", "summary")


class TagSplitter:
    """Parts words from the thinking before them, when that stands between `<think>` tags.

    Only tags at the very start count: later ones are words about tags.
    """

    def __init__(self) -> None:
        self._held = ""  # what may be the beginning of a tag
        self._state = "start"

    def feed(self, text: str) -> list[tuple[bool, str]]:
        """The pieces that are sure now: whether it is thinking, and the text."""
        if self._state == "words":
            return [(False, text)]
        text = self._held + text
        self._held = ""
        return self._start(text) if self._state == "start" else self._think(text)

    def end(self) -> list[tuple[bool, str]]:
        """What was held back at the end of the answer."""
        held, self._held = self._held, ""
        return [(self._state == "think", held)] if held else []

    def _start(self, text: str) -> list[tuple[bool, str]]:
        begun = text.lstrip()
        if begun.startswith(_OPEN):
            self._state = "think"
            return self._think(begun[len(_OPEN) :])
        if len(text) <= _HELD_MAX and _OPEN.startswith(begun):
            self._held = text
            return []
        self._state = "words"
        return [(False, text)]

    def _think(self, text: str) -> list[tuple[bool, str]]:
        thought, tag, words = text.partition(_CLOSE)
        if tag:
            self._state = "words"
            pieces = [(True, thought), (False, words)]
        else:
            keep = _overlap(text, _CLOSE)
            self._held = text[len(text) - keep :]
            pieces = [(True, text[: len(text) - keep])]
        return [piece for piece in pieces if piece[1]]


def _overlap(text: str, tag: str) -> int:
    """How much of the end of a text may be the beginning of a tag."""
    return next((n for n in range(len(tag) - 1, 0, -1) if text.endswith(tag[:n])), 0)


def detail_text(details: Any) -> str:
    """The readable thinking in a list of `reasoning_details`."""
    return "".join(
        str(item[key]) for item in _items(details) for key in _TEXT_KEYS if _has(item, key)
    )


class DetailLog:
    """Puts the pieces of `reasoning_details` together, to send them back unchanged."""

    def __init__(self) -> None:
        self.size = 0
        """Characters taken in so far."""
        self._whole: list[_Json] = []
        self._growing: dict[str, list[str]] = {}  # texts of the last one

    def add(self, details: Any) -> None:
        """Take in the details of one chunk."""
        for item in _items(details):
            self.size += sum(len(value) for value in item.values() if isinstance(value, str))
            last = self._whole[-1] if self._whole else None
            if last is None or not _continues(last, item):
                self._settle()
                self._whole.append(dict(item))
                self.size += _DETAIL_CHARS
                self._growing = {key: [item[key]] for key in _TEXT_KEYS if _has(item, key)}
                continue
            for key, value in item.items():
                if key in self._growing and _has(item, key):
                    self._growing[key].append(value)
                elif value is not None:
                    last[key] = value
                    self._growing.pop(key, None)
                    if key in _TEXT_KEYS and _has(item, key):
                        self._growing[key] = [value]

    def whole(self) -> list[_Json]:
        """All details so far."""
        self._settle()
        return self._whole

    def _settle(self) -> None:
        for key, parts in self._growing.items():
            self._whole[-1][key] = "".join(parts)
            self._growing[key] = [self._whole[-1][key]]


def _items(details: Any) -> list[_Json]:
    if not isinstance(details, list):
        return []
    return [cast("_Json", item) for item in cast("list[Any]", details) if isinstance(item, dict)]


def _has(item: _Json, key: str) -> bool:
    return isinstance(item.get(key), str)


def _continues(last: _Json, item: _Json) -> bool:
    """Whether a detail is more of the one before it: encrypted ones are always whole."""
    same = all(last.get(key) == item.get(key) for key in ("type", "index"))
    return (
        same and any(_has(item, key) for key in (*_TEXT_KEYS, "signature")) and "data" not in item
    )
