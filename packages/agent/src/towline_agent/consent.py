"""Whether a call may run: by rules and mode, by the judge, or because a person allows it."""

import inspect
import logging
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

import msgspec

from towline_agent.errors import ToolError
from towline_agent.host import Host
from towline_agent.permissions.doubt import Allowed, Judge
from towline_agent.permissions.gate import Case, Verdict, judge
from towline_agent.permissions.part import Part
from towline_agent.permissions.policy import Policy
from towline_agent.permissions.request import (
    Asked,
    bind,
    make_request,
    read_denial,
    read_rule,
    tell_denial,
)
from towline_agent.plan import CallRecord, Plan
from towline_agent.tasks import heed_cancel, run_apart
from towline_agent.tools.tool import Look, Tool
from towline_agent.workspaces.base import ABSENT, Workspace
from towline_protocol import (
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    UsageError,
    mend_text,
)

__all__ = ["CHANGED", "Refusal", "find_changed", "seek_consent"]

_log: Final = logging.getLogger("towline.agent")

CHANGED: Final = "{path!r} has changed since you looked; read it again, then decide anew."
"""What the model is told when a file is not as it was shown (A5.63)."""
_CHANGED_IN_CRASH: Final = (
    "A file has changed since you looked: what was allowed before the server was restarted would "
    "do something else now. Read it again, then decide anew."
)


class Refusal(NamedTuple):
    """Why a call does not run."""

    message: str
    """What the model is told."""
    status: str = "denied"
    """How the call ends."""


async def find_changed(workspace: Workspace, bases: Mapping[str, str]) -> tuple[str, ...]:
    """The files that are not as they were when they were looked at (A5.63)."""
    return tuple([path for path in bases if await _hash(workspace, path) != bases[path]])


async def _hash(workspace: Workspace, path: str) -> str:
    try:
        return (await workspace.read(path)).hash
    except ToolError:  # gone, or nothing that can be read
        return ABSENT


async def seek_consent(
    plan: Plan,
    host: Host,
    record: CallRecord,
    tool: Tool,
    look: Look,
    describe: Callable[[], Asked],
) -> Refusal | None:
    """Why a call may not run; `None` when it may.

    Args:
        plan: What the turn works with; a rule for the session goes into it.
        host: Asks people.
        record: What the log says of the call already: what was decided before a crash holds.
        tool: What would run.
        look: What it would do.
        describe: What a person would see; asked for when somebody has to decide.
    """
    if record.started and all(part.caution is None for part in look.parts):
        return None  # it was allowed before the crash, and it may run again
    request = record.request
    if request is None:
        case = _case(plan, tool, look)
        verdict = judge(case)
        if verdict.action == "allow" and plan.judge is not None:
            verdict = await _doubt(plan.judge, case, verdict, describe())
        if verdict.action == "allow":
            return None
        if verdict.action == "deny":
            return Refusal(tell_denial(verdict))
        request = make_request(PermissionId(plan.mint("prm")), case, verdict, describe())
    decision = record.decision or await host.ask(request)
    denial = read_denial(decision, request)
    if denial is not None:
        return Refusal(denial)
    return _take(plan, _case(plan, tool, look), describe(), request, decision)


def _take(
    plan: Plan,
    case: Case,
    asked: Asked,
    request: PermissionRequested,
    decision: PermissionResolved,
) -> Refusal | None:
    """Take in an answer that allows, unless it was given for something else or a denial came."""
    if case.looked and bind(request.permission, case, asked, request.options) != request.digest:
        return Refusal(_CHANGED_IN_CRASH, status="failed")
    verdict = judge(case)  # the rules or the mode may be others now
    if verdict.action == "deny":
        return Refusal(tell_denial(verdict))
    rule = read_rule(decision, request)
    if rule is not None and rule not in plan.rules:  # the host may have taken it already
        plan.rules.append(rule)
    return None


def _cautious(parts: tuple[Part, ...]) -> tuple[Part, ...]:
    """The parts of a call that nothing brings back (A5.42)."""
    return tuple(
        msgspec.structs.replace(part, caution=part.caution or "It cannot be undone.")
        for part in parts
    )


def _case(plan: Plan, tool: Tool, look: Look) -> Case:
    policy = plan.policy()
    if not isinstance(policy, Policy):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"'policy' gave {policy!r}; return a `Policy`.")
    return Case(
        tool=tool.name,
        effect=tool.effect,
        parts=_cautious(look.parts) if tool.irreversible else look.parts,
        mode=policy.mode or plan.mode,
        rules=tuple(plan.rules),
        policy=policy,
        root=plan.workspace.root,
        whole=look.whole,
        reason=tool.reason,
        looked=tool.look is not None,
    )


async def _doubt(look_at: Judge, case: Case, verdict: Verdict, asked: Asked) -> Verdict:
    """Let the judge look at what would run unasked: it can only make a person look (A5.70)."""
    allowed = Allowed(
        tool=case.tool,
        effect=case.effect,
        arguments=asked.arguments,
        parts=case.parts,
        reason=verdict.reason,
    )
    try:
        doubt = await run_apart(_ask_judge(look_at, allowed))
    except Exception as error:  # a rim, as a tool call is one: the judge is code of others
        heed_cancel()
        _log.error("The judge failed in call %s", asked.call, exc_info=error)
        doubt = "What looks at such calls has failed."
    return verdict if doubt is None else Verdict("ask", doubt, case.parts)


async def _ask_judge(look_at: Judge, allowed: Allowed) -> str | None:
    asked: object = look_at(allowed)
    if not inspect.isawaitable(asked):
        raise UsageError(f"'judge' gave {asked!r} at once; make it an `async def` function.")
    doubt = cast("object", await asked)
    if doubt is not None and not isinstance(doubt, str):
        raise UsageError(f"'judge' gave {doubt!r}; return the reason as text, or `None`.")
    return None if doubt is None else mend_text(doubt)  # it goes into an event
