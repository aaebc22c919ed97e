"""Calls of the contract table: credential, key, timeout, check, one small retry."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeVar
from urllib.parse import quote

import msgspec

from towline_client.clock import Clock
from towline_client.errors import (
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    Unauthorized,
)
from towline_client.options import CallOptions, check_options
from towline_client.outbox import LAST_TRY_MS
from towline_client.transport import Call, Reply, Transport, check_reply
from towline_protocol import OPERATIONS, Operation, UsageError, decode_answer, encode

__all__ = [
    "KEY_HEADER",
    "MAX_RETRY_AFTER_S",
    "RENEW_WAITS_S",
    "RETRY_WAITS_S",
    "TRY_S",
    "Caller",
    "Credential",
    "read_answer",
]

Credential = str | Callable[[], Awaitable[str | None]] | None
"""A token, or an async function that is asked for one before every request (C4.6); `None` for none.

A function is asked anew, twice at most, when a command's token was refused; a plain token is not
sent again. White space around a token is left out.

What the function raises comes out of the call that asked. In a session's line a `ConnectionLost`
of it is waited out as any other; everything else ends the line and comes out of its flows."""

RETRY_WAITS_S: Final = (0.0, 1.0, 3.0)
"""Seconds before a call that does no harm twice is sent again: a lost reply is mostly a connection
that was just being closed, or a server that is just starting again."""
RENEW_WAITS_S: Final = (0.0, 1.0)
"""Seconds before a credential function is asked again after its token was refused (C4.6)."""
MAX_RETRY_AFTER_S: Final = 10.0
"""Seconds that a server may make a call wait for its retry; more is the caller's decision."""
TRY_S: Final = 30.0
"""Seconds for one try of an ordinary request (C4.5)."""
KEY_HEADER: Final = "idempotency-key"
"""The header that makes a command sent twice count once (C2.5)."""

