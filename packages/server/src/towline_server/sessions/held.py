"""What tools hold for a session between its turns: jobs, files that were seen."""

import msgspec

from towline_agent import Plan, ToolState

__all__ = ["with_state"]


def with_state(plan: Plan, state: ToolState) -> Plan:
    """A plan whose tools find what they held before, and whose model is reminded of it (A4.12)."""
    earlier = plan.reminders
    return msgspec.structs.replace(
        plan, state=state, reminders=lambda: (*earlier(), *state.remind())
    )
