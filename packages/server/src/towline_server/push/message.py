"""What a device is told: a title from a fixed list, where to look, and no word of the session.

The shape is the declarative one (`web_push: 8030`), which some browsers show by themselves; the
page's worker reads the same.
"""

from typing import Final, NamedTuple

import msgspec

__all__ = ["LANGUAGES", "TEXT_CHARS", "TURN_TTL_S", "Call", "make_payload", "tag_of", "title_of"]

LANGUAGES: Final = ("en", "zh")
"""The languages of titles; the first one stands in for others."""
TURN_TTL_S: Final = 24 * 3600
"""Seconds after which news of a turn that ended is old."""
TEXT_CHARS: Final = 200
"""Characters of a session's own words in a message, where the settings let any in: a notification
shows no more, and a message holds 4 KB."""

_TITLES: Final = {
    "permission": ("The agent asks for permission", "智能体请求许可"),
    "question": ("The agent has a question", "智能体有一个问题"),
    "turn_failed": ("The agent could not go on", "智能体未能继续"),
    "turn_ended": ("The agent is done", "智能体已完成"),
    "test": ("Notifications work", "通知可以正常使用"),
}
_ALLOW: Final = ("Allow…", "允许…")
_DENY: Final = ("Deny…", "拒绝…")


class Call(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that a user is called for."""

    user: str
    """Who is called."""
    kind: str
    """`permission`, `question`, `turn_failed`, `turn_ended` or `test`."""
    session: str | None = None
    """Where to look; `None` for a test."""
    about: str = ""
    """The request or the turn that it is about: a user is called once for it."""
    turn: str | None = None
    """The turn."""
    request: str | None = None
    """The permission or the question that waits."""
    status: str = ""
    """`waiting`, `failed`, `completed` or `cancelled`."""
    reason: str | None = None
    """A fault's code or a stop reason."""
    last_seq: int = 0
    """The last event of the session."""
    time: str = ""
    """RFC 3339 time."""
    text: str | None = None
    """Words of the session, where the settings let them out."""

    @property
    def place(self) -> str:
        """The fragment of the page that it leads to."""
        if self.session is None:
            return "#/settings/notifications"
        return f"#/s/{self.session}" + (f"?request={self.request}" if self.request else "")


class _Action(NamedTuple):
    name: str
    titles: tuple[str, ...]


_ACTIONS: Final = (_Action("allow", _ALLOW), _Action("deny", _DENY))


def title_of(kind: str, language: str) -> str:
    """The title of a kind of message."""
    return _TITLES[kind][_column(language)]


def tag_of(call: Call) -> str:
    """What a later message of the same session and kind replaces on a screen."""
    return f"{call.session or 'server'}:{call.kind}"


def make_payload(call: Call, *, language: str, origin: str) -> bytes:
    """A message as the device decrypts it.

    Args:
        call: What it is about.
        language: The device's language.
        origin: The origin of its page, such as `https://desk.example.org`.
    """
    title = title_of(call.kind, language)
    navigate = f"{origin}/{call.place}"
    notification = {
        "title": title,
        "body": call.text,
        "lang": LANGUAGES[_column(language)],
        "navigate": navigate,
        "tag": tag_of(call),
        "actions": [
            {"action": name, "title": titles[_column(language)], "navigate": navigate}
            for name, titles in (_ACTIONS if call.kind == "permission" else ())
        ],
    }
    told = {
        "session": call.session,
        "user": call.user,
        "turn": call.turn,
        "status": call.status,
        "reason": call.reason,
        "last_seq": call.last_seq,
        "time": call.time,
        "kind": call.kind,
        "request": call.request,
        "title": title,
    }
    shown = {key: value for key, value in notification.items() if value}
    return msgspec.json.encode(
        {"web_push": 8030, "notification": shown}
        | {key: value for key, value in told.items() if value is not None}
    )


def _column(language: str) -> int:
    base = language.partition("-")[0].lower()
    return LANGUAGES.index(base) if base in LANGUAGES else 0