_NO_OPTIONS: Final = CallOptions()

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
        self._credential = _check_token(credential) if isinstance(credential, str) else credential
        self._adopts = credential is None
        self._clock = clock
        self._mint_key = mint_key

    def adopt(self, token: str | None) -> None:
        """Use a token that was just given, when there was no credential from the start."""
        if self._adopts and token is not None:
            self._credential = token

    async def call(
        self,
        name: str,
        answer: type[_T],
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: msgspec.Struct | bytes | None = None,
        options: CallOptions = _NO_OPTIONS,
        try_s: float = TRY_S,
        again: bool = True,
    ) -> _T:
        """Make one call and read its answer.

        Args:
            name: The operation's name.
            answer: The type of its answer.
            params: Values for the braces of its path.
            query: Query parameters.
            body: The request; bytes for an operation that takes them as they are.
            options: What the caller asked for.
            try_s: Seconds for each try, when the options say nothing.
            again: Whether it may be sent again here: after a lost reply under the same key, after
                a refused token with a fresh one.

        Raises:
            UsageError: The operation takes no such option.
            ConnectionLost: No answer, after the retries that do no harm.
            ContractUnavailable: A success that no towline server sent.
            Unauthorized: The credential was refused.
            CommandRejected: The server said no.
        """
        call = self.prepare(name, params=params, query=query, body=body, options=options)
        return read_answer(
            call, await self._send(call, options, try_s, again=again, renews=again), answer
        )

    async def call_tagged(
        self,
        name: str,
        answer: type[_T],
        *,
        params: Mapping[str, str],
        body: msgspec.Struct | None = None,
        options: CallOptions = _NO_OPTIONS,
    ) -> tuple[_T, str]:
        """Make one call whose answer has an `ETag`, and read both (C2.6). As `call` in the rest."""
        call = self.prepare(name, params=params, body=body, options=options)
        reply = await self._send(call, options, TRY_S, again=True)
        return read_answer(call, reply, answer), reply.headers.get("etag", "")

    async def fetch(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        options: CallOptions = _NO_OPTIONS,
        try_s: float = TRY_S,
    ) -> bytes:
        """Make one call whose answer is bytes as they are. As `call` in the rest."""
        call = self.prepare(name, params=params, options=options)
        return (await self._send(call, options, try_s, again=True)).body

    async def tell(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        body: msgspec.Struct | None = None,
        options: CallOptions = _NO_OPTIONS,
        try_s: float = TRY_S,
    ) -> None:
        """Make one call whose answer has no body. As `call` in the rest."""
        call = self.prepare(name, params=params, body=body, options=options)
        await self._send(call, options, try_s, again=False)

    def prepare(
        self,
        name: str,
        *,
        params: Mapping[str, str] | None = None,
        query: Mapping[str, str] | None = None,
        body: msgspec.Struct | bytes | None = None,
        options: CallOptions = _NO_OPTIONS,
    ) -> Call:
        """A call that can be sent any number of times: its key and its bytes are settled.

        Raises:
            UsageError: The operation takes no such option, or the body holds what JSON cannot.
        """
        operation = OPERATIONS[name]
        check_options(operation, options)
        headers: dict[str, str] = {}
        if operation.idempotent:
            headers[KEY_HEADER] = options.get("key") or self._mint_key()
        if "if_match" in options:
            headers["if-match"] = options["if_match"]
        return Call(
            operation=operation,
            path=_fill(operation, params or {}),
            query=query or {},
            headers=headers,
            body=_encode(body, name) if isinstance(body, msgspec.Struct) else body,
        )

    def renew(self, call: Call) -> Call:
        """The same call as another command: under a fresh key."""
        return msgspec.structs.replace(call, headers={**call.headers, KEY_HEADER: self._mint_key()})

    async def send_once(self, call: Call, timeout_s: float) -> Reply:
        """Send a call once, with the credential of now; gives a success. Raises as `call` does."""
        token = await self._token(call.operation, timeout_s)
        sent = msgspec.structs.replace(call, token=token, timeout_s=timeout_s)
        reply = await self._transport.request(sent)
        check_reply(reply, call.operation)
        return reply

    async def send_renewed(
        self, call: Call, left_s: Callable[[], float], halt: asyncio.Event | None = None
    ) -> Reply:
        """Send a call as `send_once`; a function is asked anew for what was refused (C4.6).

        Args:
            call: The call.
            left_s: Seconds for a try that begins now.
            halt: Ends the waits when it is set.
        """
        halt = halt or asyncio.Event()
        asks = callable(self._credential) and not call.operation.open
        for wait_s in RENEW_WAITS_S if asks else ():
            try:
                return await self.send_once(call, left_s())
            except Unauthorized:
                if halt.is_set() or wait_s >= left_s():
                    raise
            if wait_s > 0:
                await self._clock.wait(halt, self._clock.now_ms() + int(wait_s * 1000))
        return await self.send_once(call, left_s())

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
            token=await self._token(operation, TRY_S),
        )
        async with self._transport.stream(call) as reply:
            body = b"" if reply.status < 400 else await _read_some(reply.chunks)
            check_reply(
                Reply(status=reply.status, headers=reply.headers, body=body, address=reply.address),
                operation,
            )
            yield reply.chunks

    async def _send(
        self, call: Call, options: CallOptions, try_s: float, *, again: bool, renews: bool = True
    ) -> Reply:
        whole_s = options.get("timeout_s")
        until_ms = None if whole_s is None else self._clock.now_ms() + int(whole_s * 1000)
        operation = call.operation

        def left_s() -> float:
            return self._left_s(until_ms, try_s)

        async def send() -> Reply:
            if renews:
                return await self.send_renewed(call, left_s)
            return await self.send_once(call, left_s())

        # the same bytes twice are one file
        harmless = operation.idempotent or operation.raw or operation.method == "GET"
        for wait_s in RETRY_WAITS_S if again and harmless else ():
            try:
                return await send()
            except (ConnectionLost, CommandRejected) as error:
                if isinstance(error, CommandRejected) and error.retry != "same_request":
                    raise
                await self._sleep(max(wait_s, error.retry_after_s or 0.0), until_ms, error)
        return await send()

    def _left_s(self, until_ms: int | None, try_s: float) -> float:
        """Seconds for the next try; at least a millisecond."""
        return try_s if until_ms is None else max(1, until_ms - self._clock.now_ms()) / 1000

    async def _sleep(
        self, wait_s: float, until_ms: int | None, error: ConnectionLost | CommandRejected
    ) -> None:
        """Wait before the next try, or raise why there is none."""
        now_ms = self._clock.now_ms()
        wake_ms = now_ms + int(wait_s * 1000)
        if until_ms is not None and now_ms < until_ms - LAST_TRY_MS:
            least_ms = now_ms + int((error.retry_after_s or 0.0) * 1000)
            wake_ms = max(min(wake_ms, until_ms - LAST_TRY_MS), least_ms)
        if wait_s > MAX_RETRY_AFTER_S or (until_ms is not None and wake_ms >= until_ms):
            raise error
        if wait_s > 0:
            await self._clock.wait(asyncio.Event(), wake_ms)

    async def _token(self, operation: Operation, timeout_s: float) -> str | None:
        if operation.open or self._credential is None:
            return None
        if isinstance(self._credential, str):
            return self._credential
        limit = asyncio.timeout(timeout_s)
        try:
            async with limit:
                return _check_token(await self._credential())
        except TimeoutError as error:
            if not limit.expired():
                raise  # its own
            raise ConnectionLost(
                f"The credential's function gave nothing in {timeout_s:g} s; let it fail sooner."
            ) from error


def read_answer(call: Call, reply: Reply, answer: type[_T]) -> _T:
    """The body of a success.

    Raises:
        ContractUnavailable: It is not what the operation answers.
    """
    try:
        return decode_answer(reply.body, answer)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ContractUnavailable(
            f"The answer to {call.operation.name!r} cannot be read; the server may be newer "
            "than this client.",
            status=reply.status,
            reason="not_json",
        ) from error


def _check_token(token: object) -> str | None:
    """What can stand in a header; the message never shows it."""
    if token is None:
        return None
    if isinstance(token, str):
        token = token.strip()
    if not isinstance(token, str) or not token.isascii() or not token.isprintable():
        raise UsageError(
            f"The credential is a {type(token).__name__} that can't be sent; give a token of "
            "printable ASCII characters, or None."
        )
    return token


def _encode(body: msgspec.Struct, name: str) -> bytes:
    try:
        return encode(body)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"What {name!r} was given can't be sent as JSON ({error}); give what its parameters "
            "name."
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
