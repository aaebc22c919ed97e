"""A whole server for tests: real store, real sessions, real HTTP, a scripted model."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from towline_agent import Clock, Mint, Provider, SystemClock, Tool, Toolset, mint_now
from towline_protocol import (
    AnswerPermission,
    Broken,
    CreateSession,
    Envelope,
    Interrupt,
    Interrupted,
    Limits,
    PermissionRequested,
    SendPrompt,
    SessionId,
    SessionInfo,
    SessionView,
    Text,
    TurnId,
    ViewAnswer,
    decode_answer,
    decode_frame,
    empty_view,
    encode,
    reduce,
)
from towline_server.auth.token import new_token
from towline_server.config import Config
from towline_server.main import BuiltApp, OwnSignals, build_app, uvicorn_config
from towline_server.sessions.agents import DEFAULT_AGENT, Agents, AgentSpec, Connect, Connection
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.stream.listener import open_listener
from towline_server.stream.testing import Wire

__all__ = ["AppClient", "Reply", "open_test_app", "open_test_server", "ran"]

_T = TypeVar("_T")
_Message = MutableMapping[str, Any]

_PATIENCE_S: Final = 20.0  # the longest that a test waits for an answer


@contextlib.asynccontextmanager
async def open_test_app(
    provider: Provider,
    *,
    root: Path,
    tools: Sequence[Tool] = (),
    mode: str = "auto",
    limits: Limits | None = None,
    fallbacks: tuple[str, ...] = (),
    store: SqliteStore | None = None,
    connect: Connect | None = None,
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
        fallbacks: Models that are asked when a session's own cannot serve.
        store: A store of your own, which stays open; else one in memory.
        connect: Finds the provider of a model, in place of `provider`.
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

    async def connect_always(model: str) -> Connection:
        del model
        return Connection(provider)

    spec = AgentSpec(
        name=DEFAULT_AGENT,
        tools=Toolset(tools),
        limits=limits or Limits(),
        fallbacks=fallbacks,
        server_tools=("web_search",),
    )
    fleet = Agents(
        {DEFAULT_AGENT: spec},
        connect=connect or connect_always,
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
        server = OwnSignals(uvicorn_config(built.app))
        running = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield built
        finally:
            built.streams.drain()
            server.should_exit = True
            await asyncio.wait({running})
            listener.close()
            running.result()


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """A whole answer of the app."""

    status: int
    """The HTTP status."""
    headers: dict[str, str]
    """Its headers, names in lower case."""
    body: bytes
    """Its bytes."""

    def read(self, kind: type[_T]) -> _T:
        """The body as a value.

        Raises:
            msgspec.DecodeError: It is none of that kind.
        """
        return decode_answer(self.body, kind)


class AppClient:
    """Calls a `BuiltApp` as a web server would, without a socket.

    Args:
        built: The app.
        token: The credential; without it the local token, with an empty one none.
    """

    def __init__(self, built: BuiltApp, *, token: str | None = None) -> None:
        self._app = built.app
        token = built.token if token is None else token
        self._headers = {"host": "127.0.0.1"}
        if token:
            self._headers["authorization"] = f"Bearer {token}"

    async def ask(
        self,
        method: str,
        path: str,
        body: msgspec.Struct | bytes | Sequence[bytes] | None = None,
        *,
        headers: Mapping[str, str | None] | None = None,
    ) -> Reply:
        """Send a request and wait for its whole answer.

        Args:
            method: The HTTP method.
            path: The path, with its query if there is one.
            body: A value that is sent as JSON, or bytes, or the pieces in which they come.
            headers: More headers; `None` takes one of the usual ones away.
        """
        wire = _Exchange(_pieces(body))
        usual = {} if body is None else {"content-type": "application/json"}
        scope = self._scope(method, path, {**usual, **(headers or {})})
        async with asyncio.timeout(_PATIENCE_S):
            await self._app(scope, wire.receive, wire.send)
        return Reply(status=wire.status, headers=wire.headers, body=b"".join(wire.parts))

    @contextlib.asynccontextmanager
    async def follow(
        self,
        session: str,
        *,
        query: str = "",
        headers: Mapping[str, str | None] | None = None,
        wire: Wire | None = None,
    ) -> AsyncGenerator[Wire]:
        """Follow a session's events; at the end of the context the reader goes away.

        Args:
            session: The session's id.
            query: The query, such as `after=3`.
            headers: More headers, such as `last-event-id`.
            wire: The reader; a fresh one that takes all, when left out.
        """
        reader = wire or Wire()
        path = f"/api/sessions/{session}/events" + (f"?{query}" if query else "")
        scope = self._scope("GET", path, headers or {})
        task = asyncio.create_task(self._app(scope, reader.receive, reader.send))
        try:
            yield reader
        finally:
            reader.gone.set()
            async with asyncio.timeout(_PATIENCE_S):
                await asyncio.wait({task})
        task.result()

    async def create(self, new: CreateSession | None = None) -> SessionId:
        """Make a session; gives its id."""
        made = await self.ask("POST", "/api/sessions", new or CreateSession())
        return made.read(SessionInfo).id

    async def prompt(
        self, session: str, text: str, *, when: str = "auto", key: str | None = None
    ) -> Reply:
        """Say something to a session.

        Args:
            session: Its id.
            text: The words.
            when: As `SendPrompt.when`.
            key: The `Idempotency-Key`.
        """
        body = SendPrompt(content=(Text(text=text),), when=when)
        path = f"/api/sessions/{session}/prompts"
        return await self.ask("POST", path, body, headers={"idempotency-key": key})

    async def interrupt(self, session: str, turn: TurnId | None = None) -> TurnId | None:
        """Stop a turn; gives the one that is stopping."""
        answer = await self.ask("POST", f"/api/sessions/{session}/interrupt", Interrupt(turn=turn))
        return answer.read(Interrupted).turn

    async def answer(
        self,
        session: str,
        request: PermissionRequested,
        option: str,
        *,
        digest: str | None = None,
        key: str | None = None,
    ) -> Reply:
        """Decide a permission request.

        Args:
            session: Its session.
            request: The request.
            option: The option's id.
            digest: Another digest than the request's.
            key: The `Idempotency-Key`.
        """
        path = f"/api/sessions/{session}/permissions/{request.permission}"
        body = AnswerPermission(option=option, digest=digest or request.digest)
        return await self.ask("POST", path, body, headers={"idempotency-key": key})

    async def view(self, session: str) -> SessionView:
        """A session as the server's snapshot shows it."""
        return (await self.ask("GET", f"/api/sessions/{session}/view")).read(ViewAnswer).view

    async def log(self, session: str) -> list[Envelope]:
        """All stored events of a session, in order."""
        last = (await self.view(session)).seq
        async with self.follow(session) as wire:
            await wire.until(lambda: last in wire.ids)
            frames = [decode_frame(e.event, e.data) for e in wire.events if e.id is not None]
        return [frame for frame in frames if isinstance(frame, Envelope)][:last]

    async def until(self, session: str, met: Callable[[SessionView], bool]) -> SessionView:
        """Follow a session from its beginning until its view is as wished.

        Raises:
            TimeoutError: It did not become so.
        """
        view = empty_view()
        read = 0
        async with self.follow(session) as wire:
            while not met(view):
                for event in (await wire.take(read + 1))[read:]:
                    frame = decode_frame(event.event, event.data)
                    if not isinstance(frame, Broken):
                        view = reduce(view, frame)
                read += 1
        return view

    def _scope(self, method: str, path: str, more: Mapping[str, str | None]) -> _Message:
        headers: dict[str, str | None] = {**self._headers, **more}
        bare, _, query = path.partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": bare,
            "raw_path": bare.encode(),
            "query_string": query.encode(),
            "root_path": "",
            "headers": [
                (name.encode(), value.encode("latin-1"))
                for name, value in headers.items()
                if value is not None
            ],
            "client": ("127.0.0.1", 50000),
            "server": ("127.0.0.1", 80),
            "state": {},
        }


def ran(count: int) -> Callable[[SessionView], bool]:
    """For `AppClient.until`: so many prompts have been taken to an end, and none waits."""

    def met(view: SessionView) -> bool:
        prompts = [message for message in view.messages if message.role == "user"]
        return view.turn is None and not view.queue and len(prompts) == count

    return met


def _pieces(body: msgspec.Struct | bytes | Sequence[bytes] | None) -> list[bytes]:
    if body is None:
        return [b""]
    if isinstance(body, bytes):
        return [body]
    return [encode(body)] if isinstance(body, msgspec.Struct) else list(body)


class _Exchange:
    """One request and its answer, as ASGI sees them."""

    def __init__(self, pieces: list[bytes]) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self._pieces = pieces

    async def receive(self) -> _Message:
        if not self._pieces:
            return {"type": "http.disconnect"}
        piece = self._pieces.pop(0)
        return {"type": "http.request", "body": piece, "more_body": bool(self._pieces)}

    async def send(self, message: _Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {
                name.decode("latin-1").lower(): value.decode("latin-1")
                for name, value in message["headers"]
            }
        else:
            self.parts.append(message.get("body", b""))
