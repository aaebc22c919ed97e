"""A server without its socket: all floors put together."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from towline_agent import Clock, Mint
from towline_server.api.access import Access, Authenticate
from towline_server.api.app import make_app
from towline_server.api.guard import Guard
from towline_server.api.handlers import Service
from towline_server.api.readiness import Readiness
from towline_server.api.remember import Repeats
from towline_server.api.stream import Streams
from towline_server.auth.hosts import Hosts
from towline_server.auth.password import Passwords
from towline_server.config import Config
from towline_server.models.providers import Providers
from towline_server.push.devices import Devices
from towline_server.push.sender import PushSender
from towline_server.push.wake_ups import WakeUps
from towline_server.sessions.agents import Agents
from towline_server.sessions.budget import Budget
from towline_server.sessions.deadline import Patience
from towline_server.sessions.files import Files
from towline_server.sessions.kept_files import CHECKPOINTS, KeptFiles
from towline_server.sessions.policies import Policies
from towline_server.sessions.project import Projects
from towline_server.sessions.registry import Sessions
from towline_server.store import attachments, meta
from towline_server.store.sqlite_store import SqliteStore
from towline_server.stream.pump import HEARTBEAT_S, STALL_S
from towline_server.web.serve import load_web_app

__all__ = ["BuiltApp", "build_app", "make_projects"]


@dataclass(frozen=True, kw_only=True)
class BuiltApp:
    """A server without its socket."""

    app: Guard
    """The ASGI app."""
    sessions: Sessions
    """Its sessions; to be started, drained and closed."""
    streams: Streams
    """Its streams; to be drained."""
    access: Access
    """Who may come in."""
    wake_ups: WakeUps
    """What calls people who do not look; to be started before the sessions, and closed."""
    url: str
    """The address it is reached at on this machine."""
    link: str
    """The address that links name."""
    proxies: tuple[str, ...]
    """The addresses whose word counts on where a request comes from."""
    token: str = field(repr=False)
    """The token for programs of this user."""


async def build_app(
    config: Config,
    *,
    store: SqliteStore,
    fleet: Agents,
    url: str,
    version: str,
    clock: Clock,
    mint: Mint,
    token: str,
    link: str | None = None,
    providers: Providers | None = None,
    passwords: Passwords | None = None,
    authenticate: Authenticate | None = None,
    pages: bool = True,
    push: PushSender | None = None,
    heartbeat_s: float = HEARTBEAT_S,
    stall_s: float = STALL_S,
) -> BuiltApp:
    """Put the floors together; nothing runs yet.

    Args:
        config: The settings.
        store: Keeps the log.
        fleet: The agents.
        url: The address on this machine.
        version: The version that is shown to clients.
        clock: Time.
        mint: Ids.
        token: The token for programs of this user.
        link: The address that pairing links name; `url` when left out.
        providers: Knows models and keeps keys; `None` when nobody does.
        passwords: Hashes passwords; argon2id when left out.
        authenticate: Says who is asking, in place of users and tokens of the server's own.
        pages: Whether the web page is served.
        push: Reaches push services; the usual one when left out.
        heartbeat_s: Seconds between heartbeats of a stream.
        stall_s: Seconds after which a stream that nobody takes is cut.

    Raises:
        StoreError: The store cannot be used.
    """
    files = Files(store, clock.now_ms)
    budget = Budget(store, now_ms=clock.now_ms, daily_cost=config.daily_cost)
    sessions = Sessions(
        store,
        files=files,
        kept=KeptFiles(config.data_dir / CHECKPOINTS, clock.now_ms),
        agents=fleet,
        clock=clock,
        mint=mint,
        roots=config.roots or (Path.cwd(),),
        budget=budget,
        mode=config.mode,
        max_live=config.live_sessions,
        notes=config.data_dir / "notes",
        patience=Patience(
            permission_s=config.permission_window_s,
            away_s=config.permission_window_away_s,
            orphan_s=config.orphan_turn_s if config.orphan_turn == "interrupt" else None,
        ),
    )
    await store.write(attachments.drop_cut)
    server_id = await store.write(lambda c: meta.claim(c, "server_id", secrets.token_hex(6)))
    access = Access(
        store,
        server_id=server_id,
        local_token=token,
        now_ms=clock.now_ms,
        monotonic=clock.monotonic,
        mint=mint,
        passwords=passwords,
        authenticate=authenticate,
    )
    wake_ups = _make_wake_ups(config, store, clock, mint, push)
    sessions.on_event = wake_ups.see
    page = load_web_app() if pages else None
    streams = Streams(
        sessions,
        store=store,
        clock=clock,
        version=version,
        web_build=None if page is None else page.build,
        heartbeat_s=heartbeat_s,
        stall_s=stall_s,
    )
    service = Service(
        sessions=sessions,
        files=files,
        projects=fleet.projects,
        access=access,
        repeats=Repeats(store, clock.now_ms),
        agents=fleet,
        providers=providers,
        budget=budget,
        readiness=Readiness(
            store, sessions, streams, now_ms=clock.now_ms, monotonic=clock.monotonic
        ),
        wake_ups=wake_ups,
        log=store.log,
        version=version,
        server_name=config.server_name,
        address=lambda: link or url,
    )
    hosts = Hosts(config.host, config.hosts, url=config.url)
    app = make_app(service, streams, pages=page, hosts=hosts, origins=config.origins)
    return BuiltApp(
        app=app,
        sessions=sessions,
        streams=streams,
        access=access,
        wake_ups=wake_ups,
        url=url,
        link=link or url,
        proxies=config.proxies,
        token=token,
    )


def _make_wake_ups(
    config: Config, store: SqliteStore, clock: Clock, mint: Mint, push: PushSender | None
) -> WakeUps:
    """What calls people, by the settings."""
    sender = push or PushSender(config.data_dir)
    secure = config.url is not None and config.url.startswith("https://")
    devices = Devices(
        store,
        sender,
        clock=clock,
        mint=mint,
        subject=config.push_subject or (config.url if secure else None),
    )
    return WakeUps(
        store,
        devices,
        sender,
        clock=clock,
        away_s=config.permission_window_away_s,
        shows_text=config.push_text,
    )


def make_projects(
    config: Config, hidden: Sequence[Path], policies: Policies | None = None
) -> Projects:
    """What looks into the folders of sessions, by the settings.

    Args:
        config: The settings.
        hidden: Places that nobody may read through it.
        policies: Rules, modes and trust; those of the data folder when left out.
    """
    roots = config.roots or (Path.cwd(),)
    policies = policies or Policies(config.data_dir, config.rules_file)
    return Projects(roots, hidden=hidden, commands=config.commands, policies=policies)
