"""The life of a step's tool calls: check, ask, run, cut, report."""

import asyncio
import logging
from collections.abc import Awaitable, Mapping
from functools import partial
from types import MappingProxyType
from typing import Any, Final, TypeVar, cast

from towline_agent.consent import CHANGED, find_changed, seek_consent
from towline_agent.errors import AbortTurn, ToolError
from towline_agent.host import Host
from towline_agent.limits import Spent, TimeLimit, cut_result, result_cap
from towline_agent.permissions.part import Part, read_subject
from towline_agent.permissions.request import Asked, bound_preview
from towline_agent.plan import CallRecord, Plan
from towline_agent.tasks import end_tasks, heed_cancel, wait_for
from towline_agent.tools.tool import Look, Tool, ToolOutput
from towline_agent.workspaces.base import Workspace
from towline_protocol import (
    CallId,
    FilesChanged,
    Preview,
    Process,
    ResultBlock,
    SessionId,
    Text,
    Todo,
    TodosUpdated,
    ToolCall,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    Usage,
    UsageError,
    block_text,
    format_time,
    mend_text,
)

__all__ = ["run_calls"]

_T = TypeVar("_T")

_log: Final = logging.getLogger("towline.agent")

_AT_ONCE: Final = 16
"""Read-only calls that run together (A4.14)."""
_TITLE_CHARS: Final = 200
_LOOK_S: Final = 60.0
"""Seconds that a tool may look before anybody decides; no preview is worth a longer wait."""

_UNKNOWN_EFFECT: Final = (
    "This call was running when the server stopped. It may or may not have had its effect; look "
    "before you repeat it."
)
_STILL_RUNNING: Final = (
    "It is still running in a thread, which cannot be stopped; it may yet have its effect."
)
_CUT_BY_LENGTH: Final = (
    "Not run: the answer was cut at the token limit, so these arguments may be incomplete. Ask for "
    "less at once."
)


async def run_calls(
    plan: Plan,
    host: Host,
    calls: tuple[ToolCall, ...],
    *,
    journal: dict[CallId, CallRecord],
    cut_by_length: bool = False,
    spent: Spent | None = None,
) -> None:
    """Bring every call to its one end, in the log (C1.23).

    Read-only calls run together, all others in the model's order (A4.14). Whatever a tool does, its
    call ends with a result and the loop goes on (A4.16).

    Args:
        plan: What the turn works with.
        host: Where events go and people are asked.
        calls: The open calls of the last message.
        journal: What the log says already of calls that a crash cut.
        cut_by_length: The answer hit the token limit: nothing of it is run (A4.13).
        spent: What the turn has used; what sub-agents use is added.

    Raises:
        AbortTurn: A tool ends the turn (A4.59); all calls have ended.
    """
    spent = spent or Spent()
    cap = result_cap(plan.provider.model.window)
    lives = [
        _Life(plan, host, call, journal.get(call.id), cut_by_length, spent, cap) for call in calls
    ]
    for life in lives:
        life.propose()  # all of them, before anything can be cut: what is proposed is ended below
    together = [life for life in lives if life.effect == "read"]
    try:
        for group in (together, *_in_turn(lives)):
            await _run_together(group)
            for life in group:
                life.raise_abort()
    finally:
        for life in lives:
            life.close()


def _in_turn(lives: list["_Life"]) -> list[list["_Life"]]:
    """Calls that do more than read, in their order: alone, or with others of their kind."""
    groups: list[list[_Life]] = []
    for life in lives:
        if life.effect == "read":
            continue
        if life.together and groups and groups[-1][-1].together:
            groups[-1].append(life)
        else:
            groups.append([life])
    return groups


async def _run_together(lives: list["_Life"]) -> None:
    """Run calls, each in a task of its own: what a tool does to its task stays in there."""
    if len(lives) <= _AT_ONCE:
        tasks = [asyncio.create_task(life.run()) for life in lives]
    else:
        gate = asyncio.Semaphore(_AT_ONCE)
        tasks = [asyncio.create_task(_run_in_turn(gate, life)) for life in lives]
    try:
        if tasks:
            await wait_for(tasks)
    finally:
        for life in lives:
            life.cut = True
        await end_tasks(*tasks)
    for life, task in zip(lives, tasks, strict=True):
        if task.cancelled():  # not by us, who would not come here
            life.end_cancelled_within()
        else:
            task.result()  # only the host's store raises through a call


