"""What a scripted server says of itself."""

from towline_protocol import (
    AREAS,
    CONTRACT_VERSION,
    OPERATIONS,
    AgentOffer,
    Capabilities,
    ClientLimits,
    Health,
    Manifest,
    ManifestRow,
    encode,
    fault_codes,
    openapi_document,
    schema_hash,
)

__all__ = ["describe"]


def describe(name: str) -> object | None:
    """The answer to a call of this area; `None` for a call of another one."""
    match name:
        case "health":
            return Health(status="ok", server_version="scripted", pid=1)
        case "ready":
            return Health(status="ready", server_version="scripted", pid=1)
        case "openapi":
            return encode(openapi_document())
        case "docs":
            return b"<!doctype html><title>The contract</title>"
        case "manifest":
            return _manifest()
        case "capabilities":
            return _capabilities()
        case _:
            return None


def _manifest() -> Manifest:
    rows = tuple(
        ManifestRow(
            name=row.name,
            area=AREAS[row.name],
            method=row.method,
            path=row.path,
            summary=row.summary,
            request=None if row.request is None else row.request.__name__,
            answer=None if row.answer is None else row.answer.__name__,
            status=row.status,
            query=row.query,
            faults=fault_codes(row),
            idempotent=row.idempotent,
            stream=row.stream,
            open=row.open,
            admin=row.admin,
            large=row.large,
            media=row.media,
        )
        for row in OPERATIONS.values()
    )
    return Manifest(contract=CONTRACT_VERSION, schema_sha256=schema_hash(), operations=rows)


def _capabilities() -> Capabilities:
    return Capabilities(
        server_version="scripted",
        contract=CONTRACT_VERSION,
        areas=tuple(dict.fromkeys(AREAS.values())),
        agents=(AgentOffer(name="main", models=("scripted/model",)),),
        modes=("ask", "accept_edits", "auto", "plan"),
        limits=ClientLimits(
            body_bytes=2**20,
            large_body_bytes=2**25,
            prompt_blocks=64,
            prompt_bytes=2**24,
            inbox_prompts=32,
            live_sessions=16,
            session_readers=16,
            timeout_s=86_400,
        ),
    )
