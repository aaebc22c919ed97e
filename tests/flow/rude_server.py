"""A server in a process of its own, for readers that behave badly; see `rude_lane.py`.

It is the real app on the real listener, with a model that floods its readers when it is told to.
Orders come as lines on stdin and are answered by a line each; it ends when stdin does.
"""

import asyncio
import gc
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import msgspec

from towline_agent import Model, Piece, Request, StepAnswer, TextPiece
from towline_agent.testing import say
from towline_server import OWNER
from towline_server.build import BuiltApp
from towline_server.main import OwnSignals, uvicorn_config
from towline_server.stream.listener import open_listener
from towline_server.testing import AppClient, open_test_app

PIECES: Final = 220
"""In a flood; with `PIECE_CHARS` fewer bytes than a queue holds, so that it is the stall that cuts
whoever takes none of them, and more than the kernels of both ends hold."""
PIECE_CHARS: Final = 4096


class Flood:
    """A model that says as much as it can."""

    model = Model(provider="scripted", id="flood")

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepAnswer:
        """Answer in many large pieces."""
        del request
        for _ in range(PIECES):
            on_piece(TextPiece(0, "x" * PIECE_CHARS))
            await asyncio.sleep(0)
        return say("x" * PIECE_CHARS * PIECES)

    async def models(self) -> tuple[str, ...]:
        """Its one model."""
        return (self.model.id,)

    async def aclose(self) -> None:
        """Nothing to let go."""


async def _serve(folder: Path, host: str) -> None:
    listener = open_listener(host, 0)
    address = listener.getsockname()
    url = f"http://{host}:{address[1]}"
    async with open_test_app(Flood(), root=folder, url=url, hosts=(host,)) as built:
        server = OwnSignals(uvicorn_config(built.app))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        client = AppClient(built)
        session = await client.create()
        _say(pid=os.getpid(), host=host, port=address[1], token=built.token, session=session)
        while order := await asyncio.get_running_loop().run_in_executor(None, sys.stdin.readline):
            if order.strip() == "flood":
                await client.prompt(session, "Go on.")
                await client.until(session, lambda view: view.turn is None)
            _say(**_count(built, session))
        built.streams.drain()
        server.should_exit = True
        await running
        listener.close()


def _count(built: BuiltApp, session: str) -> dict[str, int]:
    gc.collect()
    found = next(live for live in built.sessions.live if live.log.session == session)
    return {
        "readers": found.log.hub.readers,
        "feeds": int(built.sessions.feeds.watches(OWNER)),
        "tasks": len(asyncio.all_tasks()),
        "files": len([*Path("/proc/self/fd").iterdir()]) - 1,  # the listing has one of its own
        "pages": int(Path("/proc/self/statm").read_text().split()[1]),
    }


def _say(**values: Any) -> None:
    os.write(1, msgspec.json.encode(values) + b"\n")


if __name__ == "__main__":
    asyncio.run(_serve(Path(sys.argv[1]), sys.argv[2]))
