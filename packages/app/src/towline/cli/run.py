"""`towline run`: one turn in this folder, without a server."""

import os
import sys
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import msgspec
from rich.console import Console

from towline.assistant import HELPERS, INSTRUCTIONS, NAME, tools_for
from towline.cli.attach import find_server
from towline.cli.command import name_command
from towline.cli.reading import read_in_thread
from towline.cli.rules import warn_of_rules
from towline.cli.run_input import make_prompt, read_input
from towline.cli.run_notes import take_notes
from towline.cli.run_screen import JsonLines, Output, RunScreen
from towline.cli.visible import show_visible
from towline.local import FetchProgress
from towline.models import Models, find_model
from towline.paths import Paths, find_paths
from towline.picks import Picks
from towline.providers.reach import open_reach
from towline_agent import (
    MODES,
    Agent,
    LocalWorkspace,
    drop_scratch,
    find_instructions,
    find_tools,
)
from towline_protocol import Limits, Text, TowlineError, UsageError
from towline_server import OWNER, Config, Policies, load_config

__all__ = [
    "CUT_SHORT",
    "DENIED",
    "RunWish",
    "follow_run",
    "open_workspace",
    "run_once",
    "say_loading",
]

CUT_SHORT: Final = 4
"""The exit code when a bound ended the turn: steps, cost, time or the length of an answer."""
DENIED: Final = 3
"""The exit code when a call was denied since nobody was there to allow it."""


class RunWish(msgspec.Struct, frozen=True, kw_only=True):
    """What the command line asks for."""

    prompt: str | None = None
    """What to do; `None` when it comes by standard input."""
    model: str | None = None
    """`provider/model`, or the path of a GGUF file; `None` for the usual one."""
    mode: str = "ask"
    """The permission mode."""
    max_cost: float | None = None
    """US dollars that the turn may cost."""
    max_steps: int | None = None
    """Requests that the turn may make."""
    as_json: bool = False
    """Whether a program reads it."""


async def run_once(
    wish: RunWish, *, answer: Console, told: Console | None = None, stdin: int | None = None
) -> int:
    """Do one turn and print it as it comes.

    Args:
        wish: What is asked for.
        answer: Where the answer goes: standard output.
        told: Where all else goes; standard error when left out.
        stdin: The file descriptor that is read when it is no terminal; `None` for standard input.

    Returns:
        The exit code: 0, `DENIED` or `CUT_SHORT`.

    Raises:
        TowlineError: The wish does not hold, the model cannot be had, or the turn failed.
    """
    limits = _check(wish)
    told = told or Console(stderr=True, highlight=False)
    fd = sys.stdin.fileno() if stdin is None else stdin
    given = await read_in_thread(lambda: read_input(fd))
    here = Path.cwd()
    paths = find_paths()
    config = load_config(paths.config_file, os.environ, data_dir=paths.data_dir)
    workspace = open_workspace(here, paths, config)
    prompt = await make_prompt(wish.prompt, given, workspace)
    picks, reach = Picks(config.data_dir), open_reach()
    choice = await find_model(
        wish.model or config.model or picks.chosen, reach.environ, picks=picks, stored=reach.stored
    )
    found = find_tools(config.tools)
    screen = RunScreen(answer, told)
    output: Output = JsonLines(answer) if wish.as_json else screen
    for notice in (*found.notices, *warn_of_rules(config, found.tools), *prompt.told):
        screen.line(show_visible(notice))
    async with AsyncExitStack() as stack:
        with FetchProgress(told) as progress:
            models = Models(
                choice, reach=reach, on_progress=progress.advance, on_note=progress.note
            )
            if choice.local:
                stack.push_async_callback(models.local.aclose)
                beside = find_server(paths.run_file) is not None
                progress.note(say_loading(beside_server=beside))
                await models.local.start()
        connection = await models.connect(choice.model)
        fallbacks = [(await models.connect(name)).provider for name in config.fallbacks]
        words = await find_instructions(workspace)
        notes, memory = await take_notes(config, workspace.root)
        small = connection.provider.model.bare_prompt
        policies = Policies(config.data_dir, config.rules_file)
        stack.callback(policies.close)
        # "Always" is for sessions: a run ends, and nobody looks at what it has stored.
        policy = msgspec.structs.replace(
            await policies.read(OWNER, str(here.resolve())), stores=False
        )
        agent = Agent(
            connection.provider,
            fallbacks=fallbacks,
            name=NAME,
            instructions="\n\n".join(part for part in (INSTRUCTIONS, words, notes) if part),
            tools=(*tools_for(found.tools, connection.provider.model), *(() if small else memory)),
            root=workspace,
            mode=wish.mode,
            policy=lambda: policy,
            limits=limits,
            answer=screen.ask if _somebody(given, wish) else None,
            agents=() if small else HELPERS,
        )
        stack.push_async_callback(agent.aclose)
        stack.callback(drop_scratch, own=True)
        code = await follow_run(agent, prompt.blocks, output)
    if wish.model and not choice.local:
        picks.remember(choice.model)  # once it has answered: a mistyped one must not come back
    return code


async def follow_run(agent: Agent, prompt: str | Sequence[Text], output: Output) -> int:
    """Show a run from its first event to its last; gives the exit code.

    Raises:
        TowlineError: The turn failed.
    """
    async with agent.stream(prompt) as events:
        try:
            async for event in events:
                output.show(event)
        except TowlineError:
            output.end(None)
            raise
    result = events.result
    output.end(result)
    if output.denied:
        return DENIED
    return 0 if result is not None and result.stop_reason == "end_turn" else CUT_SHORT


def open_workspace(folder: Path, paths: Paths, config: Config) -> LocalWorkspace:
    """The folder of a run; towline's own files are no part of it (A5.8), and `sandbox` counts."""
    own = (config.data_dir, paths.data_dir, paths.config_file, paths.run_file)
    return LocalWorkspace(folder, hidden=tuple(dict.fromkeys(own)), sandbox=config.sandbox)


def _check(wish: RunWish) -> Limits:
    if wish.mode not in MODES:
        raise UsageError(f"There is no mode {wish.mode!r}; the modes are: {', '.join(MODES)}.")
    if wish.max_cost is not None and not 0 < wish.max_cost < 1e6:
        raise UsageError(f"--max-cost {wish.max_cost:g} is no bound; give dollars, such as 0.50.")
    if wish.max_steps is not None and wish.max_steps < 1:
        raise UsageError(f"--max-steps {wish.max_steps} is no bound; give 1 or more.")
    usual = Limits(max_cost=wish.max_cost)
    if wish.max_steps is None:
        return usual
    return msgspec.structs.replace(usual, max_steps=wish.max_steps)


def _somebody(given: bytes | None, wish: RunWish) -> bool:
    """Whether a person can be asked: at a terminal, whose lines nobody else reads."""
    return given is None and not wish.as_json and sys.stdin.isatty()


def say_loading(*, beside_server: bool) -> str:
    """Why nothing comes for a while; and that a server which runs has a model of its own."""
    said = "Loading the local model, which takes some seconds."
    if not beside_server:
        return said
    return name_command(
        f"{said} It is a second copy: the server that runs has its own, which `towline chat` asks."
    )
