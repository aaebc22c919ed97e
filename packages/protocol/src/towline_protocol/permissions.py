"""Permission requests: the options a person is offered and the digest that binds an answer."""

from typing import Final

import msgspec

__all__ = ["DENY", "Option", "permission_digest"]

DENY: Final = "deny"
"""The option id that refuses; every other option id allows."""


class Option(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One answer a person may give (A5.56)."""

    id: str
    """`allow_once`, `allow_session`, `allow_always` or `deny`."""
    label: str
    """What a button says."""
    rule: str | None = None
    """The rule that this answer stores; `None` when it stores none."""


def permission_digest(
    *,
    permission: str,
    tool: str,
    arguments: str,
    cwd: str,
    base_hashes: tuple[str, ...] = (),
    options: tuple[str, ...],
) -> str:
    """SHA-256 in hex over exactly what is approved, in the order of A5.62.

    Each part goes in as its length in bytes and its bytes, so that no two requests share a digest
    by moving a character from one part to the next.

    Args:
        permission: The request's id.
        tool: The tool's name.
        arguments: The JSON text exactly as the model proposed it.
        cwd: The folder the call works in.
        base_hashes: Hashes of the files that the preview shows.
        options: The option ids, as offered.
    """
    import hashlib  # with the first request: it brings OpenSSL along

    state = hashlib.sha256()
    for part in (permission, tool, arguments, cwd, *base_hashes, *options):
        raw = part.encode()
        state.update(b"%d:" % len(raw))
        state.update(raw)
    return state.hexdigest()
