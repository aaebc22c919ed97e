"""The session service as a part of another program's web app."""

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, Mapping
from functools import partial
from importlib import metadata
from typing import Final, cast

from towline_agent import Clock, Mint, SystemClock, drop_scratch, mint_now
from towline_protocol import TowlineError
from towline_server.api.access import Authenticate
from towline_server.api.guard import App, Receive, Scope, Send
from towline_server.api.problem import problem
from towline_server.auth.token import new_token
from towline_server.build import BuiltApp, build_app, make_projects
from towline_server.config import Config
from towline_server.errors import Draining
from towline_server.main import GRACE_S, sweep
from towline_server.models.providers import Providers
from towline_server.sessions.agents import Agents, AgentSpec, Connect
from towline_server.sessions.connection import PlainConnect, to_connect
from towline_server.store.sqlite_store import open_store

__all__ = ["EmbeddedApp", "create_app"]

_log: Final = logging.getLogger("towline.server")

_RETRY_S: Final = 5.0
_running: Final[set["EmbeddedApp"]] = set()  # those of this process that share scratch folders


class EmbeddedApp:
    """An ASGI app, made by `create_app`, that serves between the two ends of its lifespan."""

    def __init__(
        self,
        config: Config,
        *,
        agents: Mapping[str, AgentSpec],
        connect: Connect | PlainConnect,
        default_model: str,
        authenticate: Authenticate | None,
        providers: Providers | None,
        pages: bool,
        version: str,
        clock: Clock,
        mint: Mint,
        grace_s: float,
    ) -> None:
        self._config = config
        self._make_fleet = partial(
            Agents,
            agents,
            connect=to_connect(connect),
            default_model=default_model,
            clock=clock,
            mint=mint,
            hidden=(config.data_dir,),
            sandbox=config.sandbox,
            projects=make_projects(config, (config.data_dir,)),
        )
        self._make_fleet()  # what cannot be is told where it was written, not at the start
        self._authenticate = authenticate
        self._providers = providers
        self._pages = pages
        self._version = version
        self._clock = clock
        self._mint = mint
        self._grace_s = grace_s
        self._built: BuiltApp | None = None
        self._told = not pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve a request, or the lifespan where this app is the outermost one."""
        if scope["type"] == "lifespan":
            await self._serve_lifespan(receive, send)
        elif self._built is not None:
            self._warn_of_pages(scope)
            await self._built.app(scope, receive, send)
        elif scope["type"] == "http":
            await _not_running()(scope, receive, send)
        else:
            await send({"type": "websocket.close", "code": 1001})

    @contextlib.asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """From start to end: take up what was cut, serve, let running turns end, close the store.

        Args:
            app: The app around, as Starlette and FastAPI give it; not used.

        Raises:
            StoreLocked: Another process owns the data folder.
            StoreError: The store cannot be used.
        """
        del app
        drop_scratch()  # what processes left that were killed
        async with contextlib.AsyncExitStack() as stack:
            _running.add(self)
            stack.callback(self._drop_own)
            store = await open_store(self._config.data_dir, mint=self._mint)
            stack.push_async_callback(store.close)
            fleet = self._make_fleet()
            stack.push_async_callback(fleet.aclose)
            built = await build_app(
                self._config,
                store=store,
                fleet=fleet,
                url=self._config.url or "",
                version=self._version,
                clock=self._clock,
                mint=self._mint,
                token=new_token(),  # nobody is told it: there is no `run.json` here
                authenticate=self._authenticate,
                providers=self._providers,
                pages=self._pages,
            )
            stack.callback(built.access.close)
            stack.push_async_callback(built.sessions.close)
            stack.push_async_callback(built.wake_ups.close)
            stack.callback(self._leave)
            await built.wake_ups.start()
            await built.sessions.start()
            sweeper = asyncio.create_task(
                sweep(built.access, store, self._clock, built.sessions.trim)
            )
            stack.push_async_callback(_end, sweeper)
            stack.push_async_callback(self.drain)
            self._built = built
            yield

    async def drain(self) -> None:
        """Tell every reader to come back later, take nothing new, and let running turns end.

        The end of the lifespan does it. A web server that waits for open connections before that,
        as uvicorn does, waits for the streams; so call it when the stop signal comes, or bound
        that wait (`timeout_graceful_shutdown`).
        """
        if self._built is not None:
            self._built.streams.drain()
            await self._built.sessions.drain(self._grace_s)

    def _warn_of_pages(self, scope: Scope) -> None:
        """Say once that there is no page below a prefix: it would find none of its files there."""
        prefix = scope.get("root_path")
        if prefix and not self._told:
            self._told = True
            _log.warning(
                "The web page lies at the root of a host, and this app is mounted at %r, so "
                "`pages=True` has no effect: mount it at '/', or leave `pages` out.",
                prefix,
            )

    def _drop_own(self) -> None:
        """The last one of this process takes the process's own scratch folders along."""
        _running.discard(self)
        if not _running:
            drop_scratch(own=True)

    def _leave(self) -> None:
        self._built = None

    async def _serve_lifespan(self, receive: Receive, send: Send) -> None:
        await receive()  # lifespan.startup
        phase = "startup"
        try:
            async with self.lifespan():
                phase = "shutdown"
                await send({"type": "lifespan.startup.complete"})
                await receive()  # lifespan.shutdown
        except TowlineError as error:
            await send({"type": f"lifespan.{phase}.failed", "message": error.message})
            return
        await send({"type": "lifespan.shutdown.complete"})


