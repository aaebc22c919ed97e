"""What a server says of itself."""

from typing import Final

from towline_protocol.commands.discovery import Health
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="health",
        method="GET",
        path="/healthz",
        summary="Say that the server lives.",
        answer=Health,
        open=True,
    ),
)
"""The rows of this part of the table."""
