"""The server as an ASGI app: routes made from the contract table."""

import logging
from collections.abc import Awaitable, Callable, Container, Sequence
from typing import Any, Final, cast

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Match, Mount, Route

from towline_protocol import OPERATIONS, Fault, Operation, TowlineError, UsageError, encode
from towline_server.api.access import NOBODY
from towline_server.api.deadline import bound_work, read_timeout
from towline_server.api.guard import (
    MAX_BODY,
    MAX_PROMPT_BODY,
    App,
    Guard,
    Receive,
    Scope,
    Send,
    request_id,
)
from towline_server.api.handlers import HANDLERS, Call, Service, Tagged
from towline_server.api.problem import problem
from towline_server.api.query import read_query
from towline_server.api.stream import Streams
from towline_server.errors import (
    AdminOnly,
    BodyTooLarge,
    Draining,
    MediaUnsupported,
    MethodRefused,
    RouteNotFound,
)
from towline_server.stream.pump import STREAM_HEADERS

__all__ = ["make_app"]

_log: Final = logging.getLogger("towline.server")

Endpoint = Callable[[Request], Awaitable[Response]]


def make_app(
    service: Service,
    streams: Streams,
    *,
    pages: App | None = None,
    hosts: Container[str] = frozenset(),
    origins: tuple[str, ...] = (),
) -> Guard:
    """The whole server behind one ASGI callable.

    Args:
        service: What handlers work with.
        streams: Serves the event streams.
        pages: Serves every path outside `/api`; `None` for no pages.
        hosts: Names beside loopback under which the server may be reached.
        origins: Pages of other sites that may call it (C2.8).
    """
    routes: list[Route] = []
    for operation in OPERATIONS.values():
        endpoint = (
            _stream_endpoint(operation, service, streams)
            if operation.stream
            else _endpoint(operation, service, streams)
        )
        routes.append(Route(operation.path, endpoint, methods=[operation.method]))
    app = Starlette(
        routes=[*routes, Mount("/", app=_rest(routes, pages))],
        exception_handlers={HTTPException: _http_problem},
    )
    return Guard(app, hosts=hosts, origins=origins)


def _rest(routes: Sequence[Route], pages: App | None) -> App:
    """Answers what no operation does: a wrong method is told from a wrong path (C2.3)."""

    async def served(scope: Scope, receive: Receive, send: Send) -> None:
        offered = [route for route in routes if route.matches(scope)[0] is Match.PARTIAL]
        if offered:
            methods = {method for route in offered for method in route.methods or ()}
            raise HTTPException(405, headers={"allow": ", ".join(sorted(methods))})
        if pages is None or f"{scope['path']}/".startswith("/api/"):
            raise HTTPException(404)
        await pages(scope, receive, send)

    return served


def _endpoint(operation: Operation, service: Service, streams: Streams) -> Endpoint:
    handler = HANDLERS[operation.name]
    decoder = None if operation.request is None else msgspec.json.Decoder(operation.request)
    bound = MAX_PROMPT_BODY if operation.large else MAX_BODY

    async def serve(request: Request) -> Response:
        caller = NOBODY if operation.open else await service.access.caller(request)
        if operation.admin and not caller.admin:
            raise AdminOnly("Only an admin may do this; ask the owner of this server.")
        if streams.draining and operation.method != "GET":
            raise Draining("The server shuts down; come back in a moment.", retry_after_s=5)
        query = read_query(operation, request.query_params)
        raw, body = b"", None
        if decoder is not None:
            raw = await _read_body(request, bound)
            body = _decode(decoder, raw)
            if not operation.open:  # a body may be kept back until its sender is let in no more
                await service.access.check_still(caller, request)
        if not operation.idempotent:
            call = Call(request, service, caller, body, query=query)
            return _answer(operation, await handler(call))
        user = caller.user
        async with service.repeats.in_turn(request, user):
            earlier = await service.repeats.find(request, user, operation.name, raw)
            if earlier is not None:
                return earlier
            remember = service.repeats.remember(
                request, user, operation.name, raw, operation.status
            )
            call = Call(request, service, caller, body, remember, query)
            try:
                answer = await handler(call)
                if remember is None:
                    return _answer(operation, answer)
                kept = await service.repeats.keep_rest(remember, _body(answer))
                return _answer(operation, answer, kept)
            except TowlineError as error:
                refusal = problem(error.fault(), request_id(request.scope))
                await service.repeats.keep_refusal(request, user, operation.name, raw, refusal)
                return refusal

    return _with_deadline(operation, _with_problems(serve))


