"""The way in: an address, a credential, and the calls of the contract table."""

import asyncio
import random
import time
import uuid
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, aclosing, suppress
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Self, Unpack

import msgspec

from towline_client.account import Account
from towline_client.bridge.bridge import Bridge
from towline_client.bridge.journal import FileJournal, Journal, MemoryJournal
from towline_client.bridge.registrar import Registrar
from towline_client.caller import Caller, Credential
from towline_client.clock import Clock, LoopClock
from towline_client.courier import Courier
from towline_client.discovery import Discovery
from towline_client.feed import FeedFrame, follow_feed
from towline_client.life import Life
from towline_client.link import LinkPolicy
from towline_client.models import Models
from towline_client.opening import come_up
from towline_client.options import CallOptions
from towline_client.pump import Pump
from towline_client.push import Push
from towline_client.screen import Screen
from towline_client.scrollback import Scrollback
from towline_client.session import Session
from towline_client.transport import Transport
from towline_protocol import (
    Claim,
    Claimed,
    CreateSession,
    FileInfo,
    Health,
    Identity,
    Pairing,
    Presentation,
    RequestList,
    SessionId,
    SessionInfo,
    SessionList,
    SessionRemoved,
    SessionView,
    TowlineError,
    UsageError,
    ViewAnswer,
)

__all__ = ["DISCARD_S", "FILE_S", "Client"]

DISCARD_S: Final = 2.0
"""Seconds for the deletion of a new session that could not be opened: its caller waits for it."""
FILE_S: Final = 300.0
"""Seconds for a file to go either way: 20 MiB over a slow line."""


