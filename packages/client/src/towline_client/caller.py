"""Calls of the contract table: credential, key, timeout, check, one small retry."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from towline_client.clock import Clock
from towline_client.errors import CommandRejected, ConnectionLost, ContractUnavailable
from towline_client.transport import Call, Reply, Transport, check_reply
from towline_protocol import OPERATIONS, Operation, decode_answer, encode

__all__ = ["MAX_RETRY_AFTER_S", "RETRY_WAITS_S", "TIMEOUT_S", "Caller", "Credential"]

Credential = str | Callable[[], Awaitable[str | None]] | None
"""A token, or an async function that is asked for one before every request (C4.6)."""

RETRY_WAITS_S: Final = (0.0, 1.0, 3.0)
"""Seconds before a call that does no harm twice is sent again: a lost reply is mostly a connection
that was just being closed, or a server that is just starting again."""
MAX_RETRY_AFTER_S: Final = 10.0
"""Seconds that a server may make a call wait for its retry; more is the caller's decision."""
TIMEOUT_S: Final = 30.0
"""Seconds for an ordinary request (C4.5)."""

_T = TypeVar("_T", bound=msgspec.Struct)


class Caller:
    """Sends calls over a transport. The credential is asked for each request and never kept."""

    def __init__(
        self,
        transport: Transport,
        credential: Credential,
        *,
        clock: Clock,
        mint_key: Callable[[], str],
    ) -> None:
        self._transport = transport
        self._credential = credential
        self._clock = clock
        self._mint_key = mint_key

    async def call(
        self,
        name: str,
        answer: type[_T],
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: msgspec.Struct | bytes | None = None,
        key: str | None = None,
        timeout_s: float = TIMEOUT_S,
        again: bool = True,
    ) -> _T:
        """Make one call and read its answer.

        Args:
            name: The operation's name.
            answer: The type of its answer.
            params: Values for the braces of its path.
            query: Query parameters.
            body: The request; bytes for an operation that takes them as they are.
            key: Its `Idempotency-Key`; one is minted when the operation takes one (C2.5).
            timeout_s: Seconds for each try.
            again: Whether a lost reply may be asked for again, under the same key.

        Raises:
            ConnectionLost: No answer, after the retries that do no harm.
            ContractUnavailable: A success that no towline server sent.
            Unauthorized: The credential was refused.
            CommandRejected: The server said no.
        """
        reply = await self._send(name, params, query, body, key, timeout_s, again=again)
        return _decode(name, reply, answer)

    async def call_tagged(
        self,
        name: str,
        answer: type[_T],
        *,
        params: Mapping[str, str],
        body: msgspec.Struct | None = None,
        key: str | None = None,
        match: str | None = None,
    ) -> tuple[_T, str]:
        """Make one call whose answer has an `ETag`, and read both (C2.6). Raises as `call` does.

        Args:
            name: The operation's name.
            answer: The type of its answer.
            params: Values for the braces of its path.
            body: The request.
            key: Its `Idempotency-Key`.
            match: The tag that must still count; `None` for any.
        """
        headers = {} if match is None else {"if-match": match}
        reply = await self._send(
            name, params, None, body, key, TIMEOUT_S, again=True, headers=headers
        )
        return _decode(name, reply, answer), reply.headers.get("etag", "")

    async def fetch(
        self, name: str, *, params: Mapping[str, str] | None = None, timeout_s: float = TIMEOUT_S
    ) -> bytes:
        """Make one call whose answer is bytes as they are. Raises as `call` does."""
        return (await self._send(name, params, None, None, None, timeout_s, again=True)).body

    async def tell(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        body: msgspec.Struct | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Make one call whose answer has no body. Raises as `call` does."""
        await self._send(name, params, None, body, None, timeout_s, again=False)

    @asynccontextmanager
    async def stream(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> AsyncGenerator[AsyncIterator[bytes]]:
        """Open a stream; inside is its body as it comes. Raises as `call` does."""
        operation = OPERATIONS[name]
        call = Call(
            operation=operation,
            path=_fill(operation, params or {}),
            query=query or {},
            headers=headers or {},
            token=await self._token(operation),
        )
        async with self._transport.stream(call) as reply:
            body = b"" if reply.status < 400 else await _read_some(reply.chunks)
            check_reply(Reply(status=reply.status, headers=reply.headers, body=body), operation)
            yield reply.chunks

    async def _send(
        self,
        name: str,
        params: Mapping[str, str] | None,
        query: Mapping[str, str] | None,
        body: msgspec.Struct | bytes | None,
        key: str | None,
        timeout_s: float,
        *,
        again: bool,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        operation = OPERATIONS[name]
        headers = dict(headers or {})
        if operation.idempotent:
            headers["idempotency-key"] = key or self._mint_key()
        call = Call(
            operation=operation,
            path=_fill(operation, params or {}),
            query=query or {},
            headers=headers,
            body=encode(body) if isinstance(body, msgspec.Struct) else body,
            timeout_s=timeout_s,
        )
        # the same bytes twice are one file
        twice = operation.idempotent or operation.raw or operation.method == "GET"
        harmless = again and twice
        waits_s = RETRY_WAITS_S if harmless else ()
        for wait_s in waits_s:
            try:
                return await self._try(call)
            except ConnectionLost as error:
                await self._sleep(max(wait_s, error.retry_after_s or 0.0), error)
            except CommandRejected as error:
                if error.retry != "same_request":
                    raise
                await self._sleep(max(wait_s, error.retry_after_s or 0.0), error)
        return await self._try(call)

    async def _try(self, call: Call) -> Reply:
        token = await self._token(call.operation)
        reply = await self._transport.request(msgspec.structs.replace(call, token=token))
        check_reply(reply, call.operation)
        return reply

    async def _sleep(self, wait_s: float, error: ConnectionLost | CommandRejected) -> None:
        if wait_s > MAX_RETRY_AFTER_S:
            raise error
        if wait_s > 0:
            until_ms = self._clock.now_ms() + int(wait_s * 1000)
            await self._clock.wait(asyncio.Event(), until_ms)

    async def _token(self, operation: Operation) -> str | None:
        if operation.open or self._credential is None:
            return None
        if isinstance(self._credential, str):
            return self._credential
        return await self._credential()


def _decode(name: str, reply: Reply, answer: type[_T]) -> _T:
    try:
        return decode_answer(reply.body, answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ContractUnavailable(
            f"The answer to {name!r} cannot be read; the server may be newer than this client.",
            status=reply.status,
            reason="not_json",
        ) from error


def _fill(operation: Operation, params: Mapping[str, str]) -> str:
    path = operation.path
    for name, value in params.items():
        path = path.replace(f"{{{name}}}", quote(value, safe=""))
    return path


_MOST_PROBLEM_BYTES: Final = 64 * 1024  # a problem answer is a few hundred bytes


async def _read_some(chunks: AsyncIterator[bytes]) -> bytes:
    """The body of a refusal, as far as a problem can be long."""
    body = b""
    async for chunk in chunks:
        body += chunk
        if len(body) > _MOST_PROBLEM_BYTES:
            break
    return body
