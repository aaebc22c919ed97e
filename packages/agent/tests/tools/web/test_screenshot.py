"""Pictures of pages."""

import asyncio
import base64
import os
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_agent.errors import ToolDenied, ToolError, ToolInputInvalid
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Look, Tool, ToolOutput
from towline_agent.tools.web.screenshot import MAX_EDGE, find_browser, make_screenshot
from towline_agent.tools.web.testing import FakeSite, answer
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_agent.workspaces.processes import list_processes
from towline_protocol import Image, PageArtifact, block_text

RED = "<body style='margin:0;background:red'>"


@pytest.fixture
async def site() -> AsyncIterator[FakeSite]:
    async with FakeSite() as made:
        yield made


def browser() -> str:
    found = find_browser()
    assert found is not None
    return found


async def call(made: Tool, context: MemoryContext, **arguments: Any) -> ToolOutput:
    return await made.run(context, made.check(msgspec.json.encode(arguments).decode()))


def picture(output: ToolOutput) -> bytes:
    (image,) = [block for block in output.content if isinstance(block, Image)]
    assert image.media_type == "image/png"
    return base64.b64decode(image.data or "")


def size(png: bytes) -> tuple[int, int]:
    width, height = struct.unpack(">II", png[16:24])
    return width, height


def script(folder: Path, text: str) -> str:
    """A program in the browser's place."""
    path = folder / "browser"
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


@pytest.mark.chromium
@pytest.mark.rules("A5.T13", "A5.32")
async def test_a_page_is_seen_and_reaches_nothing_that_was_not_allowed(site: FakeSite) -> None:
    place = f"http://127.0.0.1:{site.port}"
    inner = f"http://localhost:{site.port}/secret"
    site.pages["/"] = answer(
        f"{RED}<link rel=stylesheet href=style.css><iframe src={inner}></iframe><img src={inner}>"
        f"<script>fetch('{inner}')</script>",
        Content_Type="text/html",
    )
    site.pages["/style.css"] = answer("p {}", Content_Type="text/css")
    site.pages["/secret"] = answer("secret")
    context = MemoryContext()
    output = await call(make_screenshot(browser()), context, page=place + "/", width=400, height=300)
    assert size(picture(output)) == (400, 300)
    assert output.artifacts == (PageArtifact(url=place + "/", status=200),)
    paths = [head.split(" ")[1] for head in site.asked]
    assert "/style.css" in paths
    assert "/secret" not in paths
    assert f"localhost:{site.port}" in block_text(output.content)
    (process,) = context.processes  # its start was made durable
    assert not [row for row in list_processes() if row.group == process.group and not row.zombie]


@pytest.mark.chromium
@pytest.mark.rules("A5.T13")
async def test_a_file_of_the_workspace_is_seen_with_what_belongs_to_it(site: FakeSite) -> None:
    leak = f"http://127.0.0.1:{site.port}/leak"
    page = f"<link rel=stylesheet href=../look.css><img src={leak}><iframe src=file:///etc/passwd>"
    shots: list[bytes] = []
    for colour in ("red", "blue"):
        files = {"a/page.html": page, "look.css": f"body {{ background: {colour} }}"}
        context = MemoryContext(MemoryWorkspace(files))
        made = make_screenshot(browser(), public={"127.0.0.1"}.__contains__)
        output = await call(made, context, page="a/page.html", width=300, height=200)
        assert size(picture(output)) == (300, 200)
        shots.append(picture(output))
    assert shots[0] != shots[1]
    assert site.asked == []


@pytest.mark.rules("A5.T13", "A5.30")
async def test_a_page_that_leads_elsewhere_is_not_drawn(site: FakeSite, tmp_path: Path) -> None:
    site.pages["/"] = answer(status="302 Found", Location="http://127.0.0.2/")
    made = make_screenshot(script(tmp_path, "exit 1"), site.client())
    output = await call(made, MemoryContext(), page=f"{site.url}/")
    assert "To go on, read:\nhttp://127.0.0.2/" in block_text(output.content)
    with pytest.raises(ToolDenied):
        site.names["evil.example"] = ["127.0.0.2"]
        await call(made, MemoryContext(), page=f"http://evil.example:{site.port}/")


@pytest.mark.rules("A5.T13", "A5.19")
async def test_a_browser_that_hangs_is_ended_with_all_it_began(tmp_path: Path) -> None:
    context = MemoryContext(MemoryWorkspace({"a.html": RED}))
    made = make_screenshot(script(tmp_path, "sleep 600 & sleep 600"), timeout_s=0.3)
    async with asyncio.timeout(30):
        with pytest.raises(ToolError, match=r"longer than 0\.3 s"):
            await call(made, context, page="a.html")
    (process,) = context.processes
    assert not [row for row in list_processes() if row.group == process.group and not row.zombie]


