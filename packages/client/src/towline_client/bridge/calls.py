"""Calls of this program's tools: claimed, run, answered, each once (C5.12)."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

import msgspec

from towline_client.bridge.contain import contain
from towline_client.bridge.handlers import Handlers
from towline_client.bridge.journal import Journal, Note
from towline_client.bridge.line import Line
from towline_client.bridge.patience import insist
from towline_client.bridge.progress import Progress
from towline_client.bridge.result import to_content
from towline_client.bridge.tool import BoundTool, CallContext
from towline_client.clock import Clock
from towline_client.current import Current
from towline_client.errors import CallFailed, CommandRejected
from towline_protocol import (
    CallId,
    CallView,
    ClientBlock,
    ClientCall,
    Text,
    TowlineError,
    mend_text,
)

__all__ = ["MAX_AT_ONCE", "Calls", "Result"]

MAX_AT_ONCE: Final = 8
"""Calls of one session that run at once; the others are left to other clients until one ends."""

_MAY_HAVE_RUN: Final = (
    "The program that runs {tool} was started again while it ran. It may or may not have had its "
    "effect; look before you repeat it."
)
_LEFT: Final = (
    "The program that runs {tool} was closed before it had ended. It may or may not have had its "
    "effect; look before you repeat it."
)

_ENDED: Final = ("conflict", "gone", "not_found")
"""What a result is answered when it comes too late, or another one was there first."""

_T = TypeVar("_T")

_log: Final = logging.getLogger("towline.client")


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """What a call came to here."""

    content: tuple[ClientBlock, ...]
    """What the model is told."""
    is_error: bool = False
    """Whether it is told as an error."""

    @classmethod
    def failed(cls, text: str) -> "Result":
        """An error, in words."""
        return cls(content=(Text(text=mend_text(text)),), is_error=True)


class _Job:
    """One call that this program may answer."""

    def __init__(self, view: CallView, tool: BoundTool, *, resumed: bool) -> None:
        self.view = view
        """The call as it was last seen open."""
        self.tool = tool
        self.resumed = resumed
        """Whether an earlier life of this program had claimed it."""
        self.claimed = False
        """Whether this life has."""
        self.task: asyncio.Task[None] | None = None
        """What runs it; `None` when nothing does."""
        self.line = 0
        """The connection on which it was last begun."""
        self.result: Result | None = None
        """What it came to."""
        self.over = False
        """Whether there is nothing left to do for it; it may show open for a moment longer."""


class Calls:
    """What is done about the open calls of one session."""

    def __init__(
        self,
        handlers: Handlers,
        journal: Journal,
        *,
        clock: Clock,
        fetch: Callable[[str], Awaitable[bytes]],
    ) -> None:
        """Begin with none.

        Args:
            handlers: The tools.
            journal: Remembers what was begun.
            clock: Holds deadlines against the server's time.
            fetch: Gives the bytes of a file by its hash: arguments that are too long for an event.
        """
        self._handlers = handlers
        self._journal = journal
        self._clock = clock
        self._fetch = fetch
        self._jobs: dict[CallId, _Job] = {}
        self._tidying: set[asyncio.Task[None]] = set()
        self._places = asyncio.Semaphore(MAX_AT_ONCE)

    def look(self, current: Current, line: Line, group: asyncio.TaskGroup, *, begin: bool) -> None:
        """Cancel what ended elsewhere, and begin what waits for this program.

        Args:
            current: What is open by now.
            line: Where results go.
            group: Owns the work.
            begin: Whether the server knows the tools of this program by now.
        """
        offered = {
            call.call: call
            for call in current.view.open_calls
            if call.expires_at is not None and call.claimed_by in (None, line.reader)
        }
        for id_ in [id_ for id_ in self._jobs if id_ not in offered]:
            self._drop(self._jobs.pop(id_), group)
        if begin:
            for call in offered.values():
                self._consider(call, current, line, group)

    async def leave(self, line: Line) -> None:
        """Stop all that runs, and say of it that nobody will answer any more.

        Raises:
            TowlineError: It could not be said.
        """
        jobs = list(self._jobs.values())
        for job in jobs:
            if job.task is not None and not job.over:
                job.task.cancel()
        tasks = {job.task for job in jobs if job.task is not None} | self._tidying
        if tasks:
            await asyncio.wait(tasks)
        for job in jobs:
            if job.claimed and not job.over:
                left = Result.failed(_LEFT.format(tool=job.tool.declared.name))
                await self._deliver(job, job.result or left, line)

    def _drop(self, job: _Job, group: asyncio.TaskGroup) -> None:
        """The call has ended, or is another client's."""
        if job.task is not None and job.result is None:  # a result on its way may arrive
            job.task.cancel()
        if job.claimed:
            tidying = group.create_task(self._journal.forget(job.view.call))
            self._tidying.add(tidying)
            tidying.add_done_callback(self._tidying.discard)

    def _consider(
        self, call: CallView, current: Current, line: Line, group: asyncio.TaskGroup
    ) -> None:
        job = self._jobs.get(call.call)
        if job is None:
            tool = self._handlers.tools.get(call.tool)
            if tool is None or current.is_over(call.expires_at, self._clock.now_ms()):
                return
            job = _Job(call, tool, resumed=call.claimed_by is not None)
            self._jobs[call.call] = job
        former, job.view = job.view, call
        if job.task is not None:
            # Offered to all once more while it runs here: it is answered by whoever claims it now.
            if job.claimed and call.claimed_by is None and call.expires_at != former.expires_at:
                group.create_task(self._claim_again(job, line))
        elif not job.over and job.line != current.line:
            job.line = current.line
            job.task = group.create_task(self._serve(job, line))

    async def _serve(self, job: _Job, line: Line) -> None:
        """Bring a call to its end, or as far as the line allows."""
        try:
            async with self._places:
                claimed = await self._claim(job, line)
                if claimed is None:
                    return
                if job.result is None:
                    job.result = await self._find_result(job, claimed, line)
                await self._deliver(job, job.result, line)
        except TowlineError as error:
            _log.warning("The call %s is not answered so far: %s", job.view.call, error.message)
        finally:
            job.task = None

    async def _claim(self, job: _Job, line: Line) -> ClientCall | None:
        """Take a call, before it acts; `None` when it is not this program's."""
        try:
            claimed = await self._insist(lambda: line.claim(job.view.call), job, "The claim")
        except CommandRejected as error:
            _log.info("The call %s is left to others: %s", job.view.call, error.message)
            job.over = True
            return None
        job.claimed = True
        return claimed

    async def _claim_again(self, job: _Job, line: Line) -> None:
        try:
            claimed = await self._claim(job, line)
        except TowlineError as error:
            _log.info("The call %s may go to others: %s", job.view.call, error.message)
            return
        if claimed is None and job.task is not None:
            job.task.cancel()

    async def _find_result(self, job: _Job, claimed: ClientCall, line: Line) -> Result:
        """What an earlier life came to, or what the tool comes to now."""
        id_ = claimed.call
        note = await self._journal.find(id_)
        known = None if note is None else _read(note)
        if known is not None:
            return known
        begun = note is not None or (job.resumed and not self._journal.whole)
        if begun and not job.tool.harmless:
            return Result.failed(_MAY_HAVE_RUN.format(tool=job.tool.declared.name))
        arguments = claimed.arguments
        if job.view.arguments_file is not None:
            file = job.view.arguments_file
            fetched = await self._insist(lambda: self._fetch(file), job, "What asks for the file")
            arguments = fetched.decode("utf-8", "replace")
        await self._journal.begin(id_)
        result = await self._run(job, claimed, arguments, line)
        await self._journal.end(id_, msgspec.json.encode(result))
        return result

    async def _run(self, job: _Job, claimed: ClientCall, arguments: str, line: Line) -> Result:
        """What the tool's function comes to; nothing that it raises goes further."""
        name = job.tool.declared.name
        async with Progress(claimed.call, line) as progress:
            context = CallContext(
                claimed.call, session=line.id, expires_at=claimed.expires_at, show=progress.show
            )
            try:
                content = await contain(name, _content(job.tool, context, arguments))
            except CallFailed as error:  # said on purpose, so there is nothing to trace
                _log.info("Tool %s said in call %s why it failed", name, claimed.call)
                return Result.failed(error.message)
            except TowlineError as error:
                _log.warning("Tool %s failed in call %s", name, claimed.call, exc_info=error)
                return Result.failed(error.message)
            return Result(content=content)

    async def _insist(self, say: Callable[[], Awaitable[_T]], job: _Job, what: str) -> _T:
        return await insist(say, f"{what} of call {job.view.call}", clock=self._clock)

    async def _deliver(self, job: _Job, result: Result, line: Line) -> None:
        """Send a result until it is acknowledged."""
        id_ = job.view.call
        try:
            await self._insist(
                lambda: line.send_result(id_, result.content, is_error=result.is_error),
                job,
                "The result",
            )
        except CommandRejected as error:
            if error.problem.reason == "not_claimed":  # it went to all once more meanwhile
                if await self._claim(job, line) is not None:
                    await self._deliver(job, result, line)
                return
            if error.code not in _ENDED and not result.is_error:
                _log.error("The result of call %s was refused: %s", id_, error.message)
                job.result = Result.failed(f"The result was refused: {error.message}")
                await self._deliver(job, job.result, line)
                return
            _log.warning("The result of call %s was left out: %s", id_, error.message)
        job.over = True
        await self._journal.forget(id_)


def _read(note: Note) -> Result | None:
    """The result that a note holds; `None` when it has none that can be read."""
    if note.result is None:
        return None
    try:
        return msgspec.json.decode(note.result, type=Result)
    except msgspec.DecodeError:  # of another version of this package
        return None


async def _content(
    tool: BoundTool, context: CallContext, arguments: str
) -> tuple[ClientBlock, ...]:
    return to_content(await tool.run(context, arguments))
