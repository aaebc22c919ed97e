"""Calling people who do not look, and who looks."""

from typing import Final, cast

from starlette.responses import Response

from towline_protocol import (
    NotePresence,
    PushOffer,
    PushOutcome,
    PushSubscription,
    PushSubscriptionList,
    SubscribePush,
    UsageError,
)
from towline_server.api.handlers.call import Call, Handler
from towline_server.sessions.session import Session

__all__ = ["HANDLERS", "MAX_CLIENT"]

MAX_CLIENT: Final = 64
"""Characters of what a client calls itself."""


async def _get_key(call: Call) -> PushOffer:
    return await call.service.wake_ups.devices.offer()


async def _list(call: Call) -> PushSubscriptionList:
    return await call.service.wake_ups.devices.list_devices(call.user)


async def _subscribe(call: Call) -> PushSubscription:
    url = call.request.url
    wake_ups = call.service.wake_ups
    made = await wake_ups.devices.subscribe(
        call.user,
        cast("SubscribePush", call.body),
        origin=f"{url.scheme}://{url.netloc}",
        token=call.service.access.stored_digest(call.caller, call.request),
    )
    wake_ups.call_for_pending(_mine(call))
    return made


async def _unsubscribe(call: Call) -> Response:
    await call.service.wake_ups.devices.remove(call.user, _id(call))
    return Response(status_code=204)


async def _test(call: Call) -> PushOutcome:
    return await call.service.wake_ups.devices.test(call.user, _id(call))


async def _note_presence(call: Call) -> Response:
    body = cast("NotePresence", call.body)
    if not 0 < len(body.client) <= MAX_CLIENT:
        raise UsageError(
            f"client has {len(body.client)} characters; name the client with 1 to {MAX_CLIENT}."
        )
    call.service.wake_ups.note_presence(call.user, body.client, _mine(call), visible=body.visible)
    return Response(status_code=204)


def _mine(call: Call) -> list[Session]:
    return [session for session in call.service.sessions.live if session.log.user == call.user]


def _id(call: Call) -> str:
    return str(call.request.path_params["subscription"])


HANDLERS: Final[dict[str, Handler]] = {
    "get_push_key": _get_key,
    "list_push_subscriptions": _list,
    "subscribe_push": _subscribe,
    "unsubscribe_push": _unsubscribe,
    "test_push": _test,
    "note_presence": _note_presence,
}
"""Operation name to handler."""
