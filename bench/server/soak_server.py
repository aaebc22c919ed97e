"""The server of the soak: the real app over a store on disk, with a model that chats."""

import asyncio
import socket
import sqlite3
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final

import uvicorn

from server.process import rss_bytes
from towline_agent import Model, Piece, Request, StepAnswer, TextPiece, mint_now, tool
from towline_agent.testing import call, say
from towline_protocol import ToolResult, block_text
from towline_server.build import BuiltApp
from towline_server.main import uvicorn_config
from towline_server.store.readers import READERS
from towline_server.store.sqlite_store import SqliteStore, open_store
from towline_server.testing import open_test_app

__all__ = ["LONG", "USE", "run_soak_server"]

USE: Final = "use the tool"
"""A prompt that makes the model call a tool for which a person is asked."""
LONG: Final = "tell all"
"""A prompt whose answer is long."""
_PIECES: Final = 20
_LONG_PIECES: Final = 300
_PAUSE_S: Final = 0.2
_LIVE: Final = 10_000


@tool(name="touch", subject=lambda _: "any")
async def _touch() -> str:
    """Do something that a person is asked about."""
    return "touched"


class _Chatter:
    """A model that says a word now and then."""

    model = Model(provider="scripted", id="chatter")

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepAnswer:
        """Call a tool, or say so many words."""
        last = request.messages[-1]
        if any(isinstance(block, ToolResult) for block in last.content):
            return say("It is done.")
        text = block_text(last.content)
        if text.startswith(USE):
            return call("touch")
        words = [f"word {number} " for number in range(_LONG_PIECES if LONG in text else _PIECES)]
        for word in words:
            on_piece(TextPiece(0, word))
            await asyncio.sleep(_PAUSE_S)
        return say("".join(words))

    async def models(self) -> tuple[str, ...]:
        """Its one model."""
        return (self.model.id,)

    async def aclose(self) -> None:
        """Nothing to let go."""


def run_soak_server(pipe: Connection, listener: socket.socket, folder: Path) -> None:
    """Serve; says the token, then at each order what the process holds; until killed."""
    asyncio.run(_run(pipe, listener, folder))


async def _run(pipe: Connection, listener: socket.socket, folder: Path) -> None:
    loop = asyncio.get_running_loop()
    store = await open_store(folder / "data", mint=mint_now)
    async with open_test_app(
        _Chatter(), root=folder, tools=(_touch,), mode="ask", store=store, live_sessions=_LIVE
    ) as built:
        server = uvicorn.Server(uvicorn_config(built.app))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        await _open_readers(store)
        pipe.send(built.token)
        while await loop.run_in_executor(None, pipe.recv):
            pipe.send(_count(built))
        server.should_exit = True
        await serving
    await store.close()


async def _open_readers(store: SqliteStore) -> None:
    """Have each thread of the store open its files, which it does at its first read, and keeps."""
    await asyncio.gather(*[store.query(_read_slowly) for _ in range(READERS)])


def _read_slowly(connection: sqlite3.Connection) -> None:
    connection.execute("SELECT id FROM sessions LIMIT 1").fetchall()
    time.sleep(0.1)  # so that each thread gets one


def _count(built: BuiltApp) -> tuple[float, int, int, int, int]:
    live = built.sessions.live
    return (
        rss_bytes() / 2**20,
        len(asyncio.all_tasks()),
        len([*Path("/proc/self/fd").iterdir()]) - 1,  # the listing has one of its own
        len(live),
        sum(session.log.hub.readers for session in live),
    )