def create_app(
    config: Config,
    *,
    agents: Mapping[str, AgentSpec],
    connect: Connect | PlainConnect,
    default_model: str,
    authenticate: Authenticate | None = None,
    providers: Providers | None = None,
    pages: bool = False,
    version: str | None = None,
    clock: Clock | None = None,
    mint: Mint = mint_now,
    grace_s: float = GRACE_S,
) -> EmbeddedApp:
    """Make the session service a part of your own web app, with your users.

    ```python
    async def who(connection: HTTPConnection) -> Caller | None:
        user = connection.scope.get("user")       # what your own middleware left there
        return Caller(user.id) if user else None  # an id that never becomes another person's

    agent = create_app(config, agents={"helper": AgentSpec(name="helper")},
                       connect=towline_agent.connect, default_model="openai/gpt-6.1-sol",
                       authenticate=who)
    app = Starlette(routes=[Mount("/agent", app=agent)], lifespan=agent.lifespan)
    ```

    Everything of the contract is then found under `/agent/api`. A mounted app hears nothing of the
    outer one's lifespan, so `agent.lifespan` must be entered; requests before get a 503. Served on
    its own, the app takes the lifespan from the web server.

    Users are who `authenticate` says: each sees their own sessions alone. There are then no
    passwords, codes and tokens of ours; the operations that make them answer
    `capability_unavailable`, and the capabilities leave them out. If your users come by a cookie,
    give it `SameSite`; writes from pages of other sites are refused here too.

    Nothing is bound: `config.host` and `config.port` are not used for that. `Host` is checked all
    the same, so name what your app is reached by in `config.hosts`.

    Args:
        config: The settings.
        agents: The agents by name. A session that names none has the agent `towline`, or the first
            one where there is none of that name; the capabilities list it first.
        connect: Finds a model's provider: a function such as `towline_agent.connect`, or one to
            await that gives a `Connection`, whose places and renewal it may then say.
        default_model: The model of a session that names none.
        authenticate: Says who a request comes from, `None` for nobody that is let in; left out,
            the server has users and tokens of its own, see `towline users`. What it calls somebody
            owns their sessions for ever: give a stable id, not a name that people choose or that
            is given away again. Nobody may be called `cancel`, `deadline` or `server`: logs say so
            of what no user did.
        providers: Knows models and keeps keys; `None` when nobody does.
        pages: Whether the web page is served; the app must then lie at the root of a host. Below a
            prefix there is no page, and the log says so.
        version: The version that is shown to clients; that of this package when left out.
        clock: Time.
        mint: Ids.
        grace_s: Seconds that running turns have to end at the shutdown.

    Raises:
        UsageError: There is no agent, one is called otherwise than its spec says, or `connect`
            cannot be called.
    """
    return EmbeddedApp(
        config,
        agents=agents,
        connect=connect,
        default_model=default_model,
        authenticate=authenticate,
        providers=providers,
        pages=pages,
        version=version or metadata.version("towline-server"),
        clock=clock or SystemClock(),
        mint=mint,
        grace_s=grace_s,
    )


def _not_running() -> App:
    error = Draining(
        "The server has not started, or has stopped; come back in a moment.",
        retry_after_s=_RETRY_S,
    )
    return cast("App", problem(error.fault(), ""))


async def _end(task: asyncio.Task[None]) -> None:
    task.cancel()
    await asyncio.wait({task})
