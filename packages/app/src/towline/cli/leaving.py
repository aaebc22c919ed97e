"""The last words of a chat: what goes on waiting, and how to come back."""

from collections.abc import Iterator
from datetime import datetime

from towline.cli.visible import show_line
from towline_protocol import SessionId, SessionView

__all__ = ["say_goodbye"]


def say_goodbye(view: SessionView, session: SessionId, program: str) -> str:
    """What a person should know who leaves a session.

    Args:
        view: How it stands.
        session: Its id.
        program: How the person calls this program.
    """
    return "\n".join([*_waiting(view), f"Go on with: {program} chat --plain --session {session}"])


def _waiting(view: SessionView) -> Iterator[str]:
    for request in view.permissions:
        until = _clock_time(request.expires_at)
        title = show_line(request.title)
        yield f'"{title}" waits for your answer until {until}; then it is denied.'
    for question in view.questions:
        asked = show_line(question.items[0].prompt) if question.items else "A question"
        if question.expires_at is None:
            ends = "for a minute after you left; then the agent decides itself"
        else:
            ends = f"until {_clock_time(question.expires_at)}; then the agent decides itself"
        yield f'"{asked}" waits for your answer {ends}.'


def _clock_time(time: str) -> str:
    """The time of day at this place."""
    return f"{datetime.fromisoformat(time).astimezone():%H:%M:%S}"
