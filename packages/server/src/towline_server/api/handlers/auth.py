"""Who comes in."""

from typing import Final, cast

from starlette.responses import Response

from towline_protocol import Claim, Claimed, Identity, Pairing, encode
from towline_server.api.access import DEVICE_LIFE_S
from towline_server.api.handlers.call import Call, Handler

__all__ = ["HANDLERS"]


async def _claim(call: Call) -> Claimed | Response:
    body = cast("Claim", call.body)
    access = call.service.access
    token = await access.claim(body.code, body.name)
    user = "owner"
    if not body.cookie:
        return Claimed(token=token, user=user)
    response = Response(encode(Claimed(user=user)), media_type="application/json")
    response.set_cookie(
        access.cookie,
        token,
        max_age=DEVICE_LIFE_S,
        httponly=True,
        samesite="strict",
        secure=call.request.url.scheme == "https",
        path="/",
    )
    return response


async def _pair(call: Call) -> Pairing:
    code, until = call.service.access.new_code()
    return Pairing(code=code, url=f"{call.service.address()}/#code={code}", expires_at=until)


async def _me(call: Call) -> Identity:
    return Identity(user=call.user, server_name=call.service.server_name)


async def _logout(call: Call) -> Response:
    await call.service.access.revoke(call.request)
    response = Response(status_code=204)
    response.delete_cookie(call.service.access.cookie, path="/")
    return response


HANDLERS: Final[dict[str, Handler]] = {
    "claim": _claim,
    "pair": _pair,
    "me": _me,
    "logout": _logout,
}
"""Operation name to handler."""
