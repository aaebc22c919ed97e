"""`towline run`: one turn in this folder, without a server."""

import asyncio
import os
import sys
from contextlib import AsyncExitStack
from typing import Final

from rich.console import Console
from rich.markup import escape

from towline.assistant import INSTRUCTIONS, NAME
from towline.cli.attach import find_server
from towline.cli.command import name_command
from towline.cli.visible import show_line, show_prose, show_visible
from towline.local import FetchProgress
from towline.models import Models, find_model
from towline.paths import find_paths
from towline.picks import Picks
from towline.providers.reach import open_reach
from towline_agent import Agent, find_tools
from towline_protocol import (
    DENY,
    Event,
    Notice,
    PermissionRequested,
    TextDelta,
    ToolEnded,
    ToolProposed,
    Waiting,
)
from towline_server import load_config

__all__ = ["RunScreen", "run_once", "say_loading"]

_ANSWERS: Final = {"y": "allow_once", "s": "allow_session", "n": DENY}


async def run_once(prompt: str, named: str | None, *, auto: bool, console: Console) -> int:
    """Do one turn and print it as it comes.

    Raises:
        TowlineError: The model cannot be had, or the turn failed.
    """
    paths = find_paths()
    config = load_config(paths.config_file, os.environ, data_dir=paths.data_dir)
    picks, reach = Picks(config.data_dir), open_reach()
    choice = await find_model(
        named or config.model, reach.environ, picks=picks, stored=reach.stored
    )
    found = find_tools(config.tools)
    screen = RunScreen(console)
    for notice in found.notices:
        console.print(escape(show_visible(notice)), soft_wrap=True, style="dim", emoji=False)
    async with AsyncExitStack() as stack:
        told = Console(stderr=True, highlight=False)  # an answer that is piped on stays alone
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
        agent = Agent(
            connection.provider,
            fallbacks=fallbacks,
            name=NAME,
            instructions=INSTRUCTIONS,
            tools=found.tools,
            mode="auto" if auto else "ask",
            answer=screen.ask if sys.stdin.isatty() else None,
        )
        stack.push_async_callback(agent.aclose)
        async with agent.stream(prompt) as events:
            async for event in events:
                screen.show(event)
        screen.end()
    if named and not choice.local:
        picks.remember(choice.model)  # once it has answered: a mistyped one must not come back
    return 0


def say_loading(*, beside_server: bool) -> str:
    """Why nothing comes for a while; and that a server which runs has a model of its own."""
    said = "Loading the local model, which takes some seconds."
    if not beside_server:
        return said
    return name_command(
        f"{said} It is a second copy: the server that runs has its own, which `towline chat` asks."
    )


class RunScreen:
    """Prints events as lines; streamed text stands as it comes."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._titles: dict[str, str] = {}
        self._in_text = False

    def show(self, event: Event) -> None:
        """Print what an event tells, if it tells anything."""
        match event:
            case TextDelta():
                self._in_text = True
                # A file or another program gets what the model wrote.
                text = show_prose(event.text) if self._console.is_terminal else event.text
                self._console.file.write(text)
                self._console.file.flush()
            case ToolProposed():
                self._titles[event.call] = event.title
            case ToolEnded():
                title = self._titles.get(event.call, event.call)
                self._line(f"[dim]· {escape(show_line(title))} — {event.status}[/dim]")
            case Waiting():
                self._line(f"[dim]· waiting ({escape(show_line(event.reason))})[/dim]")
            case Notice():
                self._line(f"[dim]· {escape(show_visible(event.message))}[/dim]")
            case _:
                pass

    def end(self) -> None:
        """End the line that streamed text stands in."""
        if self._in_text:
            self._console.print()

    def _line(self, text: str) -> None:
        self.end()
        self._in_text = False
        self._console.print(text, soft_wrap=True, emoji=False)

    async def ask(self, request: PermissionRequested) -> str:
        """Ask the person at the terminal."""
        title, reason = show_line(request.title), show_line(request.reason or "")
        self._line(f"[bold]{escape(title)}[/bold]  ({escape(reason)})")
        preview = show_visible(request.preview.text)
        self._console.print(preview, soft_wrap=True, markup=False, emoji=False, highlight=False)
        if request.preview.truncated:
            self._console.print("Part of it is not shown, so it is denied.")
            return DENY
        loop = asyncio.get_running_loop()
        while True:
            self._console.print("Allow? [y]es, for this [s]ession, [n]o: ", end="", markup=False)
            said = (await loop.run_in_executor(None, sys.stdin.readline)).strip().lower()
            if said[:1] in _ANSWERS:
                return _ANSWERS[said[:1]]
            if not said:
                return DENY
