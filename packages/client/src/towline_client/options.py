"""What every typed call takes beside its own arguments."""

import math
from typing import Final, TypedDict

from towline_protocol import Operation, UsageError, takes_match

__all__ = ["CallOptions", "check_options"]


class CallOptions(TypedDict, total=False):
    """Options of one call, given by name: `client.me(timeout_s=5)`. All may be left out.

    An option that the operation does not take raises `UsageError` before anything is sent.
    """

    timeout_s: float
    """Seconds for the whole call, all its tries together. Every call takes it. Left out: 30 s for
    each try; what is said in a session under a key is tried for 2 minutes (C4.9)."""
    if_match: str
    """The tag that must still count (C2.6): `client.life.read` gives it. Only where the contract
    has a check, which is `client.life.update` so far."""
    key: str
    """The `Idempotency-Key` (C2.5): the same key with the same arguments again is done once and
    answered the same, for 24 hours. Left out, one is made. Only operations that the contract marks
    take one; what merely reads takes none."""


_NAMES: Final = CallOptions.__annotations__.keys()
_MOST_CHARS: Final = 200  # the server refuses longer keys


def check_options(operation: Operation, options: CallOptions) -> None:
    """Hold options against the row of the contract table.

    Raises:
        UsageError: One is unknown, is none for this operation, or cannot be used.
    """
    for name in options:
        if name not in _NAMES:
            taken = ", ".join(_names_of(operation))
            raise UsageError(f"{operation.name!r} has no option {name!r}; it takes: {taken}.")
    _check_timeout(options.get("timeout_s"))
    if "key" in options and not operation.idempotent:
        raise UsageError(
            f"{operation.name!r} takes no key; leave it out, the contract marks no key for it."
        )
    if "if_match" in options and not takes_match(operation):
        raise UsageError(
            f"{operation.name!r} takes no if_match (got {options['if_match']!r}); leave it out, "
            "the contract has no check for it."
        )
    _check_header("key", options.get("key"))
    _check_header("if_match", options.get("if_match"))


def _names_of(operation: Operation) -> list[str]:
    """The options that an operation takes."""
    left_out = {"key"} if not operation.idempotent else set[str]()
    if not takes_match(operation):
        left_out.add("if_match")
    return [name for name in _NAMES if name not in left_out]


def _check_timeout(timeout_s: object) -> None:
    if timeout_s is None:
        return
    if not isinstance(timeout_s, (int, float)) or not 0 < timeout_s < math.inf:
        raise UsageError(f"timeout_s={timeout_s!r} is no number of seconds; give one above 0.")


def _check_header(name: str, value: object) -> None:
    if value is None:
        return
    if not isinstance(value, str) or not 0 < len(value) <= _MOST_CHARS or not _is_plain(value):
        raise UsageError(
            f"{name}={value!r} cannot be sent; give 1 to {_MOST_CHARS} printable ASCII characters."
        )


def _is_plain(value: str) -> bool:
    return value.isascii() and value.isprintable()