class Client(Registrar):
    """A towline server as a program sees it.

    ```python
    async with Client("http://127.0.0.1:4747", token) as client:
        session = await client.open()
        print(await session.ask("What time is it?"))
    ```

    What it registers with `tool`, `on_permission` and `on_question` is answered in every session
    that it opens.
    """

    def __init__(
        self,
        url: str,
        credential: Credential = None,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
        policy: LinkPolicy | None = None,
        scrollback: Scrollback | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: The server's address.
            credential: A token, or an async function that is asked for one before every request.
                It is never stored beside this client, logged or shown. Without one, `claim` and
                `account.login` bring one.
            transport: How requests travel; HTTP when left out. The client closes it.
            clock: The clock; the real one when left out.
            policy: The numbers of the reconnection.
            scrollback: Where finished messages are kept, to be shown before the server answers;
                `None` for nowhere. The client closes it.

        Raises:
            UsageError: The address cannot be used.
        """
        super().__init__()
        if transport is None:
            from towline_client.http import HttpTransport  # aiohttp takes half a second to import

            transport = HttpTransport(url)
        self._transport = transport
        self._clock: Clock = clock if clock is not None else LoopClock()
        self._policy = policy if policy is not None else LinkPolicy()
        self._scrollback = scrollback
        self._journal: Journal = (
            MemoryJournal() if scrollback is None else FileJournal(scrollback.use)
        )
        self._caller = Caller(
            transport, credential, clock=self._clock, mint_key=lambda: uuid.uuid4().hex
        )
        self.account = Account(self._caller)
        """Who may come in: logins, tokens, users."""
        self.discovery = Discovery(self._caller)
        """What the server says of itself."""
        self.models = Models(self._caller)
        """Models, their providers, and what was used."""
        self.push = Push(self._caller)
        """Browsers that the user is called on, and who looks."""
        self.life = Life(self._caller, forget=self._forget)
        """Settings of sessions, read marks, and their end."""
        self._sessions: list[Session] = []
        self._closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close every session's line and all connections; a bug in a line comes out here."""
        self._closed = True
        async with AsyncExitStack() as stack:
            if self._scrollback is not None:
                stack.push_async_callback(self._scrollback.close)
            stack.push_async_callback(self._transport.close)
            sessions, self._sessions = self._sessions, []
            stack.push_async_callback(_close_all, sessions)

    async def open(
        self,
        session: SessionId | str | None = None,
        *,
        new: CreateSession | None = None,
        reader: str | None = None,
        presentation: Presentation | None = None,
    ) -> Session:
        """Take up the line to a session; returns when its view is there and live.

        A new one whose line cannot be taken up is deleted again, if the server can be reached.

        With a scrollback that holds the session it returns at once: the view shows what was said
        until the line is up, and what is wrong with the line comes out of the flows.

        Args:
            session: Its id; `None` makes a new one.
            new: What a new session is made of.
            reader: How this line names itself; a fresh name when left out. A program that runs
                tools keeps its name, so that it finds its calls again after a restart; no two
                that run at once have the same.
            presentation: How much of what is being written the views show; all as it comes when
                left out.

        Raises:
            ConnectionLost: The server cannot be reached, or never sends all that it tells of.
            Unauthorized: The credential was refused.
            CommandRejected: There is no such session, it cannot be made, or it does not take this
                program's tools.
            ContractUnavailable: Something else answers at the address.
        """
        self._check_open()
        if session is None:
            made = (await self.create_session(self._equip(new))).id
            try:
                return await self._take_up(made, reader, presentation, None)
            except BaseException:
                await self._discard(made)
                raise
        kept = None
        if self._scrollback is not None:
            kept = await self._scrollback.load(SessionId(session))
        return await self._take_up(SessionId(session), reader, presentation, kept)

    async def _take_up(
        self,
        session: SessionId,
        reader: str | None,
        presentation: Presentation | None,
        kept: SessionView | None,
    ) -> Session:
        """A session's line, up; or at once, when there is something to show."""
        self._check_open()  # it may have been closed meanwhile
        opened, bridge = self._build(session, reader, presentation, kept)
        self._sessions = [*(held for held in self._sessions if not held.closed), opened]
        try:
            if kept is None:
                await come_up(opened, bridge, self._clock)
            else:
                await asyncio.sleep(0)  # the line begins
        except BaseException:
            await opened.close()
            raise
        return opened

    def _check_open(self) -> None:
        if self._closed:
            raise UsageError("This client is closed; make a new one to go on.")

    async def _discard(self, session: SessionId) -> None:
        """Delete a session that nobody will know of, if the server can be reached now."""
        with suppress(TowlineError, TimeoutError):
            async with asyncio.timeout(DISCARD_S):
                await self.life.delete(session, timeout_s=DISCARD_S)

    def _equip(self, new: CreateSession | None) -> CreateSession | None:
        """What a session is made of: the tools, too, when its first turn begins with it."""
        if new is None or new.prompt is None:
            return new
        named = {tool.name for tool in new.tools}
        more = (tool for tool in self._handlers.declared.value if tool.name not in named)
        return msgspec.structs.replace(new, tools=(*new.tools, *more))

    def _build(
        self,
        session: SessionId,
        reader: str | None,
        presentation: Presentation | None,
        kept: SessionView | None,
    ) -> tuple[Session, Bridge]:
        """A session with all that belongs to it; its line begins at once."""
        courier = Courier(self._caller, clock=self._clock, wall_ms=_wall_ms)
        screen = Screen(courier, presentation=presentation, keep=self._keeper(session))
        if kept is not None:
            screen.restore(kept)
        pump = Pump(
            session,
            self._caller,
            clock=self._clock,
            reader=reader or uuid.uuid4().hex,
            policy=self._policy,
            screen=screen,
            draw=random.random,
        )
        bridge = Bridge(
            self._handlers,
            self._journal,
            current=pump.current,
            clock=self._clock,
            fetch=self.download,
            stays=reader is not None,
            heard=kept is None,
            on_decline=screen.show_again,
        )
        opened = Session(
            session, caller=self._caller, courier=courier, screen=screen, pump=pump, bridge=bridge
        )
        return opened, bridge

    def _keeper(self, session: SessionId) -> Callable[[SessionView | None], None] | None:
        kept = self._scrollback
        return None if kept is None else lambda view: kept.keep(session, view)

    def _forget(self, session: SessionId) -> None:
        """Take in that a session is deleted."""
        if self._scrollback is not None:
            self._scrollback.keep(session, None)

    async def feed(self, *, reader: str | None = None) -> AsyncGenerator[FeedFrame, None]:
        """The rows of the session list as they stand, then each one that changes or goes.

        It begins with `SessionRows`: the newest sessions, and all that need somebody. Then come
        `SessionChanged` and `SessionRemoved`. It reconnects by itself, as a session's line does;
        after each reconnection `SessionRows` comes anew and counts in place of all before. Close it
        when done:

        ```python
        async with contextlib.aclosing(client.feed()) as feed:
            async for frame in feed: ...
        ```

        Args:
            reader: How this line names itself; a fresh name when left out.

        Raises:
            ConnectionLost: The server cannot be reached to begin with.
            Unauthorized: The credential was refused, and the two asked for after it.
            CommandRejected: The server said no.
            ContractUnavailable: Something else answers at the address.
        """
        frames = follow_feed(
            self._caller,
            reader=reader or uuid.uuid4().hex,
            clock=self._clock,
            policy=self._policy,
            draw=random.random,
        )
        async with aclosing(frames):
            async for frame in frames:
                if isinstance(frame, SessionRemoved):
                    self._forget(frame.session)
                yield frame

    async def health(self, **options: Unpack[CallOptions]) -> Health:
        """Whether the server lives. Needs no credential."""
        return await self._caller.call("health", Health, options=options)

    async def claim(self, code: str, *, name: str = "", **options: Unpack[CallOptions]) -> Claimed:
        """Turn a one-time code into this device's token. Needs no credential.

        A client that was made without a credential goes on with this token, in memory alone; keep
        it for the next time.

        Args:
            code: The code as a person typed it.
            name: What this device calls itself.

        Raises:
            Unauthorized: The code is wrong, used up or expired.
        """
        answer = await self._caller.call(
            "claim", Claimed, body=Claim(code=code, name=name), options=options
        )
        self._caller.adopt(answer.token)
        return answer

    async def pair(self, **options: Unpack[CallOptions]) -> Pairing:
        """A new one-time code for another device."""
        return await self._caller.call("pair", Pairing, options=options)

    async def me(self, **options: Unpack[CallOptions]) -> Identity:
        """Who the credential belongs to."""
        return await self._caller.call("me", Identity, options=options)

    async def logout(self, **options: Unpack[CallOptions]) -> None:
        """Revoke the token that the credential gives."""
        await self._caller.tell("logout", options=options)

    async def create_session(
        self, new: CreateSession | None = None, **options: Unpack[CallOptions]
    ) -> SessionInfo:
        """Begin a session.

        Args:
            new: What it is made of; all is optional.
        """
        return await self._caller.call(
            "create_session", SessionInfo, body=new or CreateSession(), options=options
        )

    async def list_sessions(
        self,
        *,
        limit: int | None = None,
        after: str | None = None,
        search: str | None = None,
        label: str | None = None,
        archived: bool = False,
        needs: bool = False,
        **options: Unpack[CallOptions],
    ) -> SessionList:
        """One page of sessions, newest first.

        Args:
            limit: The most rows.
            after: The `next` of the page before.
            search: Words that all occur in the title, the labels or the first prompt.
            label: A label that they have.
            archived: Those that are put away, instead of the others.
            needs: Only those in which something waits for a person.
        """
        query: dict[str, str] = {}
        if search is not None:
            query["search"] = search
        if label is not None:
            query["label"] = label
        if archived:
            query["archived"] = "true"
        if needs:
            query["needs"] = "true"
        if limit is not None:
            query["limit"] = str(limit)
        if after is not None:
            query["after"] = after
        return await self._caller.call("list_sessions", SessionList, query=query, options=options)

    async def list_requests(self, **options: Unpack[CallOptions]) -> RequestList:
        """What waits for a person in all their sessions, what ends first before the rest."""
        return await self._caller.call("list_requests", RequestList, options=options)

    async def get_session(self, session: SessionId, **options: Unpack[CallOptions]) -> SessionInfo:
        """One row of the list."""
        return await self._caller.call(
            "get_session", SessionInfo, params={"session": session}, options=options
        )

    async def get_view(self, session: SessionId, **options: Unpack[CallOptions]) -> ViewAnswer:
        """A session as a screen shows it, without taking up a line."""
        return await self._caller.call(
            "get_view", ViewAnswer, params={"session": session}, options=options
        )

    async def upload(
        self,
        data: bytes | PathLike[str],
        *,
        name: str | None = None,
        **options: Unpack[CallOptions],
    ) -> FileInfo:
        """Keep a file on the server, for prompts to name: `Image(file=…)`, `File(file=…)`.

        Args:
            data: Its bytes, or the path of a file; 20 MiB at most.
            name: What to call it; the path's own name when left out.

        Raises:
            OSError: The path cannot be read.
            CommandRejected: It is empty or too large.
        """
        if isinstance(data, bytes):
            body = data
        else:
            path = Path(data)
            name = path.name if name is None else name
            body = await asyncio.get_running_loop().run_in_executor(None, _read_file, path)
        query = {"name": name} if name else {}
        return await self._caller.call(
            "upload_file", FileInfo, query=query, body=body, try_s=FILE_S, options=options
        )

    async def download(self, file: str, **options: Unpack[CallOptions]) -> bytes:
        """The bytes of a file.

        Args:
            file: Its hash, as a block, an artifact or an upload names it.

        Raises:
            CommandRejected: There is none of that hash for this user.
        """
        return await self._caller.fetch(
            "download_file", params={"file": file}, try_s=FILE_S, options=options
        )


async def _close_all(sessions: list[Session]) -> None:
    """Close them at once, so that a slow server is waited for once; the first bug comes out."""
    try:
        ends = await asyncio.gather(*(each.close() for each in sessions), return_exceptions=True)
    finally:  # also of those whose close was cancelled before it began
        for each in sessions:
            each.let_go()
    for end in ends:
        if isinstance(end, BaseException):
            raise end


_MOST_BYTES: Final = 20 * 1024 * 1024  # of a file; a byte more shows the server that it is larger


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)


def _wall_ms() -> int:
    return time.time_ns() // 1_000_000
