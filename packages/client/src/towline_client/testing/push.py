"""What a scripted server answers to calls about push."""

from typing import Any, Final

from towline_protocol import PushOffer, PushOutcome, PushSubscription, PushSubscriptionList

__all__ = ["PUSH_ANSWERS"]

_TIME: Final = "2026-01-31T09:05:00.250Z"
_PHONE: Final = PushSubscription(
    id="sub_1",
    service="push.example.org",
    endpoint_sha256="0" * 64,
    language="en",
    name="phone",
    created=_TIME,
)

PUSH_ANSWERS: Final[dict[str, Any]] = {
    "get_push_key": PushOffer(key="BPublicKey", languages=("en", "zh")),
    "list_push_subscriptions": PushSubscriptionList(subscriptions=(_PHONE,)),
    "subscribe_push": _PHONE,
    "unsubscribe_push": None,
    "test_push": PushOutcome(kind="test", outcome="delivered", status=201, time=_TIME),
    "note_presence": None,
}
"""Operation name to its answer; `None` for an empty one."""
