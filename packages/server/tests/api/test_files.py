"""Files over HTTP: in, out, and only to whom they belong (C2.9, C6)."""

import asyncio
import hashlib
from collections.abc import AsyncGenerator, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import CONTRACT_HEADER, FileInfo, Problem
from towline_server.build import BuiltApp
from towline_server.errors import StoreFull
from towline_server.sessions.bulk import MAX_FILE
from towline_server.sessions.files import Files
from towline_server.store.records import Append
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 10
HASH = hashlib.sha256(PNG).hexdigest()


class Disk:
    """Refuses every commit while it is full."""

    def __init__(self) -> None:
        self.full = False

    def on_commit(self, phase: str, appends: tuple[Append, ...]) -> None:
        del appends
        if self.full and phase == "before":
            raise StoreFull("The disk is full. Make room.", retry_after_s=30.0)


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.fixture
async def store(disk: Disk) -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now, on_commit=disk.on_commit)
    yield store
    await store.close()


@pytest.fixture
async def built(tmp_path: Path, store: SqliteStore) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        yield built


@pytest.fixture
def client(built: BuiltApp) -> AppClient:
    return AppClient(built)


async def _upload(client: AppClient, body: bytes, name: str = "", kind: str = "a/b") -> FileInfo:
    path = f"/api/files?name={name}" if name else "/api/files"
    reply = await client.ask("POST", path, body, headers={"content-type": kind})
    assert reply.status == 201, reply.body
    return reply.read(FileInfo)


async def _is_empty(store: SqliteStore) -> bool:
    counts = await store.query(
        lambda c: c.execute(
            "SELECT (SELECT count(*) FROM files) + (SELECT count(*) FROM file_pieces)"
        ).fetchone()[0]
    )
    return counts == 0


def _problem(reply: Reply, status: int, code: str) -> Problem:
    problem = reply.read(Problem)
    assert (reply.status, problem.code) == (status, code)
    return problem


@pytest.mark.rules("C1.10", "C2.1")
async def test_what_is_uploaded_can_be_read_again(client: AppClient) -> None:
    info = await _upload(client, PNG, "a%20picture.png", "text/html")
    assert info == FileInfo(file=HASH, media_type="image/png", size=len(PNG), name="a picture.png")
    reply = await client.ask("GET", f"/api/files/{HASH}")
    assert (reply.status, reply.body) == (200, PNG)
    assert reply.headers["content-type"] == "image/png"
    assert reply.headers["content-length"] == str(len(PNG))
    assert reply.headers["content-disposition"] == "inline; filename*=UTF-8''a%20picture.png"
    assert reply.headers["etag"] == f'"{HASH}"'
    assert "immutable" in reply.headers["cache-control"]
    assert reply.headers["x-content-type-options"] == "nosniff"
    assert "sandbox" in reply.headers["content-security-policy"]
    assert reply.headers[CONTRACT_HEADER] == "1"
    head = await client.ask("HEAD", f"/api/files/{HASH}")
    assert (head.status, head.body) == (200, b"")
    for name in ("etag", "content-length", "content-type", "content-disposition"):
        assert head.headers[name] == reply.headers[name]
    tagged = {"if-none-match": f'W/"{HASH}"'}
    kept = await client.ask("GET", f"/api/files/{HASH}", headers=tagged)
    assert (kept.status, kept.body) == (304, b"")


@pytest.mark.parametrize(
    ("body", "kind", "shown"),
    [
        (b"<html><script>alert(1)</script>", "text/plain; charset=utf-8", "inline"),
        (b"<svg onload='alert(1)'/>", "text/plain; charset=utf-8", "inline"),
        (b"%PDF-1.7", "application/pdf", "attachment"),
        (b"MZ\x00\x01", "application/octet-stream", "attachment"),
    ],
)
async def test_what_a_client_claims_is_not_believed(
    client: AppClient, body: bytes, kind: str, shown: str
) -> None:
    info = await _upload(client, body, "nice.png", "image/png")
    reply = await client.ask("GET", f"/api/files/{info.file}")
    assert reply.headers["content-type"] == kind
    assert reply.headers["content-disposition"].startswith(f"{shown};")


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("..%2F..%2Fetc%2Fpasswd", ".._.._etc_passwd"),
        ("a%0D%0Ab%01", "ab"),
        ("%E4%BD%A0", "\u4f60"),
    ],
)
async def test_a_name_holds_no_folder_and_nothing_unseen(
    client: AppClient, given: str, kept: str
) -> None:
    info = await _upload(client, PNG, given)
    assert info.name == kept
    reply = await client.ask("GET", f"/api/files/{info.file}")
    assert "\n" not in reply.headers["content-disposition"]


