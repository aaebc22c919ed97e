"""No tool reads what towline keeps for itself, wherever the roots lie."""

import asyncio
from pathlib import Path

import pytest

from towline_agent import Toolset, builtin_tools
from towline_agent.testing import ScriptedProvider, call
from towline_client import Client
from towline_protocol import block_text
from towline_server import AgentSpec, Config, Connection, Ready, serve


@pytest.mark.rules("A5.8")
async def test_the_token_and_the_store_are_outside_even_inside_a_root(tmp_path: Path) -> None:
    reads = [
        call("read_file", path=path)
        for path in ("run.json", "config.toml", "server.log", "data/towline.db")
    ]
    provider = ScriptedProvider(*reads, "done")
    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()
    (tmp_path / "config.toml").write_text("")
    (tmp_path / "server.log").write_text("")

    async def connect(model: str) -> Connection:
        del model
        return Connection(provider)

    serving = asyncio.create_task(
        serve(
            Config(data_dir=tmp_path / "data", roots=(tmp_path,), port=0),
            agents={"towline": AgentSpec(name="towline", tools=Toolset(builtin_tools()))},
            connect=connect,
            default_model="scripted/model",
            version="0",
            on_ready=ready.set_result,
            run_file=tmp_path / "run.json",
        )
    )
    async with asyncio.timeout(30):
        server = await ready
        async with Client(server.url, server.token) as client:
            session = await client.open(None)
            await session.ask("Read what is yours.")
            told = [block_text(call.content) for call in session.view.calls]
            await session.close()
        serving.cancel()
        await asyncio.wait({serving})
    assert len(told) == 4
    assert all("leads outside" in text for text in told), told
