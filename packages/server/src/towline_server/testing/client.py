"""Calls a server under test as a web server would, without a socket."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, Protocol, TypeVar

import msgspec

from towline_protocol import (
    AddUser,
    AnswerPermission,
    AnswerQuestion,
    Broken,
    CreateSession,
    Envelope,
    Interrupt,
    Interrupted,
    LoggedIn,
    Login,
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
from towline_server.api.guard import App
from towline_server.build import BuiltApp
from towline_server.stream.testing import Wire

__all__ = ["AppClient", "Reply", "Served", "ran", "sign_in"]


_T = TypeVar("_T")
_Message = MutableMapping[str, Any]

_PATIENCE_S: Final = 20.0  # the longest that a test waits for an answer


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


class Served(Protocol):
    """What an `AppClient` calls: a `BuiltApp`, or an app that one is a part of."""

    @property
    def app(self) -> App:
        """The ASGI app."""
        ...

    @property
    def token(self) -> str:
        """What a client comes with that names no other token."""
        ...


class AppClient:
    """Calls a `BuiltApp` as a web server would, without a socket.

    Args:
        built: The app.
        token: The credential; without it the local token, with an empty one none.
        scheme: How the client came, `http` or `https`.
        prefix: Where in a larger app it lies.
        headers: What comes with each request.
    """

    def __init__(
        self,
        built: Served,
        *,
        token: str | None = None,
        scheme: str = "http",
        prefix: str = "",
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self._app = built.app
        self._scheme = scheme
        self._prefix = prefix
        token = built.token if token is None else token
        self._headers = {"host": "127.0.0.1", **(headers or {})}
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
        async with self._stream(f"/api/sessions/{session}/events", query, headers, wire) as reader:
            yield reader

    @contextlib.asynccontextmanager
    async def follow_all(
        self, *, query: str = "", wire: Wire | None = None
    ) -> AsyncGenerator[Wire]:
        """Follow the user's own feed, as `follow` follows a session."""
        async with self._stream("/api/events", query, None, wire) as reader:
            yield reader

    @contextlib.asynccontextmanager
    async def _stream(
        self,
        path: str,
        query: str,
        headers: Mapping[str, str | None] | None,
        wire: Wire | None,
    ) -> AsyncGenerator[Wire]:
        reader = wire or Wire()
        path += f"?{query}" if query else ""
        scope = self._scope("GET", path, headers or {})
        task = asyncio.ensure_future(self._app(scope, reader.receive, reader.send))
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

    async def answer_question(
        self,
        session: str,
        question: str,
        answers: Mapping[str, Sequence[str]],
        *,
        key: str | None = None,
    ) -> Reply:
        """Answer a question.

        Args:
            session: Its session.
            question: Its id.
            answers: Item id to options' ids and own words.
            key: The `Idempotency-Key`.
        """
        path = f"/api/sessions/{session}/questions/{question}"
        body = AnswerQuestion(answers={item: tuple(said) for item, said in answers.items()})
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
        bare, _, query = f"{self._prefix}{path}".partition("?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.3"},
            "http_version": "1.1",
            "method": method,
            "scheme": self._scheme,
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


async def sign_in(built: BuiltApp, user: str, *, admin: bool = False) -> AppClient:
    """Let a new user in; gives what they call the app with.

    Args:
        built: The app.
        user: The name, which is new.
        admin: Whether they are an admin.
    """
    password = f"the password of {user}"
    await AppClient(built).ask(
        "POST", "/api/users", AddUser(name=user, password=password, admin=admin)
    )
    login = Login(user=user, password=password)
    reply = await AppClient(built, token="").ask("POST", "/api/auth/login", login)
    return AppClient(built, token=reply.read(LoggedIn).token)


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