@pytest.mark.parametrize(
    ("text", "word"),
    [("exit 0", "made no picture"), ("head -c 4000000 /dev/zero > page.png", "make it smaller")],
)
async def test_a_picture_that_is_none_is_told(tmp_path: Path, text: str, word: str) -> None:
    context = MemoryContext(MemoryWorkspace({"a.html": RED}))
    made = make_screenshot(script(tmp_path, text))
    with pytest.raises(ToolError, match=word):
        await call(made, context, page="a.html")
    with pytest.raises(ToolError, match=r"b\.html"):
        await call(made, context, page="b.html")


@pytest.mark.rules("A5.T13", "A5.31")
@pytest.mark.parametrize(
    "page", ["file:///etc/passwd", "data:text/html,x", "/etc/passwd", "a.txt", "javascript:x", ""]
)
def test_what_is_no_page_is_refused(tmp_path: Path, page: str) -> None:
    made = make_screenshot("chromium")
    with pytest.raises(ToolInputInvalid):
        made.check(msgspec.json.encode({"page": page}).decode())
    with pytest.raises(ToolInputInvalid):
        made.check(msgspec.json.encode({"page": "a.html", "width": MAX_EDGE + 1}).decode())


@pytest.mark.rules("A5.T13", "A5.59", "A5.69")
async def test_what_it_would_do_is_judged_by_host_or_by_path(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def look(page: str) -> Look:
        made = make_screenshot("chromium")
        assert made.look is not None
        return await made.look(MemoryContext(), {"page": page})

    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    part = (await look("https://example.com/")).parts[0]
    assert (part.subject, part.kind, part.effect) == ("example.com", "host", "network")
    assert part.caution is None
    assert "localhost:3000" in ((await look("http://localhost:3000/")).parts[0].caution or "")
    part = (await look("./a/page.html")).parts[0]
    assert (part.subject, part.kind, part.effect) == ("a/page.html", "path", "read")
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert "sandbox" in ((await look("https://example.com/")).parts[0].caution or "")


@pytest.mark.rules("A5.T13")
def test_without_a_browser_there_is_no_such_tool(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CHROMIUM", raising=False)
    assert find_browser() is None
    assert "screenshot_page" not in {made.name for made in builtin_tools()}
    mine = script(tmp_path, "exit 0")
    monkeypatch.setenv("CHROMIUM", mine)
    assert find_browser() == mine
    assert "screenshot_page" in {made.name for made in builtin_tools()}


@pytest.mark.rules("A5.T13", "A5.67", "A5.69")
@pytest.mark.parametrize("page", ["link.html", "second.html"])
async def test_a_picture_of_a_secret_by_another_name_is_asked_about(
    tmp_path: Path, page: str
) -> None:
    (tmp_path / ".env").write_text("KEY=hidden")
    (tmp_path / "link.html").symlink_to(".env")
    os.link(tmp_path / ".env", tmp_path / "second.html")
    made = make_screenshot(script(tmp_path, "exit 1"))
    assert made.look is not None
    context = MemoryContext(LocalWorkspace(str(tmp_path)))
    (part,) = (await made.look(context, {"page": page})).parts
    assert "may hold secrets" in (part.caution or "")


@pytest.mark.rules("A5.3", "A5.31", "A5.32")
@pytest.mark.parametrize(
    "page",
    [
        "file:///etc/passwd.html", "FILE:///etc/x.html", "file:x.html", "data:text/html,x",
        "view-source:http://x.test/", "javascript://x.html", "/etc/x.html", "../x.html",
        "a/../../x.html", "http:/x.html", "http://[::ffff:127.0.0.1]/", "http://0x7f000001/",
    ],
)  # fmt: skip
async def test_no_other_kind_of_address_is_drawn_or_asked_about(tmp_path: Path, page: str) -> None:
    made = make_screenshot(script(tmp_path, "exit 1"))
    assert made.look is not None
    context = MemoryContext(LocalWorkspace(str(tmp_path)))
    with pytest.raises(ToolInputInvalid):
        await made.look(context, {"page": page})


@pytest.mark.rules("A5.32", "A5.69")
@pytest.mark.parametrize(
    "page",
    [
        "http://127.0.0.1/", "http://localhost:8080/x", "http://169.254.169.254/latest/meta-data/",
        "http://[::1]/", "http://10.0.0.1/", "http://[fd00:ec2::254]/", "http://100.100.100.200/",
        "http://metadata.google.internal/", "http://0.0.0.0/",
    ],
)  # fmt: skip
async def test_a_private_address_is_asked_about(tmp_path: Path, page: str) -> None:
    made = make_screenshot(script(tmp_path, "exit 1"))
    assert made.look is not None
    context = MemoryContext(LocalWorkspace(str(tmp_path)))
    (part,) = (await made.look(context, {"page": page})).parts
    assert part.caution is not None
    assert "own network" in part.caution or "private" in part.caution
