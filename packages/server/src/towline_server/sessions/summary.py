"""What the list tells of a session, as its log says it. Pure."""

import re
from typing import Final

from towline_protocol import SessionId, SessionView, Text, parse_time
from towline_server.store.records import SessionRow, fold_words

__all__ = ["LINE_CHARS", "join_words", "search_words", "summarize"]

LINE_CHARS: Final = 120
"""Characters of the last line at most."""

_LOOKED_AT: Final = 4 * LINE_CHARS  # of a text: the rest of it would not show
_MARKUP: Final = re.compile(r"^ {0,3}(?:#{1,6} |```.*)", re.MULTILINE)
_SPACE: Final = re.compile(r"[\s\x00-\x1f\x7f-\x9f]+")
_ORDER: Final = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def summarize(session: SessionId, user: str, view: SessionView) -> SessionRow:
    """The session's row of the list, in step with its log.

    Args:
        session: Its id.
        user: Whose it is.
        view: What its log folds to; one event at least.
    """
    return SessionRow(
        id=session,
        user=user,
        agent=view.agent,
        model=view.model,
        mode=view.mode,
        title=view.title,
        cwd=view.cwd,
        created_ms=parse_time(view.created),
        updated_ms=parse_time(view.updated),
        turn=None if view.turn is None else view.turn.id,
        pending=len(view.permissions) + len(view.questions),
        queued=len(view.queue),
        closed=view.closed is not None,
        archived=view.archived,
        labels=view.labels,
        said_seq=view.messages[-1].seq if view.messages else 0,
        last_seq=view.seq,
        parent=None if view.parent is None else view.parent.session,
        last_line=_last_line(view),
    )


def _last_line(view: SessionView) -> str:
    """How the last thing begins that somebody said, of what is not undone and the view holds.

    Headings and fences of Markdown say nothing in a list; controls and what turns the order of
    letters could show another line than this one.
    """
    for entry in reversed(view.messages):
        if entry.undone or entry.role == "mark":
            continue
        for block in entry.content:
            if type(block) is Text and (line := _line(block.text)):
                return line
    return ""


def _line(text: str) -> str:
    start = text.lstrip()[:_LOOKED_AT]
    line = _SPACE.sub(" ", _ORDER.sub("", _MARKUP.sub("", start))).strip()
    return line if len(line) <= LINE_CHARS else f"{line[: LINE_CHARS - 1].rstrip()}…"


def join_words(view: SessionView, opening: str) -> str:
    """What a session is found by, as people wrote it.

    Args:
        view: What its log folds to.
        opening: The start of its first prompt's text.
    """
    return "\n".join((view.title or "", *view.labels, opening))


def search_words(view: SessionView, opening: str) -> str:
    """The same as it is stored and searched."""
    return fold_words(join_words(view, opening))
