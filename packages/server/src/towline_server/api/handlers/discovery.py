"""What a server says of itself."""

import os
from functools import cache
from importlib.util import find_spec
from typing import Final

from starlette.responses import Response

from towline_agent import MODES
from towline_protocol import (
    AREAS,
    CONTRACT_VERSION,
    AgentOffer,
    Capabilities,
    ClientLimits,
    Health,
    Manifest,
    contract_manifest,
    encode,
    openapi_document,
)
from towline_server.api.deadline import MAX_TIMEOUT_S
from towline_server.api.docs import DOCS_HEADERS, docs_page
from towline_server.api.guard import MAX_BODY, MAX_PROMPT_BODY
from towline_server.api.handlers.call import MAX_BLOCKS, MAX_PROMPT_BYTES, Call, Handler, Service
from towline_server.sessions.agents import AgentSpec
from towline_server.sessions.inbox import MAX_INBOX
from towline_server.stream.hub import MAX_READERS

__all__ = ["HANDLERS"]


async def _health(call: Call) -> Health:
    return _alive(call, "ok")


async def _ready(call: Call) -> Health:
    await call.service.readiness.check()
    return _alive(call, "ready")


def _alive(call: Call, status: str) -> Health:
    return Health(status=status, server_version=call.service.version, pid=os.getpid())


async def _openapi(call: Call) -> Response:
    root = str(call.request.scope.get("root_path") or "/")
    return Response(_document(call.service.access.cookie, root), media_type="application/json")


async def _docs(call: Call) -> Response:
    del call
    return Response(docs_page(), headers=DOCS_HEADERS)


async def _manifest(call: Call) -> Manifest:
    del call
    return _table()


async def _capabilities(call: Call) -> Capabilities:
    service = call.service
    return Capabilities(
        server_version=service.version,
        contract=CONTRACT_VERSION,
        areas=tuple(area for area in dict.fromkeys(AREAS.values()) if _serves(service, area)),
        agents=tuple(_offer(service, spec) for spec in service.agents.specs),
        modes=tuple(MODES),
        limits=ClientLimits(
            body_bytes=MAX_BODY,
            large_body_bytes=MAX_PROMPT_BODY,
            prompt_blocks=MAX_BLOCKS,
            prompt_bytes=MAX_PROMPT_BYTES,
            inbox_prompts=MAX_INBOX,
            live_sessions=service.sessions.max_live,
            session_readers=MAX_READERS,
            timeout_s=MAX_TIMEOUT_S,
        ),
    )


@cache
def _document(cookie: str, root: str) -> bytes:
    return encode(openapi_document(cookie, root=root))


_table = cache(contract_manifest)


def _serves(service: Service, area: str) -> bool:
    """Whether the part is there: not where another program does it, or nobody can."""
    if area == "auth":
        return service.access.own
    if area == "push":
        return find_spec("pywebpush") is not None
    return area != "model" or service.providers is not None


def _offer(service: Service, spec: AgentSpec) -> AgentOffer:
    models = dict.fromkeys((service.agents.default_model, *spec.fallbacks))
    return AgentOffer(name=spec.name, models=tuple(models))


HANDLERS: Final[dict[str, Handler]] = {
    "health": _health,
    "ready": _ready,
    "openapi": _openapi,
    "docs": _docs,
    "manifest": _manifest,
    "capabilities": _capabilities,
}
"""Operation name to handler."""
