"""The operations of the table, each as one function from a call to an answer."""

from typing import Final

from towline_server.api.handlers import (
    answer,
    auth,
    checkpoint,
    client_call,
    discovery,
    file,
    model,
    project,
    push,
    read,
    session,
    talk,
    users,
)
from towline_server.api.handlers.call import Call, Handler, Service, Tagged

__all__ = ["HANDLERS", "Call", "Service", "Tagged"]

HANDLERS: Final[dict[str, Handler]] = {
    **discovery.HANDLERS,
    **auth.HANDLERS,
    **users.HANDLERS,
    **session.HANDLERS,
    **talk.HANDLERS,
    **read.HANDLERS,
    **answer.HANDLERS,
    **client_call.HANDLERS,
    **file.HANDLERS,
    **checkpoint.HANDLERS,
    **model.HANDLERS,
    **project.HANDLERS,
    **push.HANDLERS,
}
"""Operation name to handler; streams stand in `api/stream.py`."""
