"""Arguments that come in pieces, each with the path where it belongs (A2.49).

Vertex streams them so when it is asked to. The pieces are put into the object that they describe,
and the object is written out once it is whole: a piece may belong anywhere in it.
"""

import json
import re
from itertools import pairwise
from typing import Any, Final, cast

__all__ = ["PartialArguments", "to_json_text"]

_STEP: Final = re.compile(
    r"""\.(?P<name>[^.\[\]]+)
      | \[(?P<index>\d{1,9})\]
      | \['(?P<single>(?:[^'\\]|\\.)*)'\]
      | \["(?P<double>(?:[^"\\]|\\.)*)"\]""",
    re.VERBOSE,
)
_ESCAPED: Final = re.compile(r"\\(.)")
_MAX_STEPS: Final = 64
"""Levels of a path; what lies deeper is put where the path was cut."""
_VALUES: Final = ("numberValue", "boolValue", "nullValue")


class _Words:
    """A text that is still growing."""

    __slots__ = ("parts",)

    def __init__(self) -> None:
        self.parts: list[str] = []


class PartialArguments:
    """The arguments of one call, as far as they came."""

    def __init__(self) -> None:
        self.size = 0
        """Characters taken in so far, paths among them."""
        self._root: dict[str, Any] = {}
        self._growing: dict[str, _Words] = {}  # by the path of a text that goes on

    def merge(self, args: Any) -> None:
        """Take in whole arguments."""
        if isinstance(args, dict):
            found = cast("dict[str, Any]", args)
            self.size += len(to_json_text(found))
            self._root.update(found)

    def add(self, pieces: Any) -> None:
        """Take in the pieces of one chunk; what is none is left out."""
        for piece in cast("list[Any]", pieces) if isinstance(pieces, list) else ():
            if isinstance(piece, dict):
                self._add(cast("dict[str, Any]", piece))

    def text(self, *, whole: bool) -> str:
        """The arguments as JSON.

        Args:
            whole: Whether the call came to its end. One that did not is left without its last
                brace, so that nobody takes it for whole (A2.21).
        """
        try:
            text = to_json_text(_plain(self._root))
        except RecursionError:  # nobody means arguments so deep
            return "{"
        return text if whole else text[:-1] or "{"

    def _add(self, piece: dict[str, Any]) -> None:
        path: Any = piece.get("jsonPath")
        if not isinstance(path, str):
            return
        words: Any = piece.get("stringValue")
        self.size += len(path) + (len(words) if isinstance(words, str) else 8)
        if isinstance(words, str):
            self._add_words(path, words, goes_on=piece.get("willContinue") is True)
            return
        for key in _VALUES:
            if key in piece:
                self._put(path, None if key == "nullValue" else piece[key])
                return

    def _add_words(self, path: str, words: str, *, goes_on: bool) -> None:
        text = self._growing.get(path)
        if text is None:
            text = self._growing[path] = _Words()
            self._put(path, text)
        text.parts.append(words)
        if not goes_on:
            del self._growing[path]

    def _put(self, path: str, value: Any) -> None:
        steps = _steps(path)
        node: Any = self._root
        for step, following in pairwise(steps):
            inner = _get(node, step)
            fits = isinstance(inner, list if isinstance(following, int) else dict)
            if not fits:
                inner = _set(node, step, [] if isinstance(following, int) else {})
            node = inner
        _set(node, steps[-1], value)


def _steps(path: str) -> list[str | int]:
    """The steps of a JSON path such as `$.a.b[0]['c d']`; an unreadable one is itself the name."""
    steps: list[str | int] = []
    at = 1 if path.startswith("$") else 0
    path = path if at or path.startswith((".", "[")) else f".{path}"
    while at < len(path) and len(steps) < _MAX_STEPS:
        found = _STEP.match(path, at)
        if found is None:
            return [path]
        at = found.end()
        if found["name"] is not None:
            steps.append(found["name"])
        elif found["index"] is not None:
            steps.append(int(found["index"]))
        else:
            quoted = found["single"] if found["single"] is not None else found["double"]
            steps.append(_ESCAPED.sub(r"\1", quoted))
    if not steps or isinstance(steps[0], int):
        return [path]  # arguments are an object
    return steps


def _get(node: Any, step: str | int) -> Any:
    if isinstance(step, str):
        return node.get(step)
    return node[step] if step < len(node) else None


def _set(node: Any, step: str | int, value: Any) -> Any:
    if isinstance(step, str) or step < len(node):
        node[step] = value
    else:
        node.append(value)  # the next one: nobody leaves gaps, and a huge index must cost nothing
    return value


def _plain(value: Any) -> Any:
    match value:
        case _Words():
            return "".join(value.parts)
        case dict():
            return {key: _plain(item) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_plain(item) for item in cast("list[Any]", value)]
        case _:
            return value


def to_json_text(value: Any) -> str:
    """A value as compact JSON text; empty when it is nested too deep to be written down."""
    try:
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    except (RecursionError, ValueError):
        return ""
