"""Has a real model do the tasks, and prints the score.

    make tasks MODEL=anthropic/claude-sonnet-4-5
    make tasks ARGS='--task fix_failing_test --repeat 3'

Each runs in a throwaway copy of its project, with all tools, unasked, and its programs in a
sandbox. Without a model's name it is the one that `towline` would take.
"""

import argparse
import asyncio
import os
import sys
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Final

import msgspec
from tasks.index import open_index
from tasks.task import TASKS, Task, judge

from towline.assistant import INSTRUCTIONS, NAME, tools_for
from towline.local import cached_model, model_facts, model_folder
from towline.models import Choice, Models, find_model
from towline.paths import find_paths
from towline.picks import Picks
from towline.providers.reach import open_reach
from towline_agent import Agent, AgentResult, AuthenticationFailed, Provider, builtin_tools
from towline_agent.workspaces.sandbox import Confinement
from towline_protocol import Limits, TowlineError, UsageError
from towline_server import load_config

__all__ = ["Row", "Score", "choose_tasks", "main", "make_agent", "run_task", "run_tasks"]

_NO_MODEL: Final = 2
_LEFT: Final = 130
_LEAST: Final = 0.0
_WALL_S: Final = 600.0
_WHY_CHARS: Final = 60
_LINE: Final = "{:<22} {:<7} {:>5} {:>8} {:>9} {:>7}  {}"


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """What one run came to."""

    task: str
    """Its task."""
    passed: bool
    """Whether the project's tests say so."""
    why: str
    """What was wrong, if it was not."""
    steps: int = 0
    """Requests to the model."""
    tokens: int = 0
    """All tokens of these."""
    cost: float | None = None
    """US dollars; `None` when a price is unknown."""
    took_s: float = 0.0
    """Seconds, the judging not counted."""

    def line(self) -> str:
        """It as a line of the table."""
        cost = "-" if self.cost is None else f"{self.cost:.4f}"
        why = " ".join(self.why.split())
        why = why if len(why) <= _WHY_CHARS else f"…{why[-_WHY_CHARS:]}"
        done = "passed" if self.passed else "failed"
        return _LINE.format(
            self.task, done, self.steps, self.tokens, cost, f"{self.took_s:.0f} s", why
        ).rstrip()


class Score(msgspec.Struct, frozen=True, kw_only=True):
    """What all runs came to."""

    model: str
    """`provider/model`."""
    rows: tuple[Row, ...]
    """Each run."""
    passed: int
    """How many were done."""
    share: float
    """Of all."""


def _read_arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make tasks", description="Score a model on the tasks.")
    parser.add_argument("--model", help="provider/name; without it what towline finds")
    parser.add_argument("--task", action="append", metavar="NAME", help="only this one; repeatable")
    parser.add_argument("--easy", action="store_true", help="only those for small models")
    parser.add_argument("--repeat", type=int, default=1, metavar="N", help="runs of each task")
    parser.add_argument("--wall", type=float, default=_WALL_S, metavar="S", help="seconds a run")
    parser.add_argument("--least", type=float, default=_LEAST, help="share that must pass, 0 to 1")
    parser.add_argument("--json", action="store_true", help="print the score as JSON")
    parser.add_argument("--unconfined", action="store_true", help="run even without a sandbox")
    parser.add_argument("--list", action="store_true", help="print the names and do nothing")
    return parser.parse_args(argv)


def choose_tasks(names: Sequence[str] | None, *, easy: bool = False) -> tuple[Task, ...]:
    """The tasks that were asked for.

    Raises:
        UsageError: There is none of a name.
    """
    known = {task.name: task for task in TASKS}
    for name in names or ():
        if name not in known:
            raise UsageError(f"There is no task {name!r}; there are {', '.join(known)}.")
    chosen = [known[name] for name in names or known]
    return tuple(task for task in chosen if task.easy or not easy)


def make_agent(task: Task, provider: Provider, folder: Path, *, wall_s: float) -> Agent:
    """The product's own assistant, as it is for this model, at work in a copy of a project.

    Args:
        task: What it will be asked.
        provider: The model.
        folder: The copy.
        wall_s: Seconds after which a run is ended.
    """
    return Agent(
        provider,
        name=NAME,
        instructions=INSTRUCTIONS,
        tools=tools_for(builtin_tools(), provider.model),
        limits=Limits(max_steps=task.max_steps, wall_s=wall_s),
        root=str(folder),
        mode="auto",
    )


async def run_task(task: Task, provider: Provider, *, wall_s: float = _WALL_S) -> Row:
    """Have a model do a task in a throwaway copy, and judge what is there at its end.

    Raises:
        AuthenticationFailed: The model cannot be asked, this time and any other.
    """
    with tempfile.TemporaryDirectory(prefix="tasks-") as holder:
        folder = task.copy(Path(holder) / "project")
        agent = make_agent(task, provider, folder, wall_s=wall_s)
        began = time.monotonic()
        try:
            result = await agent.run(task.prompt)
        except AuthenticationFailed:
            raise
        except TowlineError as error:
            took_s = time.monotonic() - began
            why = f"{type(error).__name__}: {error.message}"
            return Row(task=task.name, passed=False, why=why, took_s=took_s)
        return _row(task, folder, result, time.monotonic() - began)


