"""Programs that run on in the background while the conversation goes on (A5.20)."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Annotated, Final, Literal

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.tools.builtin.ending import tell_end
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext, ToolOutput
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.output import TextCut
from towline_agent.workspaces.threads import run_to_the_end
from towline_protocol import CommandArtifact, Process, Text

__all__ = ["JOBS_MAX", "JOB_MAX_S", "Job", "Jobs", "RunJob", "job", "show_job"]

JOBS_MAX: Final = 8
"""Jobs of one conversation that run at once."""
JOB_MAX_S: Final = 4 * 3600.0
"""Seconds after which a job is ended: a server that was forgotten must not keep its session in
memory, and its port, for ever."""
WAIT_MAX_S: Final = 120
"""Seconds that a call may wait for a job."""

_ENDED_KEPT: Final = 16
"""Jobs that have ended and can still be read."""
_EARLY_S: Final = 0.5
"""What fails at its start has mostly failed by then, and the call can say so."""
_TITLE_CHARS: Final = 60
_TAIL_CHARS: Final = 4000

_log: Final = logging.getLogger("towline.agent")

RunJob = Callable[
    [Callable[[Process], Awaitable[None]], Callable[[str], None]], Awaitable[ProgramResult]
]
"""Runs the program: told whom to tell of its start, and of each piece of output."""


class Job:
    """One program in the background."""

    def __init__(self, command: str, limit: int) -> None:
        self.command = command
        """Its command line."""
        self.id = ""
        """`job_` and its process id; empty until it has begun."""
        self.told = False
        """Whether the model knows how it ended."""
        self._limit = limit
        self._unread = TextCut(limit)
        self._task: asyncio.Task[ProgramResult] | None = None
        self._began_s = time.monotonic()
        self._ended_s: float | None = None

    def begin(self, task: asyncio.Task[ProgramResult]) -> None:
        """Name the task that runs it."""
        self._task = task
        task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[ProgramResult]) -> None:
        self._ended_s = time.monotonic()
        error = None if task.cancelled() else task.exception()
        if error is not None and not isinstance(error, ToolError):
            _log.error("The job %s failed by a fault of ours", self.id, exc_info=error)

    def take(self, text: str) -> None:
        """Take in a piece of output."""
        self._unread.add(text)

    @property
    def task(self) -> asyncio.Task[ProgramResult]:
        """What runs it."""
        assert self._task is not None
        return self._task

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._task is not None and not self._task.done()

    @property
    def took_s(self) -> int:
        """Seconds since its begin, or until its end."""
        until = time.monotonic() if self._ended_s is None else self._ended_s
        return round(until - self._began_s)

    @property
    def exit_code(self) -> int | None:
        """Its exit code; `None` while it runs, and when it was ended from outside."""
        task = self._task
        if task is None or not task.done() or task.cancelled() or task.exception() is not None:
            return None
        return task.result().exit_code

    def tell(self) -> str:
        """How it is, in half a sentence."""
        if self.runs:
            return f"runs since {self.took_s} s"
        if self.task.cancelled():
            return f"was stopped after {self.took_s} s"
        error = self.task.exception()
        if error is not None:
            return error.message if isinstance(error, ToolError) else "failed by a fault of ours"
        return f"has ended after {self.took_s} s: {tell_end(self.task.result(), JOB_MAX_S)}"

    def read(self) -> str:
        """Its output since the last time, cut in the middle when it is too long."""
        unread, self._unread = self._unread, TextCut(self._limit)
        self.told = self.told or not self.runs
        return unread.cut()


class Jobs:
    """The jobs of one conversation; kept in `ToolContext.state`, and ended with it."""

    def __init__(self) -> None:
        self._jobs: dict[str, Job] = {}

    @property
    def busy(self) -> bool:
        """Whether one runs: the conversation stays in memory as long."""
        return any(job.runs for job in self._jobs.values())

    def all(self) -> tuple[Job, ...]:
        """Those that run and the last that have ended, oldest first."""
        return tuple(self._jobs.values())

    def get(self, id_: str) -> Job:
        """The job of that id.

        Raises:
            ToolInputInvalid: There is none.
        """
        found = self._jobs.get(id_)
        if found is None:
            known = ", ".join(self._jobs) or "none"
            raise ToolInputInvalid(
                f"There is no job {id_!r}; there are: {known}. Jobs end with their session and "
                "its server, and after some hours."
            )
        return found

    async def start(self, context: ToolContext, command: str, run: RunJob) -> Job:
        """Begin a job; it has begun when this returns, and may have ended.

        Raises:
            ToolError: It could not be started, or too many run.
        """
        running = sum(job.runs for job in self._jobs.values())
        if running >= JOBS_MAX:
            raise ToolError(f"{running} jobs run already, the most there may be; stop one first.")
        job = Job(command, context.result_limit // 2)

        async def on_start(process: Process) -> None:
            await context.start(process)
            job.id = f"job_{process.pid}"

        task = asyncio.create_task(_run(run, on_start, job))
        job.begin(task)
        kept = False
        try:
            await asyncio.wait({task}, timeout=_EARLY_S)
            while not job.id and not task.done():  # its start takes its time to be durable
                await asyncio.wait({task}, timeout=_EARLY_S)
            if task.done():
                task.result()  # raises why it could not be started, if it could not
            kept = True
        finally:
            if not kept:
                await _end_all(task)
        self._keep(job)
        return job

    def _keep(self, job: Job) -> None:
        self._jobs[job.id] = job
        ended = [id_ for id_, other in self._jobs.items() if not other.runs and other is not job]
        for id_ in ended[: max(0, len(ended) - _ENDED_KEPT)]:
            del self._jobs[id_]

    async def stop(self, job: Job) -> None:
        """End a job and all its processes."""
        await _end_all(job.task)
        job.told = True

    def remind(self) -> tuple[str, ...]:
        """What a model is reminded of: what runs, and what has ended and was not read."""
        lines = [
            f"{job.id} {job.tell()}: {_short(job.command)}"
            for job in self._jobs.values()
            if job.runs or not job.told
        ]
        return ("Background jobs:\n" + "\n".join(lines),) if lines else ()

    async def aclose(self) -> None:
        """End all of them."""
        tasks = [job.task for job in self._jobs.values()]
        self._jobs.clear()
        await _end_all(*tasks)


async def _end_all(*tasks: asyncio.Task[ProgramResult]) -> None:
    """End the programs, also when the caller is cancelled meanwhile."""
    for task in tasks:
        task.cancel()
    if tasks:
        await run_to_the_end(_wait_for(tasks))


async def _wait_for(tasks: tuple[asyncio.Task[ProgramResult], ...]) -> None:
    await asyncio.wait(tasks)


async def _run(
    run: RunJob, on_start: Callable[[Process], Awaitable[None]], job: Job
) -> ProgramResult:
    return await run(on_start, job.take)


def _short(command: str) -> str:
    words = " ".join(command.split())
    return words if len(words) <= _TITLE_CHARS else f"{words[:_TITLE_CHARS]}…"


def _title_of(arguments: dict[str, str]) -> str:
    names = {"list": "List the jobs", "read": "Read {}", "stop": "Stop {}"}
    return names[arguments["action"]].format(arguments.get("id", ""))


@tool(effect="own", idempotent=True, timeout_s=WAIT_MAX_S + 20.0, title=_title_of)
async def job(
    context: ToolContext,
    action: Literal["list", "read", "stop"],
    id: str = "",  # noqa: A002 - the word that the model sees in results
    wait_s: Annotated[int, msgspec.Meta(ge=0, le=WAIT_MAX_S)] = 0,
) -> ToolOutput:
    """Look after background jobs: list them, read one's new output, or stop it.

    Args:
        context: The call.
        action: What to do.
        id: Of the job to read or stop.
        wait_s: Before reading, for its end.
    """
    jobs = context.state.get(Jobs)
    if action == "list":
        lines = [f"{found.id} {found.tell()}: {found.command}" for found in jobs.all()]
        return ToolOutput(content=(Text(text="\n".join(lines) or "There are no jobs."),))
    found = jobs.get(id)
    if action == "stop":
        await jobs.stop(found)
    elif wait_s and found.runs:
        await asyncio.wait({found.task}, timeout=wait_s)
    return show_job(found)


def show_job(found: Job, note: str = "") -> ToolOutput:
    """How a job is, with its output since the last time.

    Args:
        found: The job.
        note: What else there is to know while it runs.
    """
    output = found.read()
    state = f"{found.id} {found.tell()}" + (f"\n{note}" if note and found.runs else "")
    artifact = CommandArtifact(
        command=found.command,
        exit_code=found.exit_code,
        output=output[-_TAIL_CHARS:],
        job=found.id if found.runs else None,
    )
    return ToolOutput(
        content=(Text(text=f"{state}\n{output or '(no new output)'}"),), artifacts=(artifact,)
    )
