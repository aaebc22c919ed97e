"""What a row of the contract table says."""

import msgspec

__all__ = ["Operation"]


class Operation(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table."""

    name: str
    """What the client's call is named."""
    method: str
    """The HTTP method."""
    path: str
    """The path, parameters in braces."""
    summary: str
    """One sentence for the reference."""
    request: type[msgspec.Struct] | None = None
    """The body; `None` for none."""
    answer: type[msgspec.Struct] | None = None
    """The answer's body; `None` for none or for a stream."""
    status: int = 200
    """The status of success."""
    query: tuple[str, ...] = ()
    """Query parameters that it reads; each is a row of `QUERIES`."""
    faults: tuple[str, ...] = ()
    """Codes it may answer beside those that any operation may."""
    idempotent: bool = False
    """Whether it takes an `Idempotency-Key` (C2.5)."""
    stream: bool = False
    """Whether the answer is an event stream (C3)."""
    open: bool = False
    """Whether it answers without a credential."""
    admin: bool = False
    """Whether only an admin may call it."""
    large: bool = False
    """Whether its body may be as large as what a person sends (C6)."""
    media: str | None = None
    """The content type of an answer that is not JSON, such as `application/octet-stream`."""
