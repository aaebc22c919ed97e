"""What a session looks like."""

from typing import Final

from towline_protocol import History, RequestList, ViewAnswer
from towline_server.api.handlers.call import Call, Handler
from towline_server.sessions.open_list import list_open

__all__ = ["HANDLERS"]

_MESSAGES: Final = 50
_MAX_MESSAGES: Final = 100


async def _get_view(call: Call) -> ViewAnswer:
    session = await call.service.sessions.get(call.user, call.session)
    view = session.view()
    return ViewAnswer(log=call.service.log, seq=view.seq, view=view)


async def _get_history(call: Call) -> History:
    session = await call.service.sessions.get(call.user, call.session)
    limit = min(call.number("limit", _MESSAGES), _MAX_MESSAGES)
    before = call.number("before", session.last_seq + 1)
    return await session.history(before=min(before, session.last_seq + 1), limit=limit)


async def _list_requests(call: Call) -> RequestList:
    return RequestList(requests=list_open(await call.service.sessions.needing(call.user)))


HANDLERS: Final[dict[str, Handler]] = {
    "get_view": _get_view,
    "get_history": _get_history,
    "list_requests": _list_requests,
}
"""Operation name to handler."""
