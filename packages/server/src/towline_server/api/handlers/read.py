"""What a session looks like."""

from typing import Final

from towline_protocol import ViewAnswer
from towline_server.api.handlers.call import Call, Handler

__all__ = ["HANDLERS"]


async def _get_view(call: Call) -> ViewAnswer:
    session = await call.service.sessions.get(call.user, call.session)
    view = session.view()
    return ViewAnswer(log=call.service.log, seq=view.seq, view=view)


HANDLERS: Final[dict[str, Handler]] = {
    "get_view": _get_view,
}
"""Operation name to handler."""
