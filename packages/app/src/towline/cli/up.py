"""`towline up`: the server, the page and a model, on their embedded defaults."""

import asyncio
import logging
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import msgspec
from rich.console import Console
from rich.markup import escape

from towline import __version__
from towline.assistant import make_agents, make_assistant
from towline.cli.browser import open_browser
from towline.cli.command import command_name, name_command
from towline.cli.exposure import describe_phone, warn_of_plain_http
from towline.cli.pair import show_code
from towline.cli.rules import warn_of_rules
from towline.cli.visible import show_visible
from towline.default_choice import DefaultChoice
from towline.local import FetchProgress, LocalModelError, describe_local_model
from towline.models import Choice, Models, find_model, is_known, is_offered
from towline.paths import Paths, find_paths
from towline.picks import Picks
from towline.providers.desk import Desk
from towline.providers.reach import open_reach
from towline.warm import warm_local_model
from towline_agent import connect, drop_scratch, find_tools
from towline_server import AgentSpec, Config, Ready, load_config, serve

__all__ = ["UpOptions", "up"]

_log: Final = logging.getLogger("towline")


@dataclass(frozen=True, kw_only=True)
class UpOptions:
    """What the command line says; `None` is unset."""

    host: str | None = None
    """The address to listen at."""
    port: int | None = None
    """This very port; without it 4747 or the next free one."""
    model: str | None = None
    """`provider/model`, or the path of a GGUF file."""
    mode: str | None = None
    """`ask` or `auto`, for new sessions."""
    roots: tuple[Path, ...] = ()
    """Folders the agent may work in beside the current one."""
    background: bool = False
    """Whether another program started it: then no one-time link is printed."""
    opens: bool = True
    """Whether the page is opened in a browser here, when a person starts it at a screen."""


async def up(options: UpOptions, console: Console, environ: Mapping[str, str] = os.environ) -> None:
    """Serve until a signal; says where to open the page and what answers.

    Raises:
        UsageError: A setting is bad.
        TowlineError: The server cannot start; the message says what to do.
    """
    paths = find_paths(environ)
    config = _config(options, paths, environ)
    picks, reach = Picks(config.data_dir), open_reach(environ)
    gguf = options.model if options.model and options.model.endswith(".gguf") else None
    named = gguf or config.model
    chosen = None if named else picks.chosen
    choice = await find_model(named or chosen, reach.environ, picks=picks, stored=reach.stored)
    if options.model and not choice.local:
        connect(choice.model, reach.environ, stored=reach.stored)  # mistyped ones are told now
        if await is_offered(choice.model, reach.environ, reach.stored):
            picks.remember(choice.model)
    assistant = _assistant(config, console)
    progress = FetchProgress(console)
    models = Models(
        choice,
        reach=reach,
        on_progress=progress.advance,
        on_note=progress.note,
        warm=partial(warm_local_model, tools=assistant.tools),
    )
    desk = Desk(
        reach,
        config.data_dir,
        lambda: models.choice.model,
        on_ready=None if named else partial(models.take_up, picks=picks),
        choose=DefaultChoice(models, picks, reach, config.model if not options.model else None),
        local_model=models.local_state,
    )
    background: set[asyncio.Task[None]] = set()

    def ready(server: Ready) -> None:
        warning = warn_of_plain_http(config)
        _say_ready(
            console, server, choice, warning, roots=config.roots, background=options.background
        )
        if options.opens and not options.background and console.is_terminal:
            open_browser(server.own_url, environ)
        if choice.local:
            task = asyncio.create_task(_start_local(models, console, progress))
            background.add(task)

    drop_scratch()  # what servers left that were killed
    try:
        await serve(
            config,
            agents=make_agents(assistant),
            connect=models.connect,
            default_model=lambda: models.choice.model,
            version=__version__,
            knows=is_known,
            providers=desk,
            on_ready=ready,
            on_drain=lambda turns: _say_drain(console, turns),
            run_file=paths.run_file,
            port_fixed=options.port is not None,
        )
    finally:
        for task in background:
            task.cancel()
            await asyncio.wait({task})
        await models.aclose()
        await desk.aclose()
        drop_scratch(own=True)
    console.print("Stopped. Sessions are kept; the next start takes them up.")


