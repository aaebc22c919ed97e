"""The real server over a store on disk, in a process that takes orders."""

import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Final
from unittest import mock

import uvicorn

from server.process import cpu_s, rss_bytes
from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import SessionId
from towline_server import OWNER
from towline_server.build import BuiltApp
from towline_server.main import uvicorn_config
from towline_server.store.sqlite_store import open_store
from towline_server.stream import hub
from towline_server.testing import open_test_app

__all__ = ["run_real"]

_MANY: Final = 1000


@asynccontextmanager
async def _open(folder: Path, listener: socket.socket) -> AsyncGenerator[BuiltApp]:
    store = await open_store(folder / "data", mint=mint_now)
    async with open_test_app(
        ScriptedProvider(), root=folder, store=store, live_sessions=_MANY
    ) as built:
        server = uvicorn.Server(uvicorn_config(built.app))
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield built
        finally:
            server.should_exit = True
            await serving
            await store.close()


def run_real(pipe: Connection, listener: socket.socket, folder: Path) -> None:
    """Serve what `folder / "data"` holds; says the token, then takes orders until killed."""
    with mock.patch.object(hub, "MAX_READERS", _MANY):
        asyncio.run(_run(pipe, listener, folder))


async def _run(pipe: Connection, listener: socket.socket, folder: Path) -> None:
    loop = asyncio.get_running_loop()
    async with _open(folder, listener) as built:
        pipe.send(built.token)
        while True:
            order, *arguments = await loop.run_in_executor(None, pipe.recv)
            if order == "load":
                for number in range(*arguments):
                    await built.sessions.get(OWNER, SessionId(f"ses_{number}"))
            elif order == "readers":
                session = await built.sessions.get(OWNER, SessionId("ses_0"))
                while session.log.hub.readers != arguments[0]:  # noqa: ASYNC110 - nobody tells
                    await asyncio.sleep(0.01)
            pipe.send((cpu_s(), rss_bytes() if order == "rss" else 0, len(asyncio.all_tasks())))
