"""The way in: an address, a credential, and the calls of the contract table."""

import asyncio
import random
import uuid
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from os import PathLike
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from towline_client.account import Account
from towline_client.caller import Caller, Credential
from towline_client.clock import Clock, LoopClock
from towline_client.discovery import Discovery
from towline_client.errors import ConnectionLost
from towline_client.feed import FeedFrame, follow_feed
from towline_client.life import Life
from towline_client.link import LinkPolicy
from towline_client.models import Models
from towline_client.pump import Pump
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
    RequestList,
    SessionId,
    SessionInfo,
    SessionList,
    ViewAnswer,
)

__all__ = ["FILE_S", "Client"]

FILE_S: Final = 300.0
"""Seconds for a file to go either way: 20 MiB over a slow line."""


class Client:
    """A towline server as a program sees it.

    ```python
    async with Client("http://127.0.0.1:4747", token) as client:
        session = await client.open()
        print(await session.ask("What time is it?"))
    ```
    """

    def __init__(
        self,
        url: str,
        credential: Credential = None,
        *,
        transport: Transport | None = None,
        clock: Clock | None = None,
        policy: LinkPolicy | None = None,
    ) -> None:
        """Make a client; nothing is sent yet.

        Args:
            url: The server's address.
            credential: A token, or an async function that is asked for one before every request.
                It is never stored beside this client, logged or shown.
            transport: How requests travel; HTTP when left out. The client closes it.
            clock: The clock; the real one when left out.
            policy: The numbers of the reconnection.

        Raises:
            UsageError: The address cannot be used.
        """
        if transport is None:
            from towline_client.http import HttpTransport  # aiohttp takes half a second to import

            transport = HttpTransport(url)
        self._transport = transport
        self._clock: Clock = clock if clock is not None else LoopClock()
        self._policy = policy if policy is not None else LinkPolicy()
        self._caller = Caller(
            transport, credential, clock=self._clock, mint_key=lambda: uuid.uuid4().hex
        )
        self.account = Account(self._caller)
        """Who may come in: logins, tokens, users."""
        self.discovery = Discovery(self._caller)
        """What the server says of itself."""
        self.models = Models(self._caller)
        """Models, their providers, and what was used."""
        self.life = Life(self._caller)
        """Settings of sessions, read marks, and their end."""
        self._sessions: list[Session] = []

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
        async with AsyncExitStack() as stack:
            stack.push_async_callback(self._transport.close)
            for session in self._sessions:
                stack.push_async_callback(session.close)
            self._sessions = []

    async def open(
        self,
        session: SessionId | str | None = None,
        *,
        new: CreateSession | None = None,
        reader: str | None = None,
    ) -> Session:
        """Take up the line to a session; returns when its view is there and live.

        Args:
            session: Its id; `None` makes a new one.
            new: What a new session is made of.
            reader: How this line names itself; a fresh name when left out. A program that runs
                tools keeps its name, so that it finds its calls again after a restart.

        Raises:
            ConnectionLost: The server cannot be reached.
            Unauthorized: The credential was refused.
            CommandRejected: There is no such session, or it cannot be made.
            ContractUnavailable: Something else answers at the address.
        """
        if session is None:
            session = (await self.create_session(new)).id
        session_id = SessionId(session)
        pump = Pump(
            session_id,
            self._caller,
            clock=self._clock,
            reader=reader or uuid.uuid4().hex,
            policy=self._policy,
            draw=random.random,
        )
        opened = Session(session_id, self._caller, pump)
        self._sessions = [*(held for held in self._sessions if not held.closed), opened]
        async for connection in opened.connection:
            if connection.phase in ("live", "failed") or connection.failures > 1:
                break  # one failure may be a blip: the second try came at once
        if opened.connection.value.phase in ("live", "closed"):
            return opened
        error = opened.connection.value.error
        await opened.close()
        raise error or ConnectionLost("The line ended before it was up; try again.")

    def feed(self, *, reader: str | None = None) -> AsyncGenerator[FeedFrame, None]:
        """The rows of the session list as they stand, then each one that changes or goes.

        It begins with `SessionRows`: the newest sessions, and all that need somebody. Then come
        `SessionChanged` and `SessionRemoved`. It does not reconnect: it ends by raising
        `ConnectionLost`, whose `retry_after_s` says when a server that closes on purpose wants to
        be asked again; a new feed begins with all rows anew. Close it when done:

        ```python
        async with contextlib.aclosing(client.feed()) as feed:
            async for frame in feed: ...
        ```

        Args:
            reader: How this line names itself; a fresh name when left out.

        Raises:
            ConnectionLost: The line ended.
            Unauthorized: The credential was refused.
            CommandRejected: The server said no, such as `capacity_exceeded`.
            ContractUnavailable: Something else answers at the address.
        """
        name = reader or uuid.uuid4().hex
        silence_s = self._policy.silence_ms / 1000
        return follow_feed(self._caller, reader=name, silence_s=silence_s)

    async def health(self) -> Health:
        """Whether the server lives. Needs no credential."""
        return await self._caller.call("health", Health)

    async def claim(self, code: str, *, name: str = "") -> Claimed:
        """Turn a one-time code into this device's token. Needs no credential.

        Args:
            code: The code as a person typed it.
            name: What this device calls itself.

        Raises:
            Unauthorized: The code is wrong, used up or expired.
        """
        return await self._caller.call("claim", Claimed, body=Claim(code=code, name=name))

    async def pair(self) -> Pairing:
        """A new one-time code for another device."""
        return await self._caller.call("pair", Pairing)

    async def me(self) -> Identity:
        """Who the credential belongs to."""
        return await self._caller.call("me", Identity)

    async def logout(self) -> None:
        """Revoke the token that the credential gives."""
        await self._caller.tell("logout")

    async def create_session(
        self, new: CreateSession | None = None, *, key: str | None = None
    ) -> SessionInfo:
        """Begin a session.

        Args:
            new: What it is made of; all is optional.
            key: The same key again gives the same session.
        """
        return await self._caller.call(
            "create_session", SessionInfo, body=new or CreateSession(), key=key
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
        return await self._caller.call("list_sessions", SessionList, query=query)

    async def list_requests(self) -> RequestList:
        """What waits for a person in all their sessions, what ends first before the rest."""
        return await self._caller.call("list_requests", RequestList)

    async def get_session(self, session: SessionId) -> SessionInfo:
        """One row of the list."""
        return await self._caller.call("get_session", SessionInfo, params={"session": session})

    async def get_view(self, session: SessionId) -> ViewAnswer:
        """A session as a screen shows it, without taking up a line."""
        return await self._caller.call("get_view", ViewAnswer, params={"session": session})

    async def upload(self, data: bytes | PathLike[str], *, name: str | None = None) -> FileInfo:
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
            "upload_file", FileInfo, query=query, body=body, timeout_s=FILE_S
        )

    async def download(self, file: str) -> bytes:
        """The bytes of a file.

        Args:
            file: Its hash, as a block, an artifact or an upload names it.

        Raises:
            CommandRejected: There is none of that hash for this user.
        """
        return await self._caller.fetch("download_file", params={"file": file}, timeout_s=FILE_S)


_MOST_BYTES: Final = 20 * 1024 * 1024  # of a file; a byte more shows the server that it is larger


def _read_file(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_MOST_BYTES + 1)
