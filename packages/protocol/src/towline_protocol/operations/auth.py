"""Who comes in."""

from typing import Final

from towline_protocol.commands.auth import Claim, Claimed, Identity, Pairing
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="claim",
        method="POST",
        path="/api/auth/claim",
        summary="Turn a one-time code into a token.",
        request=Claim,
        answer=Claimed,
        faults=("unauthorized", "rate_limited"),
        open=True,
    ),
    Operation(
        name="pair",
        method="POST",
        path="/api/auth/pair",
        summary="Make a one-time code for another device.",
        answer=Pairing,
    ),
    Operation(
        name="me",
        method="GET",
        path="/api/auth/me",
        summary="Say who the caller is.",
        answer=Identity,
    ),
    Operation(
        name="logout",
        method="POST",
        path="/api/auth/logout",
        summary="Revoke the token the call came with.",
        status=204,
    ),
)
"""The rows of this part of the table."""
