"""Pages of other sites (C2.8), and the headers that keep a page in its place."""

import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.datastructures import Headers

from towline_agent.testing import ScriptedProvider
from towline_server.api.cors import Origins
from towline_server.build import BuiltApp
from towline_server.log_format import JsonFormatter
from towline_server.testing import AppClient, open_test_app

APP = "https://app.example.org"
EXPOSED = {"towline-contract", "etag", "retry-after", "x-request-id", "location"}
TRACE = "0af7651916cd43dd8448eb211c80319c"


@asynccontextmanager
async def _open(tmp_path: Path, *origins: str) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(), root=tmp_path, origins=origins) as built:
        yield built


def _cors(headers: dict[str, str]) -> set[str]:
    return {name for name in headers if name.startswith("access-control-")}


@pytest.mark.rules("C2.8")
async def test_without_a_setting_no_other_page_may_read_or_write(tmp_path: Path) -> None:
    async with _open(tmp_path) as built:
        client = AppClient(built)
        reply = await client.ask("GET", "/api/auth/me", headers={"origin": APP})
        assert not _cors(reply.headers)
        asked = {"origin": APP, "access-control-request-method": "POST"}
        reply = await client.ask("OPTIONS", "/api/sessions", headers=asked)
        assert (reply.status, _cors(reply.headers)) == (405, set())
        reply = await client.ask("POST", "/api/auth/pair", headers={"origin": APP})
        assert reply.status == 403


@pytest.mark.rules("C2.8")
async def test_a_named_page_may_read_write_and_see_what_it_needs(tmp_path: Path) -> None:
    async with _open(tmp_path, APP, "capacitor://localhost") as built:
        client = AppClient(built)
        for origin in (APP, "capacitor://localhost"):
            reply = await client.ask("POST", "/api/auth/pair", headers={"origin": origin})
            assert reply.status == 200
            assert reply.headers["access-control-allow-origin"] == origin
            assert reply.headers["access-control-allow-credentials"] == "true"
            assert "origin" in reply.headers["vary"].lower()
            exposed = set(reply.headers["access-control-expose-headers"].split(", "))
            assert exposed == EXPOSED
        refused = await client.ask("GET", "/api/nothing", headers={"origin": APP})
        assert (refused.status, refused.headers["access-control-allow-origin"]) == (404, APP)
        async with client.follow(await client.create(), headers={"origin": APP}) as wire:
            await wire.take(1)
            assert (b"access-control-allow-origin", APP.encode()) in wire.head["headers"]


@pytest.mark.rules("C2.8")
@pytest.mark.parametrize(
    "origin", ["https://app.example.org.evil.example", "http://app.example.org", "null", "*", ""]
)
async def test_a_page_that_is_not_named_gets_nothing(tmp_path: Path, origin: str) -> None:
    async with _open(tmp_path, APP) as built:
        client = AppClient(built)
        reply = await client.ask("GET", "/api/auth/me", headers={"origin": origin})
        assert not _cors(reply.headers)
        assert "origin" in reply.headers["vary"].lower()  # or a cache gives it another's answer
        assert (
            await client.ask("POST", "/api/auth/pair", headers={"origin": origin})
        ).status == 403


@pytest.mark.rules("C2.8")
async def test_a_browser_that_asks_first_is_told_what_is_taken(tmp_path: Path) -> None:
    async with _open(tmp_path, APP) as built:
        nobody = AppClient(built, token="")  # such a question carries no credential
        asked = {"origin": APP, "access-control-request-method": "PATCH"}
        reply = await nobody.ask("OPTIONS", "/api/sessions/ses_1", headers=asked)
        assert (reply.status, reply.body) == (204, b"")
        assert "PATCH" in reply.headers["access-control-allow-methods"].split(", ")
        taken = set(reply.headers["access-control-allow-headers"].split(", "))
        assert {"authorization", "idempotency-key", "if-match", "towline-timeout"} <= taken
        assert reply.headers["towline-contract"] == "1"
        plain = await nobody.ask("OPTIONS", "/api/sessions/ses_1", headers={"origin": APP})
        assert plain.status == 405  # no such question