def _row(task: Task, folder: Path, result: AgentResult[None], took_s: float) -> Row:
    verdict, usage = judge(task, folder, result.final_message), result.usage
    ended = "" if result.stop_reason == "end_turn" else f" (stopped: {result.stop_reason})"
    return Row(
        task=task.name,
        passed=verdict.passed,
        why=f"{verdict.why}{ended}".strip(),
        steps=result.steps,
        tokens=usage.input + usage.output + usage.cache_read + usage.cache_write,
        cost=result.cost,
        took_s=took_s,
    )


async def run_tasks(
    tasks: Sequence[Task], provider: Provider, *, repeat: int = 1, wall_s: float = _WALL_S
) -> tuple[Row, ...]:
    """Have a model do tasks, each some times; tells how it goes on standard error."""
    _tell(_LINE.format("task", "", "steps", "tokens", "dollars", "time", ""))
    rows: list[Row] = []
    with _package_index():
        for task in tasks:
            for _ in range(repeat):
                rows.append(await run_task(task, provider, wall_s=wall_s))
                _tell(rows[-1].line())
    return tuple(rows)


@contextmanager
def _package_index() -> Generator[None]:
    """The index of the task that adds a package, in place of the machine's own."""
    before = os.environ.get("UV_DEFAULT_INDEX")
    with open_index() as address:
        os.environ["UV_DEFAULT_INDEX"] = address
        try:
            yield
        finally:
            del os.environ["UV_DEFAULT_INDEX"]
            if before is not None:
                os.environ["UV_DEFAULT_INDEX"] = before


async def _find_model(named: str | None) -> tuple[Choice, Models]:
    """The model that was named, or that towline would take.

    Raises:
        UsageError: None can be had.
    """
    paths, reach = find_paths(), open_reach()
    config = load_config(paths.config_file, os.environ, data_dir=paths.data_dir)
    choice = await find_model(
        named or config.model, reach.environ, picks=Picks(config.data_dir), stored=reach.stored
    )
    if choice.local and choice.file is None and cached_model(model_facts(), model_folder()) is None:
        raise UsageError(
            "There is no model. Name one (make tasks MODEL=provider/name), set a provider's key, "
            "or fetch the small one that runs here: make model."
        )
    return choice, Models(choice, reach=reach)


def _check_sandbox(*, unconfined: bool) -> None:
    """Nobody is asked before a program runs, so it must be kept in."""
    found = Confinement(tempfile.gettempdir()).find()
    if found.kind == "none" and not unconfined:
        raise UsageError(
            f"There is no sandbox here ({found.why}), and the model runs programs unasked. Install "
            "bubblewrap, or say --unconfined on a machine that may be lost."
        )


async def _run(asked: argparse.Namespace) -> int:
    tasks = choose_tasks(asked.task, easy=asked.easy)
    if asked.list:
        _print("\n".join(task.name for task in tasks))
        return 0
    _check_sandbox(unconfined=asked.unconfined)
    choice, models = await _find_model(asked.model)
    async with AsyncExitStack() as stack:
        if choice.local:
            stack.push_async_callback(models.local.aclose)
            await models.local.start()
        provider = (await models.connect(choice.model)).provider
        stack.push_async_callback(provider.aclose)
        _tell(f"{choice.model}: {choice.why}")
        rows = await run_tasks(tasks, provider, repeat=asked.repeat, wall_s=asked.wall)
    passed = sum(row.passed for row in rows)
    score = Score(
        model=choice.model, rows=rows, passed=passed, share=passed / len(rows) if rows else 0.0
    )
    if asked.json:
        _print(msgspec.json.format(msgspec.json.encode(score)).decode())
    _sum_up(score)
    return 0 if score.share >= asked.least else 1


def _sum_up(score: Score) -> None:
    costs = [row.cost for row in score.rows if row.cost is not None]
    cost = f", {sum(costs):.4f} dollars" if costs else ""
    tokens = sum(row.tokens for row in score.rows)
    took_s = sum(row.took_s for row in score.rows)
    _tell(
        f"Score of {score.model}: {score.passed} of {len(score.rows)} ({score.share:.0%}), "
        f"{tokens} tokens{cost}, {took_s:.0f} s"
    )


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _tell(text: str) -> None:
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run; gives the exit code.

    It is 1 when the score is less than `--least`, 2 when no run was possible, 130 when it was left.
    """
    try:
        return asyncio.run(_run(_read_arguments(argv)))
    except TowlineError as error:
        _tell(error.message)
        return _NO_MODEL
    except KeyboardInterrupt:
        return _LEFT


if __name__ == "__main__":
    sys.exit(main())
