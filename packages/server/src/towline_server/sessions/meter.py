"""What each event of a log adds to what was used: nothing is counted twice, nothing left out.

An answer tells its tokens itself (`step_ended`), and so does a summary of the conversation
(`compacted`). What a request used that failed is told by the next try (`step_started`), or, as all
that a turn paid for besides, by the sum at its end. What sub-agents used
(`tool_ended`) is in that sum too, and is counted by their own logs.
"""

from dataclasses import dataclass, field
from typing import Final, NamedTuple

from towline_protocol import (
    Compacted,
    Event,
    StepEnded,
    StepStarted,
    ToolEnded,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
    Usage,
)

__all__ = ["Counted", "Meter"]

_SEEN: Final = frozenset({Compacted, StepEnded, StepStarted, ToolEnded, TurnStarted})


class Counted(NamedTuple):
    """What one event adds."""

    model: str
    """`provider/model` that was asked."""
    usage: Usage
    """Tokens."""
    cost: float | None
    """US dollars; `None` when a price is not known."""


@dataclass(kw_only=True)
class Meter:
    """What the open turn of a log has told of so far. Pure: its state is a fold of the log."""

    model: str = ""
    """Who was asked last."""
    usage: Usage = field(default_factory=Usage)
    """Tokens of the turn's answers."""
    cost: float = 0.0
    """US dollars of those whose price is known."""
    unpriced: int = 0
    """Answers whose price is not."""

    def count(self, event: Event) -> Counted | None:
        """What an event adds that comes now; `None` for nothing."""
        match event:
            case StepEnded():
                return Counted(self.model, event.usage, event.cost)
            case StepStarted(failed=Usage() as usage):
                return Counted(self.model, usage, event.failed_cost)
            case Compacted(usage=Usage() as usage):
                return Counted(event.model or self.model, usage, event.cost)
            case TurnCompleted(cost=None):
                return self._rest(event.usage, None, told=self.unpriced > 0)
            case TurnCompleted(cost=float() | int() as cost):
                return self._rest(event.usage, max(0.0, cost - self.cost))
            case TurnFailed() | TurnCancelled():
                return self._rest(event.usage, None)
            case _:
                return None

    def take(self, event: Event) -> None:
        """Fold an event in."""
        if type(event) not in _SEEN:
            return
        match event:
            case TurnStarted():
                self.model, self.usage, self.cost, self.unpriced = event.model, Usage(), 0.0, 0
            case StepStarted():
                self.model = event.model
                if event.failed is not None:
                    self._add(event.failed, event.failed_cost)
            case StepEnded() | Compacted(usage=Usage()) | ToolEnded(usage=Usage()):
                self._add(event.usage or Usage(), event.cost)
            case _:
                pass

    def _add(self, usage: Usage, cost: float | None) -> None:
        self.usage += usage
        self.cost += cost or 0.0
        self.unpriced += cost is None

    def _rest(self, usage: Usage, cost: float | None, *, told: bool = True) -> Counted | None:
        """What a turn used beside its answers.

        Args:
            usage: Tokens of the whole turn.
            cost: US dollars of the rest; `None` when unknown.
            told: Whether nothing of an unknown price can be left.
        """
        rest = Usage(
            input=max(0, usage.input - self.usage.input),
            output=max(0, usage.output - self.usage.output),
            cache_read=max(0, usage.cache_read - self.usage.cache_read),
            cache_write=max(0, usage.cache_write - self.usage.cache_write),
            reasoning=max(0, usage.reasoning - self.usage.reasoning),
        )
        nothing = not (rest.input or rest.output or rest.cache_read or rest.cache_write)
        return None if nothing and told else Counted(self.model, rest, cost)
