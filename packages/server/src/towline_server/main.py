"""The server from its start to its end: bind, own the store, resume, serve, drain."""

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

import msgspec
import uvicorn

from towline_agent import Clock, Mint, SystemClock, mint_now
from towline_protocol import UsageError
from towline_server.api.access import Access
from towline_server.api.accounts import check_exposure
from towline_server.api.guard import Guard
from towline_server.auth.hosts import is_loopback, reach_url
from towline_server.auth.token import new_token
from towline_server.build import BuiltApp, build_app, make_projects
from towline_server.config import Config
from towline_server.errors import StoreError
from towline_server.models.providers import Providers
from towline_server.sessions.agents import Agents, AgentSpec, Connect
from towline_server.store import attachments, idempotency, push, tombstones
from towline_server.store.sqlite_store import SqliteStore, open_store
from towline_server.store.writer import CommitHook
from towline_server.stream.connection import StreamProtocol
from towline_server.stream.listener import open_listener

__all__ = [
    "GRACE_S",
    "STREAM_END_S",
    "BuiltApp",
    "OwnSignals",
    "Ready",
    "RunFile",
    "build_app",
    "serve",
    "sweep",
    "uvicorn_config",
]

_log: Final = logging.getLogger("towline.server")

GRACE_S: Final = 30.0
"""Seconds that running turns have to end when the server stops (C5.14)."""
STREAM_END_S: Final = 60.0
"""Seconds that a stream may outlive the token that it was opened with."""
_SWEEP_S: Final = 3600.0
_PORTS: Final = 20  # free ports that are looked for after the usual one


class RunFile(msgspec.Struct, frozen=True, kw_only=True):
    """What `run.json` holds: how programs of this user find the server (D1)."""

    url: str
    """The server's address."""
    pid: int
    """Its process."""
    token: str
    """A token that lives as long as the process."""

    def __repr__(self) -> str:
        return f"RunFile({self.url!r})"


@dataclass(frozen=True, kw_only=True)
class Ready:
    """The server listens."""

    url: str
    """Its address on this machine."""
    link: str
    """Its address for other devices."""
    code: str = field(repr=False)
    """A one-time code for the first device."""
    own_code: str = field(repr=False)
    """Another one, for a browser on this machine."""
    token: str = field(repr=False)
    """The token of `run.json`."""
    resumed: int
    """Sessions that were taken up again."""

    @property
    def pairing_url(self) -> str:
        """The page, with the code in its fragment: it never reaches a server's log."""
        return f"{self.link}/#code={self.code}"

    @property
    def own_url(self) -> str:
        """The same for a browser on this machine."""
        return f"{self.url}/#code={self.own_code}"


async def serve(
    config: Config,
    *,
    agents: Mapping[str, AgentSpec],
    connect: Connect,
    default_model: str | Callable[[], str],
    version: str,
    knows: Callable[[str], bool] = lambda model: True,
    providers: Providers | None = None,
    on_ready: Callable[[Ready], None],
    on_drain: Callable[[int], None] = lambda turns: None,
    run_file: Path | None = None,
    port_fixed: bool = False,
    clock: Clock | None = None,
    mint: Mint = mint_now,
    on_commit: CommitHook | None = None,
    grace_s: float = GRACE_S,
) -> None:
    """Serve until a signal says stop (C5.14).

    Args:
        config: The settings.
        agents: The agents by name.
        connect: Finds a model's provider.
        default_model: The model of a session that names none, or what tells it.
        version: The version that is shown to clients.
        knows: Whether there is a provider for a `provider/model`; says it at once.
        providers: Knows models and keeps keys; `None` when nobody does.
        on_ready: Told once, when the server listens.
        on_drain: Told once, when a stop begins, how many turns still run; those that only wait for
            somebody are taken up by the next start.
        run_file: Where to leave the address for programs of this user; removed at the end.
        port_fixed: Whether somebody asked for this very port; else the next free one is taken.
        clock: Time.
        mint: Ids.
        on_commit: A seam for crash tests, see `open_store`.
        grace_s: Seconds that running turns have to end.

    Raises:
        AddressInUse: The port is taken.
        StoreLocked: Another server owns the data folder.
        StoreError: The store cannot be used.
        UsageError: The network would be let in, and no user has a password.
    """
    clock = clock or SystemClock()
    others = 0 if port_fixed else _PORTS
    store = await open_store(config.data_dir, mint=mint, on_commit=on_commit)
    fleet = Agents(
        agents,
        connect=connect,
        default_model=default_model,
        clock=clock,
        mint=mint,
        hidden=_own_places(config, run_file),
        sandbox=config.sandbox,
        projects=make_projects(config, _own_places(config, run_file)),
        knows=knows,
    )
    try:
        await check_exposure(config.host, store)  # before anybody can knock
        with contextlib.closing(open_listener(config.host, config.port, others=others)) as listener:
            built = await build_app(
                config, store=store, fleet=fleet, url=_url(listener), version=version,
                clock=clock, mint=mint, token=new_token(), link=_link(config, listener),
                providers=providers,
            )  # fmt: skip
            told = (on_ready, on_drain)
            await _run(built, listener, store, clock, told, run_file, grace_s)
    finally:
        await fleet.aclose()
        await store.close()