def _stream_endpoint(operation: Operation, service: Service, streams: Streams) -> Endpoint:
    async def serve(request: Request) -> Response:
        user = (await service.access.caller(request)).user
        read_query(operation, request.query_params)
        if request.method == "HEAD":  # the head alone takes no place among the readers
            return Response(headers={k.decode(): v.decode() for k, v in STREAM_HEADERS})
        opener = streams.open_feed if operation.name == "follow_all" else streams.open
        opened = await opener(request, user)
        return cast("Response", service.access.watch(request, opened))

    return _with_problems(serve)


def _with_deadline(operation: Operation, serve: Endpoint) -> Endpoint:
    """Hold a request to the seconds that it gives itself (C2.7)."""

    async def served(request: Request) -> Response:
        name = request_id(request.scope)
        try:
            seconds = read_timeout(request)
        except TowlineError as error:
            return problem(error.fault(), name)
        if seconds is None:
            return await serve(request)
        reads = operation.method == "GET"
        return await bound_work(serve(request), seconds, reads=reads, request_id=name)

    return served


def _with_problems(serve: Endpoint) -> Endpoint:
    """The rim of a request: every error becomes a problem answer, a surprise is logged."""

    async def served(request: Request) -> Response:
        name = request_id(request.scope)
        try:
            return await serve(request)
        except TowlineError as error:
            return problem(error.fault(), name)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception:
            known = {"request_id": name, "session": request.path_params.get("session")}
            _log.exception("Request %s failed by a fault of ours", name, extra=known)
            return problem(_internal(), name)

    return served


async def _read_body(request: Request, bound: int) -> bytes:
    """The body's bytes, up to a bound.

    Raises:
        BodyTooLarge: There are more.
        MediaUnsupported: It is not said to be JSON.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise MediaUnsupported(f"The body is {kind!r}; send it as application/json.")
    parts: list[bytes] = []
    size = 0
    async for part in request.stream():
        size += len(part)
        if size > bound:
            raise BodyTooLarge(f"The body is larger than {bound} bytes; send less at once.")
        parts.append(part)
    return b"".join(parts)


def _decode(decoder: msgspec.json.Decoder[Any], raw: bytes) -> Any:
    try:
        return decoder.decode(raw)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise UsageError(f"The body does not fit: {error}. Mend it and send it again.") from error


def _answer(operation: Operation, answer: Any, kept: bytes | None = None) -> Response:
    """The answer as it goes out; `kept` is the body that a repeat gets as well."""
    if isinstance(answer, Response):
        return answer
    headers = {"etag": answer.etag} if isinstance(answer, Tagged) else None
    body = encode(_body(answer)) if kept is None else kept
    return Response(body, operation.status, headers, "application/json")


def _body(answer: Any) -> Any:
    return answer.body if isinstance(answer, Tagged) else answer


async def _http_problem(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    name = request_id(request.scope)
    path = request.url.path
    if error.status_code == 405:
        fault = MethodRefused(f"{request.method} is not offered at {path!r}.").fault()
    else:
        docs = f"{request.scope.get('root_path') or ''}/docs"
        fault = RouteNotFound(f"There is nothing at {path!r}; {docs} lists what there is.").fault()
    response = problem(fault, name)
    if error.headers:
        response.headers.update(error.headers)
    return response


def _internal() -> Fault:
    return Fault(
        code="internal_error",
        message="The server failed by a fault of its own; its log names this request.",
    )
