"""Calling people who do not look: web push, and who looks."""

from towline_protocol.commands.body import Body

__all__ = [
    "NotePresence",
    "PushKeys",
    "PushOffer",
    "PushOutcome",
    "PushSubscription",
    "PushSubscriptionList",
    "SubscribePush",
]


class NotePresence(Body, frozen=True, kw_only=True):
    """Whether a person looks at a client: it counts for 45 s (C5.16)."""

    client: str
    """What tells the client from the user's other ones: up to 64 characters of its own choice."""
    visible: bool = True
    """Whether its screen is seen right now; `false` ends it at once."""


class PushOffer(Body, frozen=True, kw_only=True):
    """What a browser needs to subscribe."""

    key: str
    """The server's public key (VAPID), base64url: `applicationServerKey`."""
    languages: tuple[str, ...]
    """The languages that titles are in."""


class PushKeys(Body, frozen=True, kw_only=True):
    """What a browser gives to encrypt for it alone."""

    p256dh: str
    """Its public key, base64url."""
    auth: str
    """Its secret, base64url."""


class SubscribePush(Body, frozen=True, kw_only=True):
    """A subscription as the browser's `PushSubscription.toJSON()` has it, and a few words."""

    endpoint: str
    """The address at the browser's push service; the same again replaces what is kept of it."""
    keys: PushKeys
    """The browser's keys."""
    language: str = "en"
    """The language of titles; one that there is none of counts as English."""
    name: str = ""
    """What the device calls itself."""


class PushOutcome(Body, frozen=True, kw_only=True):
    """What became of one message to one device."""

    kind: str
    """`permission`, `question`, `turn_failed`, `turn_ended` or `test`."""
    outcome: str
    """`delivered` when the push service took it; `failed`; `gone` when it knows the subscription no
    more, which removed it."""
    status: int | None = None
    """The push service's HTTP status; `None` when there was no answer."""
    message: str = ""
    """Why it failed."""
    session: str | None = None
    """The session it told of."""
    time: str
    """RFC 3339 time."""


class PushSubscription(Body, frozen=True, kw_only=True):
    """One device that is called."""

    id: str
    """Names it in the table's paths."""
    service: str
    """The host of its push service."""
    endpoint_sha256: str
    """The SHA-256 of its endpoint, in hex: how a browser finds its own."""
    language: str
    """The language of titles."""
    name: str
    """What the device calls itself."""
    created: str
    """RFC 3339 time."""
    last: PushOutcome | None = None
    """What became of the last message; `None` before the first one."""


class PushSubscriptionList(Body, frozen=True, kw_only=True):
    """The devices of the caller that are called."""

    subscriptions: tuple[PushSubscription, ...]
    """The oldest first."""
