"""What a scripted server says of itself."""

from towline_protocol import (
    AREAS,
    CONTRACT_VERSION,
    AgentOffer,
    Capabilities,
    ClientLimits,
    Health,
    PathList,
    StartInfo,
    contract_manifest,
    encode,
    openapi_document,
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
            return contract_manifest()
        case "capabilities":
            return _capabilities()
        case "get_start":
            return StartInfo(
                folder="/home/person",
                roots=("/home/person",),
                model="scripted/model",
                mode="ask",
                suggestions=("/init",),
                commands=(),
            )
        case "list_start_paths":
            return PathList(paths=())
        case _:
            return None


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
