"""Compaction outside a turn: a person asks for it (A4.32)."""

from towline_agent.context.compact import Compactor
from towline_agent.host import Host
from towline_agent.limits import Spent
from towline_agent.plan import Plan
from towline_agent.providers.base import StepFailed
from towline_agent.step import Stepper
from towline_protocol import Compacted, TowlineError

__all__ = ["compact"]


async def compact(plan: Plan, host: Host) -> Compacted | TowlineError | None:
    """Sum the conversation up, though it still fits; durable when this returns.

    Args:
        plan: What a turn would work with.
        host: Keeps the conversation.

    Returns:
        What was done, or why it failed; `None` when nothing would become shorter.
    """
    stepper = Stepper(plan, host, Spent())
    done = await Compactor(plan).compact_now(host, stepper.consult)
    await host.settle()
    return done.error if isinstance(done, StepFailed) else done
