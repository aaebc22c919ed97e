"""A plain chat in a test: the lines are scripted, the server too, and what is written is kept."""

import asyncio
import io
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from rich.console import Console

from towline.cli.chat import chat
from towline_client import Client, LinkPolicy
from towline_client.testing import (
    ManualClock,
    Script,
    ScriptedServer,
    ScriptedSession,
    ScriptedTransport,
)

__all__ = ["Desk", "Paper", "ScriptedKeyboard", "open_desk"]

_LIMIT_S: Final = 10.0  # the longest that a test waits for anything here


class ScriptedKeyboard:
    """A `Keyboard` whose lines a test gives.

    Args:
        lines: The first lines; `None` for the end of all.
        terminal: Whether it counts as one.
    """

    def __init__(self, *lines: str | None, terminal: bool = False) -> None:
        self.terminal = terminal
        """Whether it counts as a terminal."""
        self.queue: asyncio.Queue[str | None] = asyncio.Queue()
        """The lines to come."""
        for line in lines:
            self.queue.put_nowait(line)
        self.ctrl_c = asyncio.Event()
        """Set to press it."""
        self.idle = asyncio.Event()
        """Whether the chat waits for nothing but a line."""
        self.closed = False
        """Whether the chat has let go of it."""

    async def line(self) -> str | None:
        """The next line; `None` at the end."""
        return await self.queue.get()

    async def interrupted(self) -> None:
        """Return when Ctrl-C is pressed."""
        await self.ctrl_c.wait()
        self.ctrl_c.clear()

    def set_idle(self, idle: bool) -> None:
        """Note whether the chat waits for a line alone."""
        if idle:
            self.idle.set()
        else:
            self.idle.clear()

    def hide(self) -> None:
        """Nothing is shown here."""

    def show(self) -> None:
        """Nothing is shown here."""

    def close(self) -> None:
        """Let go of it."""
        self.closed = True


class Paper(io.StringIO):
    """What was written, and a way to wait for words in it."""

    def __init__(self) -> None:
        super().__init__()
        self._grown = asyncio.Event()

    def write(self, text: str, /) -> int:
        """Write, and tell who waits."""
        self._grown.set()
        return super().write(text)

    async def until(self, words: str, count: int = 1) -> None:
        """Return once these words were written so many times."""
        while self.getvalue().count(words) < count:
            self._grown.clear()
            await self._grown.wait()


class Desk:
    """One chat that runs, with all that a test touches."""

    def __init__(self, server: ScriptedServer, keys: ScriptedKeyboard, clock: ManualClock) -> None:
        self.server = server
        """The server it talks to."""
        self.keys = keys
        """Where its lines come from."""
        self.clock = clock
        """Its time."""
        self.paper = Paper()
        """What it wrote."""
        self.console = Console(file=self.paper, width=80, highlight=False, color_system=None)
        """Writes on the paper."""
        self.chat: asyncio.Task[int]
        """The chat; its result is the exit code."""

    def session(self) -> ScriptedSession:
        """The newest session of the server."""
        return list(self.server.sessions.values())[-1]

    async def end(self) -> str:
        """Wait for the chat's own end and give what was written."""
        await self.chat
        return self.paper.getvalue()


@asynccontextmanager
async def open_desk(
    keys: ScriptedKeyboard,
    script: Script | None = None,
    *,
    server: ScriptedServer | None = None,
    session: str | None = None,
    cwd: str | None = None,
    model: str | None = None,
) -> AsyncGenerator[Desk]:
    """Run a chat, for ten seconds at most.

    Args:
        keys: Where its lines come from.
        script: What a server of its own does in a turn.
        server: The server, if it is not one of its own.
        session: The session to go on with.
        cwd: The folder that new sessions work in.
        model: The model to ask; `None` for the session's own.
    """
    server = server or (ScriptedServer(script) if script is not None else ScriptedServer())
    clock = ManualClock()
    async with asyncio.timeout(_LIMIT_S), server:
        client = Client("", transport=ScriptedTransport(server), clock=clock, policy=LinkPolicy())
        async with client:
            desk = Desk(server, keys, clock)
            desk.chat = asyncio.create_task(
                chat(
                    client,
                    session,
                    desk.console,
                    keyboard=keys,
                    clock=clock,
                    cwd=cwd,
                    model=model,
                )
            )
            try:
                yield desk
            finally:
                desk.chat.cancel()
                await asyncio.wait([desk.chat])
            assert keys.closed
