"""What the list tells of a session, as its log says it. Pure."""

from towline_protocol import SessionId, SessionView, parse_time
from towline_server.store.records import SessionRow, fold_words

__all__ = ["join_words", "search_words", "summarize"]


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
    )


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
