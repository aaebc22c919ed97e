"""What turns did to files."""

from typing import Final, cast

from towline_protocol import CheckpointList, RevertTurn, TurnDiff, TurnId, TurnReverted
from towline_server.api.handlers.call import Call, Handler

__all__ = ["HANDLERS"]

_ROWS: Final = 50


async def _list_checkpoints(call: Call) -> CheckpointList:
    session = await call.service.sessions.get(call.user, call.session)
    return await session.going_back.checkpoints(
        limit=call.number("limit", _ROWS), after=call.text("after")
    )


async def _get_diff(call: Call) -> TurnDiff:
    session = await call.service.sessions.get(call.user, call.session)
    return await session.going_back.diff(
        _turn(call), limit=call.number("limit", _ROWS), after=call.text("after")
    )


async def _revert_turn(call: Call) -> TurnReverted:
    body = cast("RevertTurn", call.body)
    session = await call.service.sessions.get(call.user, call.session, live=True)
    return await session.revert(
        _turn(call),
        skip_conflicts=body.skip_conflicts,
        conversation=body.conversation,
        remember=call.remember,
    )


def _turn(call: Call) -> TurnId:
    return TurnId(call.request.path_params["turn"])


HANDLERS: Final[dict[str, Handler]] = {
    "list_checkpoints": _list_checkpoints,
    "get_diff": _get_diff,
    "revert_turn": _revert_turn,
}
"""Operation name to handler."""
