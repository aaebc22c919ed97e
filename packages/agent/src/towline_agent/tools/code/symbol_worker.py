"""The process that parses: grammars are C, and what they do with odd texts must harm nobody.

It reads texts from its standard input until the end, each after a line `LANGUAGE SIZE`, and writes
a line of JSON for each: a list of symbols, `"missing"` for a grammar that is not installed, or
`"late"` for a text that took too long.
"""

import json
import signal
import time
import warnings
from typing import BinaryIO, Final, TextIO

from towline_agent.tools.code.symbols import GrammarMissing, symbols

__all__ = ["FILE_S", "serve"]

FILE_S: Final = 2.0
"""Seconds for one text: ordinary ones take some milliseconds."""
_END_S: Final = 2 * FILE_S
"""After so long the process ends: in some phases a grammar asks nobody for the time."""


def serve(source: BinaryIO, sink: TextIO) -> None:
    """Answer each text of a stream.

    Args:
        source: The texts, each behind its line.
        sink: Gets a line for each.
    """
    warnings.simplefilter("ignore")  # of the texts
    while head := source.readline():
        language, size = head.split()
        text = source.read(int(size))
        _end_in(_END_S)
        answer = _answer(language.decode(), text)
        _end_in(0)
        sink.write(json.dumps(answer, separators=(",", ":")) + "\n")
        sink.flush()  # what is done counts, whatever the next one does


def _end_in(seconds: float) -> None:
    if hasattr(signal, "setitimer"):  # elsewhere whoever started this ends it, with its batch
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _answer(language: str, text: bytes) -> object:
    end = time.monotonic() + FILE_S
    try:
        return symbols(language, text, late=lambda: time.monotonic() > end)
    except GrammarMissing:
        return "missing"
    except TimeoutError:
        return "late"