async def _run(
    built: BuiltApp,
    listener: socket.socket,
    store: SqliteStore,
    clock: Clock,
    told: tuple[Callable[[Ready], None], Callable[[int], None]],
    run_file: Path | None,
    grace_s: float,
) -> None:
    """Resume, serve, and drain when a signal comes."""
    with _signals() as stop:
        try:
            await built.wake_ups.start()  # before what was cut goes on, and asks again
            resumed = await built.sessions.start()
            store.announce(built.url)
            with _run_file(run_file, RunFile(url=built.url, pid=os.getpid(), token=built.token)):
                (code, _), (own_code, _) = built.access.new_code(), built.access.new_code()
                ready = Ready(
                    url=built.url, link=built.link, code=code, own_code=own_code,
                    token=built.token, resumed=resumed,
                )  # fmt: skip
                sweeper = asyncio.create_task(
                    sweep(built.access, store, clock, built.sessions.trim)
                )
                on_ready, on_drain = told
                try:
                    await _serve_until(
                        stop, built, listener, lambda: on_ready(ready), on_drain, grace_s
                    )
                finally:
                    sweeper.cancel()
                    await asyncio.wait({sweeper})
        finally:
            await built.wake_ups.close()
            await built.sessions.close()
            built.access.close()


async def _serve_until(
    stop: asyncio.Future[None],
    built: BuiltApp,
    listener: socket.socket,
    on_ready: Callable[[], None],
    on_drain: Callable[[int], None],
    grace_s: float,
) -> None:
    """Serve, then drain (C5.14)."""
    server = OwnSignals(uvicorn_config(built.app, built.proxies))
    running = asyncio.create_task(server.serve(sockets=[listener]))
    try:
        on_ready()
        await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
        built.streams.drain()
        on_drain(sum(session.busy and not session.waits for session in built.sessions.live))
        await built.sessions.drain(grace_s)
    finally:
        built.streams.drain()
        server.should_exit = True
        await asyncio.wait({running})
    running.result()


async def sweep(
    access: Access, store: SqliteStore, clock: Clock, trim: Callable[[], Awaitable[None]]
) -> None:
    """Forget, now and then, what counts no more: old answers and expired tokens. A rim.

    Args:
        access: Knows the tokens.
        store: Keeps the rest.
        clock: Time.
        trim: Lets go of the oldest checkpoints when they take too much room.
    """
    while True:
        now_ms = clock.now_ms()
        try:
            await store.write(partial(idempotency.prune, now_ms=now_ms))
            await store.write(partial(attachments.sweep, now_ms=now_ms))
            await store.write(partial(tombstones.prune, now_ms=now_ms))
            await store.write(push.prune)
        except StoreError as error:
            _log.warning("Old records could not be forgotten: %s", error.message)
        await trim()
        await _prune_tokens(access)
        until_s = clock.monotonic() + _SWEEP_S
        while clock.monotonic() < until_s:
            await clock.sleep(STREAM_END_S)
            if access.watches.open:
                await _prune_tokens(access)


async def _prune_tokens(access: Access) -> None:
    """Forget the tokens that have ended by themselves, and end what they opened."""
    try:
        await access.accounts.prune()
    except StoreError as error:
        _log.warning("Tokens that have ended could not be forgotten: %s", error.message)


class OwnSignals(uvicorn.Server):
    """uvicorn without its hands on the signals: the drain is ours (C5.14)."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        """Leave the signals alone."""
        yield


def uvicorn_config(app: Guard, proxies: tuple[str, ...] = ()) -> uvicorn.Config:
    """How uvicorn serves this app: our own protocol, no log and no lifespan of its own.

    Args:
        app: The app.
        proxies: The addresses whose word counts on where a request comes from.
    """
    return uvicorn.Config(
        app,
        http=StreamProtocol,
        log_config=None,
        access_log=False,
        lifespan="off",
        forwarded_allow_ips=list(proxies),  # never what the environment says
        ws="none",
        server_header=False,
        timeout_keep_alive=30,
        timeout_graceful_shutdown=5,
    )


@contextlib.contextmanager
def _signals() -> Generator[asyncio.Future[None]]:
    """Done at the first SIGTERM or SIGINT; the second one ends the process at once."""
    loop = asyncio.get_running_loop()
    stop: asyncio.Future[None] = loop.create_future()

    def heard(number: int) -> None:
        if stop.done():
            os._exit(128 + number)
        stop.set_result(None)

    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, heard, int(number))
    try:
        yield stop
    finally:
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)  # they are the caller's again


def _own_places(config: Config, run_file: Path | None) -> tuple[Path, ...]:
    """What no tool may read, wherever the roots lie: the store, and what stands by the token."""
    if run_file is None:
        return (config.data_dir,)
    beside = ("config.toml", "server.log", run_file.with_suffix(".new").name)
    return (config.data_dir, run_file, *(run_file.with_name(name) for name in beside))


def _url(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    if host in ("0.0.0.0", "::"):  # noqa: S104 - compared, not bound
        host = "127.0.0.1"
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _link(config: Config, listener: socket.socket) -> str:
    """The address that other devices are told."""
    if config.url is not None:
        return config.url
    if is_loopback(config.host):
        return _url(listener)
    return reach_url(config.host, listener.getsockname()[1])


@contextlib.contextmanager
def _run_file(path: Path | None, content: RunFile) -> Generator[None]:
    """Leave the address for programs of this user alone, and take it away at the end (D1)."""
    if path is None:
        yield
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        fresh = path.with_suffix(".new")
        descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "wb") as file:
            file.write(msgspec.json.encode(content))
        fresh.replace(path)
    except OSError as error:
        raise UsageError(
            f"The file {str(path)!r}, by which other programs find this server, cannot be written "
            f"({error.strerror}); make its folder writable."
        ) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
