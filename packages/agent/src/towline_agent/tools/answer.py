"""The JSON values in the words of an answer (A4.60)."""

import json
import re
from collections.abc import Iterator
from typing import Final

__all__ = ["BrokenOff", "find_values"]

_TRIES: Final = 1_000
"""Places of an answer where JSON may begin; a text with more of them is no answer."""

_FENCED: Final = r"(?ms)^ {0,3}```[^\n`]*\n(.*?)^ {0,3}```"
_BEGIN: Final = r"[{\[]"
_IS_JSON: Final = r"\{\s*[\"}]|\[[\s\[]*[\"{]|\[\s*\[[\s\[]*\d"
"""How something begins that is meant as JSON, and no bracket in a sentence."""


class BrokenOff(Exception):
    """JSON that begins and breaks off; its text is a clause for people."""


def find_values(text: str) -> Iterator[str]:
    """The JSON values in an answer, the likeliest first.

    Raises:
        BrokenOff: One begins and breaks off, so a value within it would be taken for the whole.
    """
    bare = text.strip()
    yield from (bare,) if _is_whole(bare) else ()
    for fenced in reversed(re.findall(_FENCED, text)):
        yield from (fenced.strip(),) if _is_whole(fenced.strip()) else ()
    yield from reversed(list(_scan(text)))


def _is_whole(text: str) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _scan(text: str) -> Iterator[str]:
    decoder = json.JSONDecoder()
    bracket, is_json = re.compile(_BEGIN), re.compile(_IS_JSON)
    at = 0
    for _ in range(_TRIES):
        found = bracket.search(text, at)
        if found is None:
            return
        begin = found.start()
        try:
            _, at = decoder.raw_decode(text, begin)
        except RecursionError:
            return
        except json.JSONDecodeError as error:
            if is_json.match(text, begin):
                raise BrokenOff(f"{error.msg} at character {error.pos}") from error
            at = begin + 1
        else:
            yield text[begin:at]
