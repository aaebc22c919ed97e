"""What a server says of itself."""

from towline_protocol.commands.body import Body

__all__ = ["AgentOffer", "Capabilities", "ClientLimits", "Health", "Manifest", "ManifestRow"]


class Health(Body, frozen=True, kw_only=True):
    """The server lives."""

    status: str
    """`ok`; from `ready`, `ready`."""
    server_version: str
    """Its version."""
    pid: int
    """Its process id."""


class ManifestRow(Body, frozen=True, kw_only=True):
    """One operation of the contract."""

    name: str
    """What the client's call is named."""
    area: str
    """The part of the table that it belongs to."""
    method: str
    """The HTTP method."""
    path: str
    """The path, parameters in braces."""
    summary: str
    """What it does, in one sentence."""
    request: str | None = None
    """The schema of its body in `/openapi.json`; `None` for none."""
    answer: str | None = None
    """The schema of its answer there; `None` for none, for a stream and for `media`."""
    status: int
    """The status of success."""
    query: tuple[str, ...] = ()
    """The query parameters that it reads."""
    faults: tuple[str, ...] = ()
    """Every fault code that it may answer."""
    idempotent: bool = False
    """Whether it takes an `Idempotency-Key`."""
    stream: bool = False
    """Whether its answer is an event stream."""
    open: bool = False
    """Whether it answers without a credential."""
    admin: bool = False
    """Whether only an admin may call it."""
    large: bool = False
    """Whether its body may be as large as what a person sends."""
    media: str | None = None
    """The content type of an answer that no schema describes."""


class Manifest(Body, frozen=True, kw_only=True):
    """The contract as data: what this server can be asked."""

    contract: str
    """The contract's major version, as in the header `towline-contract`."""
    schema_sha256: str
    """The SHA-256 of the OpenAPI document, in hex: another one means another contract."""
    operations: tuple[ManifestRow, ...]
    """Every operation."""


class AgentOffer(Body, frozen=True, kw_only=True):
    """An agent that a session can have."""

    name: str
    """Its name."""
    models: tuple[str, ...]
    """`provider/model`: the one of a session that names none, then those that stand in for it."""


class ClientLimits(Body, frozen=True, kw_only=True):
    """Bounds that a client must keep to (C6)."""

    body_bytes: int
    """Bytes of an ordinary body."""
    large_body_bytes: int
    """Bytes of a body that carries what a person sends."""
    prompt_blocks: int
    """Blocks of a prompt."""
    prompt_bytes: int
    """Bytes of a prompt's blocks as JSON."""
    inbox_prompts: int
    """Prompts that may wait in a session."""
    live_sessions: int
    """Sessions of a user that may run, wait for a person or be read at once."""
    session_readers: int
    """Readers of one session."""
    timeout_s: int
    """The most seconds that `towline-timeout` takes."""


class Capabilities(Body, frozen=True, kw_only=True):
    """What this server offers a client."""

    server_version: str
    """Its version."""
    contract: str
    """The contract's major version."""
    areas: tuple[str, ...]
    """The parts of the contract that are served. `auth` is missing where another program says who
    is who, `model` where no keys are kept, and `push` where its library is not installed; `me`,
    `get_usage` and `note_presence` are there all the same."""
    agents: tuple[AgentOffer, ...]
    """The agents; the first one is that of a session that names none."""
    modes: tuple[str, ...]
    """The modes that a session can have."""
    limits: ClientLimits
    """What a client must keep to."""
