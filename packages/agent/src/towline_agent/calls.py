"""The life of a step's tool calls: check, ask, run, cut, report."""

import asyncio
import difflib
import logging
from typing import Any, Final

from towline_agent.errors import AbortTurn, ToolError, ToolTimeout
from towline_agent.host import Host
from towline_agent.limits import cut_middle, result_cap
from towline_agent.permissions.gate import Verdict, judge, offered_options
from towline_agent.permissions.rules import parse_rule
from towline_agent.plan import CallRecord, Plan
from towline_agent.tools.tool import Tool, ToolOutput
from towline_agent.workspaces.base import Workspace
from towline_protocol import (
    DENY,
    CallId,
    Event,
    FilesChanged,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    Process,
    ResultBlock,
    Text,
    ToolCall,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    format_time,
    permission_digest,
)

__all__ = ["run_calls"]

_log: Final = logging.getLogger("towline.agent")

_AT_ONCE: Final = 16
"""Read-only calls that run together (A4.14)."""
_TITLE_CHARS: Final = 200
_PREVIEW_CHARS: Final = 65_536
"""A preview longer than this is cut, and says so: what is not seen is not approved (W07)."""

_UNKNOWN_EFFECT: Final = (
    "This call was running when the server stopped. It may or may not have had its effect; look "
    "before you repeat it."
)
_STILL_RUNNING: Final = (
    "Cancelled, but a thread cannot be stopped: this call may still be running and have its effect."
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

    Raises:
        AbortTurn: A tool ends the turn (A4.59); all calls have ended.
    """
    lives = [_Life(plan, host, call, journal.get(call.id), cut_by_length) for call in calls]
    for life in lives:
        life.propose()
    try:
        together = [life for life in lives if life.effect == "read"]
        gate = asyncio.Semaphore(_AT_ONCE)
        await _run_together(together, gate)
        for life in lives:
            if life.effect != "read":
                await life.run(gate)
                life.raise_abort()
        for life in together:
            life.raise_abort()
    finally:
        for life in lives:
            life.close()


async def _run_together(lives: list["_Life"], gate: asyncio.Semaphore) -> None:
    try:
        async with asyncio.TaskGroup() as group:
            for life in lives:
                group.create_task(life.run(gate))
    except ExceptionGroup as failures:  # only the host's store raises through a call
        raise failures.exceptions[0] from None


class _Life:
    """One call from its proposal to its end. Serves the tool as its context."""

    def __init__(
        self,
        plan: Plan,
        host: Host,
        call: ToolCall,
        record: CallRecord | None,
        cut_by_length: bool,
    ) -> None:
        self.workspace: Workspace = plan.workspace
        self.result_limit = result_cap(plan.provider.model.window)
        self._plan = plan
        self._host = host
        self._call = call
        self._record = record or CallRecord(call=call.id)
        self._tool = plan.tools.get(call.name)
        self._arguments: dict[str, Any] | None = None
        self._refusal = self._check(cut_by_length)
        self._started_s: float | None = None
        self._running = False
        self._ended = False
        self._written = 0
        self._abort: AbortTurn | None = None

    @property
    def effect(self) -> str:
        """What the call does to the world; a call that cannot run does nothing."""
        return "read" if self._tool is None else self._tool.effect

    def propose(self) -> None:
        """Say what the model asked for."""
        if self._record.proposed:
            return
        self._emit(
            ToolProposed(
                call=self._call.id,
                tool=self._call.name,
                arguments=self._call.arguments,
                title=self._title(),
                effect=self.effect,
                preview=self._preview() if self.effect != "read" else None,
            )
        )

    async def run(self, gate: asyncio.Semaphore) -> None:
        """Ask when a person must be asked, run, and report. A rim: nothing but a cancel leaves."""
        async with gate:
            if self._refusal is not None:
                self._end("failed", self._refusal)
                return
            assert self._tool is not None
            if self._record.started and not _repeatable(self._tool):
                self._end("unknown", _UNKNOWN_EFFECT)
                return
            denial = await self._permit(self._tool)
            if denial is not None:
                self._end("denied", denial)
                return
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
            self._end("unknown", _STILL_RUNNING)
        else:
            self._end("cancelled", "Cancelled before it finished.")

    # the tool's context

    def output(self, text: str) -> None:
        """Show a piece of output while the call runs."""
        if text and not self._ended:
            self._emit(ToolOutputDelta(call=self._call.id, at=self._written, text=text))
            self._written += len(text)

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Show how far the call is."""
        if not self._ended:
            self._emit(ToolProgress(call=self._call.id, text=text, fraction=fraction))

    async def start(self, process: Process) -> None:
        """Make a program's start durable before its effect (C5.6)."""
        await self._start(process)

    # the steps of a life

    def _check(self, cut_by_length: bool) -> str | None:
        """Why the call cannot run; `None` when it can (A4.13, A4.16)."""
        if cut_by_length:
            return _CUT_BY_LENGTH
        if self._tool is None:
            near = difflib.get_close_matches(self._call.name, self._plan.tools, n=1)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            names = ", ".join(self._plan.tools) or "none"
            return f"There is no tool {self._call.name!r}.{hint} The tools are: {names}."
        try:
            self._arguments = self._tool.check(self._call.arguments)
        except ToolError as error:
            return error.message
        return None

    def _title(self) -> str:
        if self._tool is None or self._arguments is None or self._tool.title is None:
            return self._call.name
        return self._tool.title(self._arguments)[:_TITLE_CHARS]

    def _preview(self) -> Preview:
        tool, arguments = self._tool, self._arguments
        if tool is not None and arguments is not None and tool.preview is not None:
            preview = tool.preview(arguments)
        else:
            preview = Preview(kind="text", text=self._call.arguments)
        if len(preview.text) <= _PREVIEW_CHARS:
            return preview
        return Preview(kind=preview.kind, text=preview.text[:_PREVIEW_CHARS], truncated=True)

    def _subject(self, tool: Tool) -> str:
        assert self._arguments is not None
        return self._call.arguments if tool.subject is None else tool.subject(self._arguments)

    async def _permit(self, tool: Tool) -> str | None:
        """Why the call may not run; `None` when it may."""
        if self._record.started:
            return None  # it was allowed before the crash, and it may run again
        decision = self._record.decision
        if decision is None:
            verdict = judge(
                mode=self._plan.mode,
                rules=tuple(self._plan.rules),
                tool=tool.name,
                effect=tool.effect,
                subject=self._subject(tool),
            )
            if verdict.action == "deny":
                return f"Denied by {verdict.reason}. Do not try to get round it."
            if verdict.action == "allow":
                return None
            decision = await self._host.ask(self._record.request or self._request(tool, verdict))
        return self._take(decision, tool)

    def _request(self, tool: Tool, verdict: Verdict) -> PermissionRequested:
        permission = PermissionId(self._plan.mint("prm"))
        options = offered_options(tool.name, self._subject(tool))
        return PermissionRequested(
            permission=permission,
            call=self._call.id,
            tool=tool.name,
            title=self._title(),
            preview=self._preview(),
            digest=permission_digest(
                permission=permission,
                tool=tool.name,
                arguments=self._call.arguments,
                cwd=self.workspace.root,
                options=tuple(option.id for option in options),
            ),
            options=options,
            reason=verdict.reason,
            expires_at=format_time(self._plan.clock.now_ms()),  # the host sets the real deadline
        )

    def _take(self, decision: PermissionResolved, tool: Tool) -> str | None:
        if decision.option == DENY:
            why = {"deadline": "Nobody answered in time, so it was denied."}.get(
                decision.by, "A person denied it."
            )
            note = f" They say: {decision.note}" if decision.note else ""
            return f"{why}{note} Do not try to get round it."
        if decision.option == "allow_session":
            for option in offered_options(tool.name, self._subject(tool)):
                if option.id == decision.option and option.rule is not None:
                    rule = parse_rule(option.rule)
                    if rule not in self._plan.rules:  # the host may have taken it already
                        self._plan.rules.append(rule)
        return None

    async def _start(self, process: Process | None) -> None:
        self._started_s = self._plan.clock.monotonic()
        self._running = True
        self._emit(ToolStarted(call=self._call.id, process=process))
        await self._host.settle()

    async def _perform(self, tool: Tool) -> None:
        assert self._arguments is not None
        if not tool.journals:
            await self._start(None)
        try:
            async with asyncio.timeout(tool.timeout_s):
                output = await tool.run(self, self._arguments)
        except TimeoutError:
            error = ToolTimeout(f"{tool.name} took longer than {tool.timeout_s:g} s.")
            self._end("failed", error.message)
        except ToolError as error:
            self._end("failed", error.message)
        except AbortTurn as error:
            self._abort = error
            self._end("failed", error.message)
        except Exception as error:  # a rim: a tool's surprise is the model's error result (A4.18)
            _log.exception("Tool %s failed in call %s", tool.name, self._call.id)
            self._end("failed", f"{tool.name} failed with {type(error).__name__}.")
        else:
            self._report(output)

    def _report(self, output: ToolOutput) -> None:
        if output.changes:
            self._emit(FilesChanged(call=self._call.id, changes=output.changes))
        content = tuple(_cut(block, self.result_limit) for block in output.content)
        status = "failed" if output.is_error else "completed"
        self._finish(status, content, output)

    def _end(self, status: str, message: str) -> None:
        content: tuple[ResultBlock, ...] = (Text(text=message),)
        self._finish(status, content, ToolOutput(content=content, is_error=True))

    def _finish(self, status: str, content: tuple[ResultBlock, ...], output: ToolOutput) -> None:
        self._ended = True
        self._running = False
        took = 0.0
        if self._started_s is not None:
            took = self._plan.clock.monotonic() - self._started_s
        self._emit(
            ToolEnded(
                call=self._call.id,
                status=status,
                content=content,
                is_error=output.is_error,
                duration_ms=round(took * 1000),
                artifacts=output.artifacts,
            )
        )

    def _emit(self, event: Event) -> None:
        self._host.emit(event)


def _repeatable(tool: Tool) -> bool:
    """Whether a call may run again after a crash (C5.5)."""
    return tool.effect == "read" or tool.idempotent


def _cut(block: ResultBlock, cap: int) -> ResultBlock:
    return Text(text=cut_middle(block.text, cap)) if isinstance(block, Text) else block
