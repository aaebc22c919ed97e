"""Users: let in and out, and their passwords."""

from typing import Final, cast

from starlette.responses import Response

from towline_protocol import AddUser, ChangePassword, UserInfo, UserList
from towline_server.api.handlers.auth import own
from towline_server.api.handlers.call import Call, Handler
from towline_server.errors import UserNotFound

__all__ = ["HANDLERS"]


async def _list_users(call: Call) -> UserList:
    return await call.service.access.accounts.list_users()


async def _add_user(call: Call) -> UserInfo:
    return await call.service.access.accounts.add_user(cast("AddUser", call.body))


async def _remove_user(call: Call) -> Response:
    name = call.request.path_params["user"]
    await call.service.access.remove_user(name)
    for session in call.service.sessions.live:
        if session.log.user == name:
            session.runner.interrupt(call.user, "The user was removed.")
    return Response(status_code=204)


async def _change_password(call: Call) -> Response:
    body = cast("ChangePassword", call.body)
    name = call.request.path_params["user"]
    if name != call.user and not call.caller.admin:
        raise UserNotFound(f"There is no user {name[:80]!r} whose password you may change.")
    access = call.service.access
    await access.change_password(
        call.caller,
        name,
        body.password,
        old=body.old,
        everywhere=body.everywhere,
        keep=access.digest(call.request) or "",
    )
    return Response(status_code=204)


HANDLERS: Final[dict[str, Handler]] = {
    "list_users": own(_list_users),
    "add_user": own(_add_user),
    "remove_user": own(_remove_user),
    "change_password": own(_change_password),
}
"""Operation name to handler."""
