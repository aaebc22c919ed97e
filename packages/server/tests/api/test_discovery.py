"""What a server says of itself, and the document and the page made from the table."""

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import (
    AREAS,
    CONTRACT_VERSION,
    FAULT_CODES,
    OPERATIONS,
    Capabilities,
    Health,
    Manifest,
    Problem,
    fault_codes,
    openapi_document,
    schema_hash,
)
from towline_server.api.guard import MAX_BODY, MAX_PROMPT_BODY
from towline_server.build import BuiltApp
from towline_server.errors import StoreFull
from towline_server.store import meta
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(), root=tmp_path, fallbacks=("b/two",)) as built:
        yield built


@pytest.fixture
def stranger(built: BuiltApp) -> AppClient:
    return AppClient(built, token="")


async def test_the_document_names_the_cookie_of_this_server(
    built: BuiltApp, stranger: AppClient
) -> None:
    reply = await stranger.ask("GET", "/openapi.json")
    assert (reply.status, reply.headers["content-type"]) == (200, "application/json")
    document = msgspec.json.decode(reply.body)
    assert document == msgspec.json.decode(
        msgspec.json.encode(openapi_document(built.access.cookie))
    )


async def test_the_manifest_is_the_table_as_data(stranger: AppClient) -> None:
    manifest = (await stranger.ask("GET", "/api/manifest")).read(Manifest)
    assert (manifest.contract, manifest.schema_sha256) == (CONTRACT_VERSION, schema_hash())
    assert [row.name for row in manifest.operations] == list(OPERATIONS)
    for row in manifest.operations:
        operation = OPERATIONS[row.name]
        assert (row.method, row.path, row.status) == (
            operation.method,
            operation.path,
            operation.status,
        )
        assert (row.area, row.faults) == (AREAS[row.name], fault_codes(operation))


@pytest.mark.rules("C6")
async def test_capabilities_name_what_a_client_may_ask_and_no_secret(
    built: BuiltApp,
) -> None:
    reply = await AppClient(built).ask("GET", "/api/capabilities")
    found = reply.read(Capabilities)
    assert [agent.models[1:] for agent in found.agents] == [("b/two",)]
    assert found.modes == ("ask", "accept_edits", "auto", "plan")
    assert set(found.areas) == set(AREAS.values())
    assert (found.limits.body_bytes, found.limits.large_body_bytes) == (MAX_BODY, MAX_PROMPT_BODY)
    assert (found.limits.session_readers, found.limits.inbox_prompts) == (16, 32)
    assert (found.limits.live_sessions, found.limits.prompt_blocks) == (8, 64)
    assert (MAX_BODY, MAX_PROMPT_BODY) == (2**20, 28 * 2**20)
    assert built.token.encode() not in reply.body
    assert (await AppClient(built, token="").ask("GET", "/api/capabilities")).status == 401


async def test_a_server_is_ready_when_its_sessions_are_up_and_its_store_takes_a_write(
    built: BuiltApp, stranger: AppClient
) -> None:
    assert (await stranger.ask("GET", "/readyz")).read(Health).status == "ready"
    built.sessions.started = False
    reply = await stranger.ask("GET", "/readyz")
    assert (reply.status, reply.read(Problem).code) == (503, "upstream_unavailable")


@pytest.mark.rules("C2.3", "C2.4")
async def test_a_server_that_shuts_down_is_not_ready(built: BuiltApp, stranger: AppClient) -> None:
    built.streams.drain()
    reply = await stranger.ask("GET", "/readyz")
    assert (reply.status, reply.read(Problem).code) == (503, "draining")
    assert int(reply.headers["retry-after"]) >= 1
    assert (await stranger.ask("GET", "/healthz")).status == 200  # it lives


@pytest.mark.rules("C2.3", "C2.4")
async def test_a_server_whose_disk_is_full_is_not_ready_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = FakeClock(held=True)

    def full(*_: object, **__: object) -> None:
        raise StoreFull("The disk is full; make room.")

    store = await open_memory_store(mint=lambda prefix: f"{prefix}_1")
    try:
        async with open_test_app(
            ScriptedProvider(), root=tmp_path, clock=clock, store=store
        ) as built:
            client = AppClient(built, token="")
            assert (await client.ask("GET", "/readyz")).status == 200
            with monkeypatch.context() as broken:
                broken.setattr(meta, "put", full)
                assert (await client.ask("GET", "/readyz")).status == 200  # asked a moment ago
                clock.advance(6)
                reply = await client.ask("GET", "/readyz")
                assert (reply.status, reply.read(Problem).code) == (503, "store_full")
                assert int(reply.headers["retry-after"]) >= 1
            assert (await client.ask("GET", "/readyz")).status == 200
    finally:
        await store.close()


async def test_the_page_tells_every_operation_fault_and_word(stranger: AppClient) -> None:
    reply = await stranger.ask("GET", "/docs")
    page = reply.body.decode()
    for name, row in OPERATIONS.items():
        assert f'<h3 id="{name}">' in page
        assert f"<code>{row.method} {row.path}</code>" in page
    assert all(f'id="fault-{code}"' in page for code in FAULT_CODES)
    targets = set(re.findall(r'href="#([^"]+)"', page))
    assert targets <= set(re.findall(r'id="([^"]+)"', page))


async def test_the_page_runs_nothing_loads_nothing_and_fits_a_phone(stranger: AppClient) -> None:
    reply = await stranger.ask("GET", "/docs")
    page, policy = reply.body.decode(), reply.headers["content-security-policy"]
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert '<meta name="viewport" content="width=device-width">' in page
    assert "<script" not in page
    assert " src=" not in page
    assert "style=" not in page
    assert "<table" not in page  # what is wide would have to be pushed about
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "frame-ancestors 'none'" in policy


@pytest.mark.parametrize("path", ["/readyz", "/openapi.json", "/docs", "/api/manifest"])
async def test_what_is_open_is_so_for_a_look_at_the_head_as_well(
    stranger: AppClient, path: str
) -> None:
    assert (await stranger.ask("HEAD", path)).status == 200