def _assistant(config: Config, console: Console) -> AgentSpec:
    """The agent with all tools that are on; a broken set or rule is a line, no failed start."""
    found = find_tools(config.tools)
    for notice in (*found.notices, *warn_of_rules(config, found.tools)):
        console.print(f"  {escape(show_visible(notice))}", soft_wrap=True, emoji=False)
    return make_assistant(
        found.tools, config.fallbacks, trusts_client_effects=config.trusts_client_effects
    )


def _config(options: UpOptions, paths: Paths, environ: Mapping[str, str]) -> Config:
    flags = {
        name: str(value)
        for name, value in (("host", options.host), ("port", options.port), ("mode", options.mode))
        if value is not None
    }
    if options.model and not options.model.endswith(".gguf"):
        flags["model"] = options.model
    config = load_config(paths.config_file, environ, data_dir=paths.data_dir, flags=flags)
    roots = tuple(dict.fromkeys([Path.cwd(), *options.roots, *config.roots]))  # D2
    for root in roots:
        if config.data_dir.resolve().is_relative_to(root.resolve()):
            _log.debug("The data folder lies in the root %s", root)
    return msgspec.structs.replace(config, roots=roots)


def _say_ready(
    console: Console,
    server: Ready,
    choice: Choice,
    warning: str | None,
    *,
    roots: Iterable[Path],
    background: bool,
) -> None:
    console.print()
    console.print(f"  [bold]towline {__version__}[/bold] is up at [bold]{server.url}[/bold]")
    if not background:
        console.print(f"  Open   [bold]{server.pairing_url}[/bold]", soft_wrap=True)
        again = escape(command_name())
        said = f"         (works once, for 10 minutes; `{again} pair` makes a new one)"
        console.print(said, soft_wrap=True)
        _say_phone(console, server)
    if warning is not None:
        console.print(f"  [yellow]{escape(show_visible(warning))}[/yellow]", soft_wrap=True)
    if server.resumed:
        console.print(f"  Taken up again: {server.resumed} unfinished session(s).")
    for number, root in enumerate(roots):
        label = "       " if number else "Folder "
        place = escape(show_visible(str(root)))
        console.print(f"  {label}{place}", soft_wrap=True, emoji=False, highlight=False)
    console.print(f"  Model  {escape(show_visible(choice.model))}", emoji=False)
    console.print(f"         {escape(show_visible(choice.why))}", soft_wrap=True, emoji=False)
    console.print("  Stop   Ctrl+C\n")


def _say_phone(console: Console, server: Ready) -> None:
    """How a phone comes in: the link as a picture where that helps, else what to do first."""
    show_code(console, server.pairing_url)
    port = urlsplit(server.url).port or 80
    lines = describe_phone(server.link, port, drawn=console.is_terminal)
    for number, line in enumerate(lines):
        label = "       " if number else "Phone  "
        console.print(f"  {label}{escape(name_command(line))}", soft_wrap=True, highlight=False)


def _say_drain(console: Console, turns: int) -> None:
    if turns:
        console.print(f"  Stopping: {turns} turn(s) have 30 s to end. Ctrl+C again ends at once.")


async def _start_local(models: Models, console: Console, progress: FetchProgress) -> None:
    """Have the model ready before the first prompt; what goes wrong is said at once."""
    try:
        with progress:
            model = await models.local.start()
    except LocalModelError as error:
        said = escape(show_visible(error.message))
        console.print(f"\n  The local model is not there: {said}", soft_wrap=True, emoji=False)
        return
    for line in describe_local_model(model.facts, models.local.speed):
        console.print(f"  {escape(line)}", soft_wrap=True)
