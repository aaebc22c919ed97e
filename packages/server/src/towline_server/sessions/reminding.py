"""What a turn's model is reminded of by its session (A4.12)."""

from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent import Plan
from towline_protocol import FilesReverted

__all__ = ["with_reverts"]

_NAMED: Final = 20  # paths that a reminder names: the conversation has all of them


def with_reverts(plan: Plan, reverts: Sequence[FilesReverted]) -> Plan:
    """A plan whose reminder says what was put back since the last turn (A4.12)."""
    if not reverts:
        return plan
    words = tuple(
        f"Files were put back since your last turn, to before turn {revert.turn}: "
        f"{', '.join(revert.files[:_NAMED])}{' …' if len(revert.files) > _NAMED else ''}."
        for revert in reverts
    )
    earlier = plan.reminders
    return msgspec.structs.replace(plan, reminders=lambda: (*earlier(), *words))
