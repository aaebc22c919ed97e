"""What a scripted server answers to calls about users and tokens."""

from typing import Any, Final

from towline_protocol import (
    Claimed,
    Identity,
    LoggedIn,
    NewToken,
    Pairing,
    TokenInfo,
    TokenList,
    UserInfo,
    UserList,
)

__all__ = ["ACCOUNT_ANSWERS"]

_TIME: Final = "2026-01-31T09:05:00.250Z"
_USER: Final = UserInfo(name="ann", created=_TIME)
_TOKEN: Final = TokenInfo(
    id="tok_1", name="laptop", kind="device", created=_TIME, last_used=_TIME, current=True
)

ACCOUNT_ANSWERS: Final[dict[str, Any]] = {
    "login": LoggedIn(token="a token", user="me", expires_at=_TIME),  # noqa: S106 - not a real one
    "claim": Claimed(token="a token", user="me"),  # noqa: S106 - as above
    "pair": Pairing(code="ABCD1234", url="http://here/#ABCD1234", expires_at=_TIME),
    "me": Identity(user="me", server_name="scripted"),
    "logout": None,
    "list_tokens": TokenList(tokens=(_TOKEN,)),
    "create_token": NewToken(id="tok_2", token="another token", name="bot"),  # noqa: S106 - as above
    "revoke_token": None,
    "list_users": UserList(users=(_USER,)),
    "add_user": _USER,
    "remove_user": None,
    "change_password": None,
}
"""Operation name to its answer; `None` for an empty one."""