@pytest.mark.rules("C2.3", "C6")
async def test_a_file_that_is_too_large_is_refused_however_it_comes(
    client: AppClient, store: SqliteStore
) -> None:
    piece = b"x" * (MAX_FILE // 4)
    told = {"content-length": str(MAX_FILE + 1)}
    _problem(await client.ask("POST", "/api/files", b"x", headers=told), 413, "payload_too_large")
    reply = await client.ask("POST", "/api/files", [piece] * 4 + [b"x"])
    assert str(MAX_FILE) in _problem(reply, 413, "payload_too_large").detail
    assert await _is_empty(store)
    _problem(await client.ask("POST", "/api/files", b""), 400, "invalid_request")
    reply = await client.ask("POST", f"/api/files?name={'n' * 256}", PNG)
    _problem(reply, 400, "invalid_request")
    assert await _is_empty(store)


@pytest.mark.rules("C2.9")
@pytest.mark.parametrize("file", ["0" * 64, "nothing", "%2e%2e", "a" * 5000])
async def test_a_file_that_is_not_there_is_not_found(client: AppClient, file: str) -> None:
    for method in ("GET", "HEAD"):
        reply = await client.ask(method, f"/api/files/{file}")
        assert reply.status == 404
    _problem(await client.ask("GET", f"/api/files/{file}"), 404, "not_found")


@pytest.mark.rules("C2.9")
async def test_another_user_s_file_is_not_found_whatever_is_known_of_it(
    client: AppClient, store: SqliteStore
) -> None:
    theirs = await Files(store, lambda: 0).add("somebody", PNG, name="secret.png")
    tagged = {"if-none-match": f'"{theirs.file}"'}
    reply = await client.ask("GET", f"/api/files/{theirs.file}", headers=tagged)
    assert b"secret" not in reply.body
    _problem(reply, 404, "not_found")
    await _upload(client, PNG, "mine.png")
    reply = await client.ask("GET", f"/api/files/{theirs.file}")
    assert "mine.png" in reply.headers["content-disposition"]


async def test_a_client_that_is_gone_in_the_middle_leaves_nothing(
    built: BuiltApp, store: SqliteStore
) -> None:
    came: list[MutableMapping[str, Any]] = [
        {"type": "http.request", "body": b"x" * (3 * 1024 * 1024), "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> MutableMapping[str, Any]:
        return came.pop(0)

    async def send(message: MutableMapping[str, Any]) -> None:
        del message

    scope: dict[str, Any] = {
        "type": "http",
        "method": "POST",
        "path": "/api/files",
        "raw_path": b"/api/files",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1"), (b"authorization", b"Bearer " + built.token.encode())],
        "scheme": "http",
        "client": ("127.0.0.1", 1),
        "server": ("127.0.0.1", 80),
        "root_path": "",
        "http_version": "1.1",
        "state": {},
    }
    async with asyncio.timeout(20):
        await built.app(scope, receive, send)
    assert came == []
    assert await _is_empty(store)


@pytest.mark.rules("C2.4")
async def test_a_full_disk_is_told_and_the_same_upload_works_with_room(
    client: AppClient, disk: Disk, store: SqliteStore
) -> None:
    disk.full = True
    reply = await client.ask("POST", "/api/files", PNG)
    problem = _problem(reply, 503, "store_full")
    assert (problem.scope, reply.headers["retry-after"]) == ("store", "30")
    disk.full = False
    assert await _is_empty(store)
    assert (await _upload(client, PNG)).file == HASH
