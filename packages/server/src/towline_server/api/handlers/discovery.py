"""What a server says of itself."""

import os
from typing import Final

from towline_protocol import Health
from towline_server.api.handlers.call import Call, Handler

__all__ = ["HANDLERS"]


async def _health(call: Call) -> Health:
    return Health(status="ok", server_version=call.service.version, pid=os.getpid())


HANDLERS: Final[dict[str, Handler]] = {
    "health": _health,
}
"""Operation name to handler."""
