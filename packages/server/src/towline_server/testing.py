"""A whole server for tests: real store, real sessions, real HTTP, a scripted model."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import uvicorn

from towline_agent import Clock, Mint, Provider, SystemClock, Tool, Toolset, mint_now
from towline_protocol import Limits
from towline_server.auth.token import new_token
from towline_server.config import Config
from towline_server.main import BuiltApp, OwnSignals, build_app
from towline_server.sessions.agents import DEFAULT_AGENT, Agents, AgentSpec, Connection
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.stream.listener import open_listener

__all__ = ["open_test_app", "open_test_server"]


@contextlib.asynccontextmanager
async def open_test_app(
    provider: Provider,
    *,
    root: Path,
    tools: Sequence[Tool] = (),
    mode: str = "auto",
    limits: Limits | None = None,
    store: SqliteStore | None = None,
    clock: Clock | None = None,
    mint: Mint = mint_now,
    url: str = "http://127.0.0.1",
    permission_window_s: float = 120.0,
    heartbeat_s: float = 15.0,
    stall_s: float = 10.0,
) -> AsyncGenerator[BuiltApp]:
    """A server without a socket: an ASGI app over a store in memory.

    Args:
        provider: Answers for every model; closed with the server.
        root: The folder that agents work in.
        tools: What the one agent may call.
        mode: The mode of new sessions.
        limits: The bounds of turns.
        store: A store of your own, which stays open; else one in memory.
        clock: Time.
        mint: Ids.
        url: What links name.
        permission_window_s: Seconds until a permission request is denied.
        heartbeat_s: Seconds between heartbeats.
        stall_s: Seconds after which a stream that nobody takes is cut.
    """
    clock = clock or SystemClock()
    own = store is None
    store = store or await open_memory_store(mint=mint)

    async def connect(model: str) -> Connection:
        del model
        return Connection(provider)

    spec = AgentSpec(name=DEFAULT_AGENT, tools=Toolset(tools), limits=limits or Limits())
    fleet = Agents(
        {DEFAULT_AGENT: spec},
        connect=connect,
        default_model=provider.model.name,
        clock=clock,
        mint=mint,
    )
    config = Config(
        data_dir=root, roots=(root,), mode=mode, permission_window_s=permission_window_s
    )
    built = await build_app(
        config,
        store=store,
        fleet=fleet,
        url=url,
        version="0.0.0",
        clock=clock,
        mint=mint,
        token=new_token(),
        heartbeat_s=heartbeat_s,
        stall_s=stall_s,
    )
    await built.sessions.start()
    try:
        yield built
    finally:
        built.streams.drain()
        await built.sessions.close()
        await fleet.aclose()
        if own:
            await store.close()


@contextlib.asynccontextmanager
async def open_test_server(
    provider: Provider,
    *,
    root: Path,
    tools: Sequence[Tool] = (),
    mode: str = "auto",
    limits: Limits | None = None,
    store: SqliteStore | None = None,
    clock: Clock | None = None,
    mint: Mint = mint_now,
    permission_window_s: float = 120.0,
    heartbeat_s: float = 15.0,
    stall_s: float = 10.0,
) -> AsyncGenerator[BuiltApp]:
    """The same on a real port of this machine; `BuiltApp.url` says where."""
    listener = open_listener("127.0.0.1", 0)
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    async with open_test_app(
        provider,
        root=root,
        tools=tools,
        mode=mode,
        limits=limits,
        store=store,
        clock=clock,
        mint=mint,
        url=url,
        permission_window_s=permission_window_s,
        heartbeat_s=heartbeat_s,
        stall_s=stall_s,
    ) as built:
        config = uvicorn.Config(built.app, log_config=None, lifespan="off", ws="none")
        server = OwnSignals(config)
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield built
        finally:
            built.streams.drain()
            server.should_exit = True
            await asyncio.wait({running})
            listener.close()
            running.result()
