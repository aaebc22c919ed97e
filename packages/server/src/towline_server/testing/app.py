"""A whole server for tests: real store, real sessions, real HTTP, a scripted model."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Final

import argon2

from towline_agent import Clock, Mint, Provider, SystemClock, Tool, Toolset, mint_now
from towline_protocol import (
    Limits,
)
from towline_server.auth.password import Hasher, Passwords
from towline_server.auth.token import new_token
from towline_server.build import BuiltApp, build_app, make_projects
from towline_server.config import Config
from towline_server.main import OwnSignals, uvicorn_config
from towline_server.models.providers import Providers
from towline_server.models.testing import FakeProviders
from towline_server.push.sender import PushSender
from towline_server.sessions.agents import DEFAULT_AGENT, Agents, AgentSpec, Connect, Connection
from towline_server.sessions.policies import Policies
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.stream.listener import open_listener

__all__ = ["open_test_app", "open_test_server"]

_CHEAP: Final = argon2.PasswordHasher.from_parameters(argon2.profiles.CHEAPEST)


@contextlib.asynccontextmanager
async def open_test_app(
    provider: Provider,
    *,
    root: Path,
    instructions: str = "",
    tools: Sequence[Tool] = (),
    mode: str = "auto",
    limits: Limits | None = None,
    fallbacks: tuple[str, ...] = (),
    helpers: Sequence[AgentSpec] = (),
    remembers: bool = False,
    store: SqliteStore | None = None,
    connect: Connect | None = None,
    knows: Callable[[str], bool] = lambda model: True,
    clock: Clock | None = None,
    mint: Mint = mint_now,
    url: str = "http://127.0.0.1",
    providers: Providers | None = None,
    daily_cost: float | None = None,
    live_sessions: int = 8,
    permission_window_s: float = 120.0,
    origins: tuple[str, ...] = (),
    orphan_turn_s: float | None = None,
    trusts_client_effects: bool = False,
    policies: Policies | None = None,
    hosts: tuple[str, ...] = (),
    hasher: Hasher | None = None,
    push: PushSender | None = None,
    push_text: bool = False,
    heartbeat_s: float = 15.0,
    stall_s: float = 10.0,
) -> AsyncGenerator[BuiltApp]:
    """A server without a socket: an ASGI app over a store in memory.

    Args:
        provider: Answers for every model; closed with the server.
        root: The folder that agents work in.
        instructions: What the one agent is told.
        tools: What the one agent may call.
        mode: The mode of new sessions.
        limits: The bounds of turns.
        fallbacks: Models that are asked when a session's own cannot serve.
        helpers: Agents that the one agent may hand tasks to.
        remembers: Whether the one agent keeps notes, in the data folder.
        store: A store of your own, which stays open; else one in memory.
        connect: Finds the provider of a model, in place of `provider`.
        knows: Whether there is a provider for a model.
        clock: Time.
        mint: Ids.
        url: What links name.
        providers: Knows models and keeps keys; `None` for a `FakeProviders`.
        daily_cost: US dollars that a user's day may cost.
        live_sessions: Sessions of a user that may be live at once.
        permission_window_s: Seconds until a permission request is denied.
        origins: Pages of other sites that may call it.
        orphan_turn_s: Seconds without a reader after which a turn is interrupted.
        trusts_client_effects: Whether the effects that clients declare count.
        policies: Rules, modes and trust of folders; kept in memory when left out.
        hosts: Names that it is reached by, beside loopback.
        hasher: Hashes passwords; argon2id that costs next to nothing, when left out.
        push: Reaches push services; see `FakePushService.sender`.
        push_text: Whether the agent's own words may stand in notifications.
        heartbeat_s: Seconds between heartbeats.
        stall_s: Seconds after which a stream that nobody takes is cut.
    """
    clock = clock or SystemClock()
    own = store is None
    store = store or await open_memory_store(mint=mint)

    async def connect_always(model: str) -> Connection:
        del model
        return Connection(provider)

    spec = AgentSpec(
        name=DEFAULT_AGENT,
        instructions=instructions,
        tools=Toolset(tools),
        limits=limits or Limits(),
        fallbacks=fallbacks,
        server_tools=("web_search",),
        trusts_client_effects=trusts_client_effects,
        remembers=remembers,
        agents=tuple(helper.name for helper in helpers),
    )
    config = Config(
        data_dir=root.with_name(f"{root.name}-data"),
        roots=(root,),
        mode=mode,
        daily_cost=daily_cost,
        live_sessions=live_sessions,
        hosts=hosts,
        permission_window_s=permission_window_s,
        push_text=push_text,
        push_subject="mailto:owner@example.org",
        origins=origins,
        orphan_turn="continue" if orphan_turn_s is None else "interrupt",
        orphan_turn_s=orphan_turn_s or 60.0,
    )
    fleet = Agents(
        {made.name: made for made in (spec, *helpers)},
        connect=connect or connect_always,
        default_model=provider.model.name,
        knows=knows,
        clock=clock,
        mint=mint,
        projects=make_projects(config, (), policies or Policies(None)),
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
        providers=providers or FakeProviders(),
        passwords=Passwords(hasher or _CHEAP),
        push=push,
        heartbeat_s=heartbeat_s,
        stall_s=stall_s,
    )
    await built.wake_ups.start()
    await built.sessions.start()
    try:
        yield built
    finally:
        built.streams.drain()
        await built.wake_ups.close()
        await built.sessions.close()
        built.access.close()
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
    providers: Providers | None = None,
    permission_window_s: float = 120.0,
    proxies: tuple[str, ...] = (),
    push: PushSender | None = None,
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
        providers=providers,
        permission_window_s=permission_window_s,
        push=push,
        heartbeat_s=heartbeat_s,
        stall_s=stall_s,
    ) as built:
        server = OwnSignals(uvicorn_config(built.app, proxies))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield built
        finally:
            built.streams.drain()
            server.should_exit = True
            await asyncio.wait({running})
            listener.close()
            running.result()