async def _run_in_turn(gate: asyncio.Semaphore, life: "_Life") -> None:
    async with gate:
        await life.run()


class _Life:
    """One call from its proposal to its end. Serves the tool as its context."""

    # how each one begins
    bases: Mapping[str, str] = MappingProxyType({})
    cut = False  # the calls are being ended
    _bill: Spent | None = None  # what was used for it elsewhere
    _started_s: float | None = None
    _running = False
    _withdrawn: str | None = None
    _ended = False
    _written = 0
    _abort: AbortTurn | None = None

    def __init__(
        self,
        plan: Plan,
        host: Host,
        call: ToolCall,
        record: CallRecord | None,
        cut_by_length: bool,
        spent: Spent,
        cap: int,
    ) -> None:
        self.call = call.id
        self.workspace: Workspace = plan.workspace
        self.state = plan.state
        self.result_limit = cap
        self._plan = plan
        self._host = host
        self._emit = host.emit
        self._call = call
        self._record = record or CallRecord(call=call.id)
        self._tool = plan.tools.get(call.name)
        self.effect = "read" if self._tool is None else self._tool.effect
        """What the call does to the world; a call that cannot run does nothing."""
        self.together = self._tool is not None and self._tool.together
        """Whether it runs beside others of its kind."""
        self._spent = spent
        self._arguments: dict[str, Any] = {}
        self._title = call.name
        self._subject = call.arguments
        self._preview = Preview(kind="text", text=call.arguments)
        self._refusal = self._check(cut_by_length)

    def propose(self) -> None:
        """Say what the model asked for."""
        if self._record.proposed:
            return
        self._emit(
            ToolProposed(
                call=self._call.id,
                tool=self._call.name,
                arguments=self._call.arguments,
                title=self._title,
                effect=self.effect,
                preview=bound_preview(self._preview) if self.effect != "read" else None,
            )
        )

    async def run(self) -> None:
        """Ask when a person must be asked, run, and report. A rim: nothing but a cancel leaves."""
        if self._record.started and not _repeatable(self._tool):
            self._end("unknown", _UNKNOWN_EFFECT)
            return
        if self._refusal is not None:
            self._end("failed", self._refusal)
            return
        assert self._tool is not None
        look = self._shown() if self._tool.look is None else await self._look(self._tool)
        if look is None or not await self._permit(self._tool, look):
            return
        if not look.bases or await self._is_as_seen(self._tool, look):
            await self._perform(self._tool)

    def raise_abort(self) -> None:
        """Raise what the tool raised to end the turn, if it did."""
        if self._abort is not None:
            raise self._abort

    def close(self) -> None:
        """End a call that a cancel kept from its end (A4.23, A4.26)."""
        if self._ended:
            return
        if self._running and self._tool is not None and self._tool.threaded:
            self._end("unknown", f"Cancelled. {_STILL_RUNNING}")
        elif self._started_s is None and not self._record.started:
            self._end("cancelled", "Cancelled before it began.")
        else:
            self._end("cancelled", "Cancelled before it finished.")

    def end_cancelled_within(self) -> None:
        """End a call whose own code, or the host's, has cancelled the task that it runs in."""
        if self._ended or self._started_s is None:
            self.close()
            return
        told = f"{self._call.name} was cancelled by its own code."
        if self._running and self._tool is not None and self._tool.threaded:
            self._end("unknown", f"{told} {_STILL_RUNNING}")
        else:
            self._end("failed", told)

    # the tool's context

    def output(self, text: str) -> None:
        """Show a piece of output while the call runs."""
        if text and not self._ended:
            text = mend_text(text)
            self._emit(ToolOutputDelta(call=self._call.id, at=self._written, text=text))
            self._written += len(text)

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Show how far the call is."""
        if not self._ended:
            text = mend_text(text)
            self._emit(ToolProgress(call=self._call.id, text=text, fraction=fraction))

    async def start(self, process: Process | None, child: SessionId | None = None) -> None:
        """Make a program's or a sub-agent's start durable before its effect (C5.6, D5)."""
        await self._start(process, child)

    def todos(self, todos: tuple[Todo, ...]) -> None:
        """Show the agent's plan, whole."""
        self._emit(TodosUpdated(todos=todos))

    def spend(self, usage: Usage, cost: float | None) -> None:
        """Count what was used for the call elsewhere, by a sub-agent, to the turn (D5)."""
        if not self._ended:
            self._bill = self._bill or Spent()
            self._bill.add(usage, cost)
            self._spent.add(usage, cost)

    def used_up(self) -> str | None:
        """Why nothing more may be used for the turn; `None` while it may."""
        return self._plan.used_up() or self._spent.used_up(self._plan.limits)

    def withdraw(self, why: str) -> None:
        """Take note that the function never began: it was cut while it waited for a thread."""
        self._running = False
        self._withdrawn = why

    # the steps of a life

    def _check(self, cut_by_length: bool) -> str | None:
        """Why the call cannot run; `None` when it can (A4.13, A4.16)."""
        if cut_by_length:
            return _CUT_BY_LENGTH
        if self._tool is None:
            return self._plan.tools.explain_missing(self._call.name)
        try:
            self._read(self._tool)
        except ToolError as error:
            return error.message
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # a rim: the tool's own code looks at the arguments
            return self._surprise(error)
        return None

    def _read(self, tool: Tool) -> None:
        """Learn what the arguments alone say."""
        arguments = self._arguments = tool.check(self._call.arguments)
        if tool.title is not None:
            self._title = mend_text(str(tool.title(arguments))[:_TITLE_CHARS])
        if tool.subject is not None:
            self._subject = read_subject(tool.subject(arguments))
        if tool.preview is not None:
            preview = tool.preview(arguments)
            if not isinstance(cast("object", preview), Preview):
                raise UsageError(f"'preview' gave {preview!r}; return a `Preview`.")
            self._preview = preview

    def _shown(self) -> Look:
        """What the arguments alone say that the call would do."""
        return Look(parts=(Part(subject=self._subject),), preview=self._preview)

    async def _look(self, tool: Tool) -> Look | None:
        """Learn what the call would do, before anybody decides on it; `None` when it has ended."""
        assert tool.look is not None
        look = await self._guard(tool, _look_at(tool.look(self, self._arguments)), _LOOK_S)
        self._heed_cut()  # or somebody would be asked for whom nobody waits any more
        if look is not None:
            self._preview = look.preview or self._preview
            self.bases = look.bases
        return look

    async def _permit(self, tool: Tool, look: Look) -> bool:
        """Whether the call may run; else it has ended."""
        asked = partial(self._asked, look)
        refusal = await seek_consent(self._plan, self._host, self._record, tool, look, asked)
        if refusal is not None:
            self._end(refusal.status, refusal.message)
            return False
        opened = [place for part in look.parts for place in part.grants]
        if opened:
            self.workspace = self.workspace.grant(frozenset(opened))
        return True

    def _asked(self, look: Look) -> Asked:
        """What a person is asked about, when one is."""
        return Asked(
            call=self._call.id,
            title=self._title,
            arguments=self._call.arguments,
            preview=self._preview,
            bases=look.bases,
            expires_at=format_time(self._plan.clock.now_ms()),  # the host sets the real deadline
        )

    async def _is_as_seen(self, tool: Tool, look: Look) -> bool:
        """Whether all is still as a person saw it, who may have taken their time (A5.63)."""
        changed = await self._guard(tool, find_changed(self.workspace, look.bases), _LOOK_S)
        if changed:
            self._end("failed", CHANGED.format(path=changed[0]))
        return changed == ()

    async def _start(self, process: Process | None, child: SessionId | None = None) -> None:
        self._started_s = self._plan.clock.monotonic()
        self._emit(ToolStarted(call=self._call.id, process=process, child=child))
        await self._host.settle()
        self._running = True

    def _heed_cut(self) -> None:
        """Raise a cancel of ours that code of others has swallowed; its own are no matter here."""
        if self.cut:
            raise asyncio.CancelledError

    async def _perform(self, tool: Tool) -> None:
        self._heed_cut()  # who allowed it may have swallowed the cancel
        if not tool.journals:
            await self._start(None)
        output = await self._guard(tool, tool.run(self, self._arguments), tool.timeout_s)
        if output is not None:
            self._report(output)

    async def _guard(self, tool: Tool, work: Awaitable[_T], timeout_s: float | None) -> _T | None:
        """What a tool's own code returns. A rim: `None` when it raised, which ends the call."""
        limit = TimeLimit(timeout_s)
        try:
            with limit:
                return await work
        except asyncio.CancelledError:
            heed_cancel()
            self._end("failed", f"{tool.name} was cancelled by its own code.")
        except ToolError as error:
            self._end(error.status, error.message)
        except AbortTurn as error:
            self._abort = error
            self._end("failed", error.message)
        except (KeyboardInterrupt, GeneratorExit):
            raise
        except BaseException as error:  # a surprise is the model's error result (A4.18)
            if isinstance(error, TimeoutError) and limit.expired:
                self._time_out(tool, timeout_s)
            else:
                self._end("failed", self._surprise(error))
        return None

    def _surprise(self, error: BaseException) -> str:
        """What the model is told of an exception; its text goes to the log alone (A4.18)."""
        _log.error("Tool %s failed in call %s", self._call.name, self._call.id, exc_info=error)
        return f"{self._call.name} failed with {type(error).__name__}."

    def _time_out(self, tool: Tool, timeout_s: float | None) -> None:
        took = f"{tool.name} took longer than {timeout_s:g} s."
        if self._withdrawn is not None:
            self._end("failed", f"{tool.name} never began: {self._withdrawn}. {took}")
        elif tool.threaded and self._running:
            self._end("unknown", f"{took} {_STILL_RUNNING}")
        else:
            self._end("failed", took)

    def _report(self, output: ToolOutput) -> None:
        if output.changes:
            self._emit(FilesChanged(call=self._call.id, changes=output.changes))
        self._finish("failed" if output.is_error else "completed", output)

    def _end(self, status: str, message: str) -> None:
        content = (Text(text=mend_text(message)),)
        self._finish(status, ToolOutput(content=content, is_error=True))

    def _finish(self, status: str, output: ToolOutput) -> None:
        self._ended = True
        self._running = False
        took_s = 0.0
        if self._started_s is not None:
            took_s = self._plan.clock.monotonic() - self._started_s
        self._emit(
            ToolEnded(
                call=self._call.id,
                status=status,
                content=cut_result(output.content, self.result_limit),
                is_error=output.is_error,
                duration_ms=round(took_s * 1000),
                artifacts=output.artifacts,
                files=self._keep_whole(output.content),
                usage=None if self._bill is None else self._bill.usage,
                cost=None if self._bill is None else self._bill.cost,
            )
        )

    def _keep_whole(self, content: tuple[ResultBlock, ...]) -> tuple[str, ...]:
        """Keep, for people, an output that the model is told only in part (C1.10)."""
        if self._plan.keep is None:
            return ()
        whole = block_text(content)
        if len(whole) <= self.result_limit:
            return ()
        file = self._plan.keep(whole, f"{self._call.id}-output.txt")
        return () if file is None else (file,)


async def _look_at(found: Awaitable[Look]) -> Look:
    """What a tool's `look` found; the gate would stumble over anything else."""
    look = await found
    parts = look.parts if isinstance(cast("object", look), Look) else ()
    if not parts or not all(isinstance(cast("object", part.subject), str) for part in parts):
        raise UsageError(
            f"'look' gave {look!r}; return a `Look` of one part or more, each with a "
            "text as its subject."
        )
    return look


def _repeatable(tool: Tool | None) -> bool:
    """Whether a call may run again after a crash (C5.5)."""
    return tool is not None and (tool.effect == "read" or tool.idempotent)
