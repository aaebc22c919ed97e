"""Calling people who do not look."""

from typing import Final

from towline_protocol.commands.push import (
    NotePresence,
    PushOffer,
    PushOutcome,
    PushSubscription,
    PushSubscriptionList,
    SubscribePush,
)
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="get_push_key",
        method="GET",
        path="/api/push/key",
        summary="Give the key that a browser subscribes with.",
        answer=PushOffer,
        faults=("capability_unavailable",),
    ),
    Operation(
        name="list_push_subscriptions",
        method="GET",
        path="/api/push/subscriptions",
        summary="List the caller's devices that are called, and what became of the last message.",
        answer=PushSubscriptionList,
    ),
    Operation(
        name="subscribe_push",
        method="POST",
        path="/api/push/subscriptions",
        summary="Call this browser from now on when nobody looks; the same endpoint is replaced.",
        request=SubscribePush,
        answer=PushSubscription,
        status=201,
        faults=("capability_unavailable", "rejected"),
    ),
    Operation(
        name="unsubscribe_push",
        method="DELETE",
        path="/api/push/subscriptions/{subscription}",
        summary="Call a device no more.",
        status=204,
        faults=("not_found",),
    ),
    Operation(
        name="test_push",
        method="POST",
        path="/api/push/subscriptions/{subscription}/test",
        summary="Send a device a message now, and say what became of it.",
        answer=PushOutcome,
        faults=("not_found", "capability_unavailable"),
    ),
    Operation(
        name="note_presence",
        method="POST",
        path="/api/presence",
        summary="Say whether a person looks at this client; repeat it every 20 s while one does.",
        request=NotePresence,
        status=204,
    ),
)
"""The rows of this part of the table."""
