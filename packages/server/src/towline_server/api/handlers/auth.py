"""Who comes in: codes, passwords, tokens."""

from typing import Final, cast

from starlette.requests import Request
from starlette.responses import Response

from towline_protocol import (
    Claim,
    Claimed,
    CreateToken,
    Identity,
    LoggedIn,
    Login,
    NewToken,
    Pairing,
    TokenList,
    encode,
    format_time,
)
from towline_server.api.access import DEVICE_LIFE_S, LOGIN_LIFE_S, Access, address_of
from towline_server.api.handlers.call import MAX_WORD, Call, Handler, check_length
from towline_server.auth.hosts import is_loopback
from towline_server.auth.qr import draw_svg

__all__ = ["HANDLERS", "own"]


def own(handler: Handler) -> Handler:
    """The same, refused where another program says who is who."""

    async def handled(call: Call) -> object:
        call.service.access.check_own()
        return await handler(call)

    return handled


async def _login(call: Call) -> LoggedIn | Response:
    body = cast("Login", call.body)
    check_length(MAX_WORD, user=body.user, name=body.name)
    access = call.service.access
    address = address_of(call.request)
    issued = await access.login(body.user, body.password, name=body.name, address=address)
    assert issued.expires_ms is not None
    until = format_time(issued.expires_ms)
    if not body.cookie:
        return LoggedIn(token=issued.token, user=issued.user, expires_at=until)
    response = _json(LoggedIn(user=issued.user, expires_at=until))
    _set_cookie(response, call.request, access, issued.token, LOGIN_LIFE_S)
    return response


async def _claim(call: Call) -> Claimed | Response:
    body = cast("Claim", call.body)
    check_length(MAX_WORD, code=body.code)  # it is compared on the loop, by whoever knocks
    access = call.service.access
    issued = await access.claim(body.code, body.name, address=address_of(call.request))
    if not body.cookie:
        return Claimed(token=issued.token, user=issued.user)
    response = _json(Claimed(user=issued.user))
    _set_cookie(response, call.request, access, issued.token, DEVICE_LIFE_S)
    return response


async def _pair(call: Call) -> Pairing:
    access = call.service.access
    code, until = access.new_code(call.user, access.stored_digest(call.caller, call.request) or "")
    url = f"{_reached_at(call)}/#code={code}"
    return Pairing(code=code, url=url, qr=draw_svg(url), expires_at=until)


def _reached_at(call: Call) -> str:
    """The address for another device: the one the caller came by, unless that is loopback."""
    url = call.request.url
    if is_loopback(url.hostname or "localhost"):
        return call.service.address()
    return f"{url.scheme}://{url.netloc}"


async def _me(call: Call) -> Identity | Response:
    found = Identity(user=call.user, server_name=call.service.server_name, admin=call.caller.admin)
    access = call.service.access
    token = await access.sliding_cookie(call.request)
    if token is None:
        return found
    response = _json(found)  # each start of the page asks this: its cookie lives as long as it
    _set_cookie(response, call.request, access, token, DEVICE_LIFE_S)
    return response


async def _logout(call: Call) -> Response:
    access = call.service.access
    await access.revoke(call.request)
    response = Response(status_code=204)
    response.delete_cookie(
        access.cookie_name(call.request),
        path="/",
        httponly=True,
        samesite="strict",
        secure=call.request.url.scheme == "https",
    )
    return response


async def _list_tokens(call: Call) -> TokenList:
    access = call.service.access
    current = access.digest(call.request) or ""
    return await access.accounts.list_tokens(call.user, current=current)


async def _create_token(call: Call) -> NewToken:
    body = cast("CreateToken", call.body)
    return await call.service.access.accounts.create_token(call.user, body)


async def _revoke_token(call: Call) -> Response:
    token_id = call.request.path_params["token"]
    await call.service.access.accounts.revoke_token(call.user, token_id)
    return Response(status_code=204)


def _json(body: Claimed | Identity | LoggedIn) -> Response:
    return Response(encode(body), media_type="application/json")


def _set_cookie(
    response: Response, request: Request, access: Access, token: str, life_s: int
) -> None:
    response.set_cookie(
        access.cookie_name(request),
        token,
        max_age=life_s,
        httponly=True,
        samesite="strict",
        secure=request.url.scheme == "https",
        path="/",
    )


HANDLERS: Final[dict[str, Handler]] = {
    "login": own(_login),
    "claim": own(_claim),
    "pair": own(_pair),
    "me": _me,
    "logout": own(_logout),
    "list_tokens": own(_list_tokens),
    "create_token": own(_create_token),
    "revoke_token": own(_revoke_token),
}
"""Operation name to handler."""
