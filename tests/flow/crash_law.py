"""What holds in every log, wherever its server died."""

from collections.abc import Iterable, Sequence

from towline_protocol import (
    TERMINAL_EVENTS,
    Envelope,
    Event,
    PermissionRequested,
    PermissionResolved,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    PromptWithdrawn,
    QuestionAsked,
    QuestionResolved,
    ToolEnded,
    ToolProposed,
    TurnStarted,
)

__all__ = ["check_law", "check_prompts"]


def check_law(log: Sequence[Envelope]) -> None:
    """Each turn has one end, its last event; before it, all that was open in it had one (C1.23).

    Args:
        log: A whole log whose session has nothing to do.
    """
    turns = dict.fromkeys(envelope.turn for envelope in log if envelope.turn is not None)
    for turn in turns:
        events = [envelope.event for envelope in log if envelope.turn == turn]
        assert sum(isinstance(event, TurnStarted) for event in events) == 1
        ends = [event for event in events if isinstance(event, TERMINAL_EVENTS)]
        assert len(ends) == 1, (turn, ends)
        assert events[-1] is ends[0], (turn, events[-1])
        _check_parts(events)


def check_prompts(log: Iterable[Envelope], acknowledged: Iterable[PromptId]) -> None:
    """Each prompt that was acknowledged is there, once, and went to one place."""
    events = [envelope.event for envelope in log]
    admitted = [event.prompt for event in events if isinstance(event, PromptAdmitted)]
    left = [e.prompt for e in events if isinstance(e, PromptDelivered | PromptWithdrawn)]
    assert sorted(set(admitted)) == sorted(admitted)
    assert sorted(left) == sorted(admitted)
    assert set(acknowledged) <= set(admitted)


def _check_parts(events: Sequence[Event]) -> None:
    proposed = [event.call for event in events if isinstance(event, ToolProposed)]
    assert sorted(set(proposed)) == sorted(proposed)
    assert sorted(event.call for event in events if isinstance(event, ToolEnded)) == (
        sorted(proposed)
    )
    asked = {event.permission for event in events if isinstance(event, PermissionRequested)}
    resolved = [event.permission for event in events if isinstance(event, PermissionResolved)]
    assert sorted(resolved) == sorted(asked)
    questions = {event.question for event in events if isinstance(event, QuestionAsked)}
    answered = [event.question for event in events if isinstance(event, QuestionResolved)]
    assert sorted(answered) == sorted(questions)
