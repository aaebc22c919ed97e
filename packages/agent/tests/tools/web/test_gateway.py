"""What a browser that takes a picture can reach."""

import asyncio
import os
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from towline_agent.tools.web.address import is_public
from towline_agent.tools.web.gateway import PAGE_HOST, Gateway, serve_files
from towline_agent.tools.web.testing import FakeSite, answer
from towline_agent.tools.web.url import read_url
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace

FILES = {
    "page.html": "<h1>Hi", "a/style.css": "p {}", ".env": "KEY=1", "notes.txt": "text",
    ".git/page.html": "no", "script.py": "x = 1", "a b.svg": "<svg/>",
}  # fmt: skip


@pytest.fixture
async def site() -> AsyncIterator[FakeSite]:
    async with FakeSite() as made:
        made.pages["/"] = answer("mine")
        made.pages["/secret"] = answer("secret")
        yield made


async def ask(gateway: Gateway, line: str, *, more: bytes = b"") -> str:
    """What comes back for a request line."""
    async with gateway:
        reader, writer = await asyncio.open_connection("127.0.0.1", gateway.port)
        writer.write(f"{line} HTTP/1.1\r\nHost: x\r\nProxy-Connection: y\r\n\r\n".encode() + more)
        async with asyncio.timeout(10):
            told = await (reader.read() if not more else reader.read(65_536))
            if more:
                told += await reader.read(65_536)
        writer.close()
    return told.decode()


def web(site: FakeSite) -> Gateway:
    return Gateway(read_url(f"http://127.0.0.1:{site.port}/"), None, is_public)


@pytest.mark.rules("A5.T13", "A5.32")
async def test_the_place_that_was_allowed_is_reached(site: FakeSite) -> None:
    told = await ask(web(site), f"GET http://127.0.0.1:{site.port}/?a=b")
    assert told.startswith("HTTP/1.1 404")  # there is no page of that query
    told = await ask(web(site), f"GET http://127.0.0.1:{site.port}/")
    assert told.endswith("mine")
    assert "proxy-connection" not in site.asked[-1].lower()
    assert "Connection: close" in site.asked[-1]
    tunnel = await ask(
        web(site), f"CONNECT 127.0.0.1:{site.port}", more=b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
    )
    assert tunnel.startswith("HTTP/1.1 200 Connection established")
    assert "mine" in tunnel


@pytest.mark.wide
@pytest.mark.rules("A5.T13", "A5.32")
@pytest.mark.parametrize(
    "place",
    [
        "localhost:{port}", "127.0.0.2:{port}", "0.0.0.0:{port}", "[::1]:{port}", "127.0.0.1:1",
        "[::ffff:127.0.0.1]:{port}", "2130706433:{port}", "169.254.169.254:80", "10.0.0.1:80",
        "user@127.0.0.1:{port}", "127.1:{port}", "LOCALHOST.:{port}", "workspace.invalid:443",
    ],
)  # fmt: skip
@pytest.mark.parametrize("method", ["CONNECT", "GET"])
async def test_no_other_place_of_ones_own_network_is_reached(
    site: FakeSite, place: str, method: str
) -> None:
    where = place.format(port=site.port)
    line = f"CONNECT {where}" if method == "CONNECT" else f"GET http://{where}/secret"
    told = await ask(web(site), line)
    assert told.startswith(("HTTP/1.1 403", "HTTP/1.1 404")) or not told
    assert site.asked == []


@pytest.mark.rules("A5.T13", "A5.2")
async def test_a_page_of_the_workspace_reaches_its_own_files_and_nothing_else(
    site: FakeSite,
) -> None:
    def gateway() -> Gateway:
        workspace = MemoryWorkspace(FILES)
        return Gateway(None, serve_files(workspace), {"127.0.0.1"}.__contains__)

    for path, text in (("page.html", "<h1>Hi"), ("a/style.css", "p {}"), ("a%20b.svg", "<svg/>")):
        assert (await ask(gateway(), f"GET http://{PAGE_HOST}/{path}")).endswith(text)
    for path in (
        ".env", "notes.txt", ".git/page.html", "script.py", "../page.html", "/etc/passwd", "absent.html",
        "a/../../x.html", "%2e%2e/page.html", "%2fetc/hosts.html", "", "a", "page.html%00.txt",
    ):  # fmt: skip
        assert (await ask(gateway(), f"GET http://{PAGE_HOST}/{path}")).startswith("HTTP/1.1 404")
    assert (await ask(gateway(), f"POST http://{PAGE_HOST}/page.html")).startswith("HTTP/1.1 404")
    for line in (f"GET http://127.0.0.1:{site.port}/", f"CONNECT 127.0.0.1:{site.port}"):
        assert (await ask(gateway(), line)).startswith("HTTP/1.1 403")
    assert site.asked == []


@pytest.mark.parametrize("line", ["GET", "", "GET /", "GET ftp://x/", "CONNECT x", "A B C D"])
async def test_what_is_no_request_is_dropped(site: FakeSite, line: str) -> None:
    told = await ask(web(site), line)
    assert told.startswith("HTTP/1.1 403") or not told
    assert site.asked == []


@pytest.mark.rules("A5.T13", "A5.67")
@pytest.mark.parametrize(
    "name", ["credentials.json", "link.json", "second.html", "client_secret_1.json"]
)
async def test_a_page_of_the_folder_is_served_no_secret_by_any_name(
    tmp_path: Path, name: str
) -> None:
    (tmp_path / ".env").write_text("KEY=hidden")
    (tmp_path / "credentials.json").write_text("hidden")
    (tmp_path / "client_secret_1.json").write_text("hidden")
    (tmp_path / "link.json").symlink_to(".env")
    os.link(tmp_path / ".env", tmp_path / "second.html")
    (tmp_path / "data.json").write_text("open")
    workspace = LocalWorkspace(str(tmp_path))
    told = await ask(
        Gateway(None, serve_files(workspace, "page.html"), is_public),
        f"GET http://{PAGE_HOST}/{name}",
    )
    assert told.startswith("HTTP/1.1 404")
    assert "hidden" not in told
    told = await ask(
        Gateway(None, serve_files(workspace, "page.html"), is_public),
        f"GET http://{PAGE_HOST}/data.json",
    )
    assert told.endswith("open")