@pytest.mark.rules("C2.8")
async def test_any_page_may_come_with_a_token_and_none_with_the_cookie(tmp_path: Path) -> None:
    async with _open(tmp_path, "*") as built:
        client = AppClient(built)
        reply = await client.ask("POST", "/api/auth/pair", headers={"origin": APP})
        assert (reply.status, reply.headers["access-control-allow-origin"]) == (200, "*")
        assert "access-control-allow-credentials" not in reply.headers
        page = AppClient(built, token="")
        cookie = {"origin": APP, "cookie": f"{built.access.cookie}={built.token}"}
        assert (await page.ask("POST", "/api/auth/pair", headers=cookie)).status == 403


@pytest.mark.parametrize("path", ["/api/auth/me", "/api/nothing", "/healthz", "/openapi.json"])
async def test_an_answer_of_the_api_can_be_no_page_and_tells_nobody_where_it_was(
    tmp_path: Path, path: str
) -> None:
    async with _open(tmp_path) as built:
        headers = (await AppClient(built).ask("GET", path)).headers
    assert headers["content-security-policy"] == "default-src 'none'; frame-ancestors 'none'"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-content-type-options"] == "nosniff"
    assert "strict-transport-security" not in headers


@pytest.mark.parametrize(("host", "kept"), [("desk.example.org", True), ("localhost:4747", False)])
async def test_https_is_kept_to_behind_https_but_never_for_all_ports_of_this_machine(
    tmp_path: Path, host: str, *, kept: bool
) -> None:
    head: dict[str, Any] = {}

    async def send(message: Any) -> None:
        head.update(message if message["type"] == "http.response.start" else {})

    async def receive() -> Any:
        return {"type": "http.disconnect"}

    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "https",
        "path": "/healthz",
        "query_string": b"",
        "headers": [(b"host", host.encode())],
    }
    async with _open(tmp_path) as built:
        await built.app(scope, receive, send)
    names = {name for name, _ in head["headers"]}
    assert (b"strict-transport-security" in names) is kept


@pytest.mark.rules("C2.8")
@pytest.mark.parametrize(
    ("given", "trace"),
    [
        (f"00-{TRACE}-b7ad6b7169203331-01", TRACE),
        (f"cc-{TRACE}-b7ad6b7169203331-01", TRACE),
        (f"ff-{TRACE}-b7ad6b7169203331-01", None),
        (f"00-{'0' * 32}-b7ad6b7169203331-01", None),
        (f"00-{TRACE}-{'0' * 16}-01", None),
        (f"00-{TRACE.upper()}-b7ad6b7169203331-01", None),
        ("evil\\n", None),
    ],
)
async def test_the_log_line_of_a_request_names_it_its_trace_and_its_session_and_no_secret(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, given: str, trace: str | None
) -> None:
    caplog.set_level(logging.DEBUG, "towline.server.http")
    async with _open(tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        headers = {"traceparent": given, "x-request-id": "mine-1"}
        await client.ask("GET", f"/api/sessions/{session}?code=hidden", headers=headers)
    record = next(r for r in caplog.records if "mine-1" in r.getMessage())
    line = JsonFormatter().format(record)
    found = msgspec.json.decode(line)
    assert (found["request_id"], found.get("trace")) == ("mine-1", trace)
    assert (found["session"], found["status"], found["method"]) == (session, 200, "GET")
    assert found["path"] == f"/api/sessions/{session}"
    assert "hidden" not in line
    assert built.token not in line


@pytest.mark.rules("C2.8")
@pytest.mark.parametrize(
    ("scheme", "origin", "may"),
    [
        ("https", "https://desk.example.org", True),
        ("http", "http://desk.example.org", True),
        ("http", "https://desk.example.org", True),  # its proxy did not say
        ("https", "http://desk.example.org", False),  # made by somebody on the way
        ("http", "ftp://desk.example.org", False),
        ("http", "null", False),
    ],
)
def test_this_server_s_own_page_comes_by_its_own_scheme(
    scheme: str, origin: str, *, may: bool
) -> None:
    headers = Headers({"host": "desk.example.org", "origin": origin})
    assert Origins().may_write(headers, scheme) is may


@pytest.mark.rules("C2.8")
@pytest.mark.parametrize(
    "host",
    ["127.0.0.1:99@evil.example", "localhost:80:evil", "[::1]evil.example", "[::1", "::1", ""],
)
async def test_a_host_with_more_than_a_name_and_a_port_is_none_of_this_server(
    tmp_path: Path, host: str
) -> None:
    async with _open(tmp_path) as built:
        reply = await AppClient(built).ask("GET", "/healthz", headers={"host": host})
        assert reply.status == 403
