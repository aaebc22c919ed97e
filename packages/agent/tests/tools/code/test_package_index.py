"""What a package index says, and which one is asked."""

import asyncio
import base64
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.providers.http import HttpTransport
from towline_agent.providers.transport import HttpAnswer, HttpCall, TransportFailed
from towline_agent.tools.code import index_url
from towline_agent.tools.code.index_url import (
    find_index_url,
    read_client_default,
    read_pip_config,
)
from towline_agent.tools.code.package_index import PackageIndex, check_package_name, read_project
from towline_protocol import SseEvent

URL = "https://index.test/simple"
JSON = "application/vnd.pypi.simple.v1+json"


class FakeTransport:
    """Answers by address; remembers what was asked."""

    def __init__(self, answers: dict[str, HttpAnswer]) -> None:
        self.answers = answers
        self.calls: list[HttpCall] = []

    async def json(self, call: HttpCall) -> HttpAnswer:
        self.calls.append(call)
        if call.url not in self.answers:
            raise TransportFailed("dns")
        return self.answers[call.url]

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        raise AssertionError(call)

    async def aclose(self) -> None:
        pass


def _file(name: str, **more: object) -> dict[str, object]:
    return {"filename": name, "url": f"/files/{name}", **more}


def _page(*files: dict[str, object], name: str = "Acme_Kit") -> HttpAnswer:
    body = json.dumps({"name": name, "files": list(files)}).encode()
    return HttpAnswer(status=200, headers={"content-type": JSON}, body=body)


PAGE = _page(
    _file("acme_kit-1.9.0-py3-none-any.whl", **{"upload-time": "2026-01-02T03:04:05Z"}),
    _file("acme_kit-1.10.0-py3-none-any.whl", **{"requires-python": ">=3.9"}),
    _file("acme-kit-1.10.0.tar.gz", **{"upload-time": "2026-02-02T03:04:05Z"}),
    _file("acme_kit-2.0.0rc1.tar.gz", **{"core-metadata": {"sha256": "x"}}),
    _file("acme_kit-1.11.0.zip", yanked="broken"),
    _file("acme_kit-not.a.version.tar.gz"),
    _file("other-3.0.tar.gz"),
)


@pytest.mark.rules("A5.T9")
async def test_releases_are_read_newest_first() -> None:
    transport = FakeTransport({f"{URL}/acme-kit/": PAGE})
    project = await PackageIndex(URL, transport).project("Acme.Kit")
    assert project.name == "Acme_Kit"
    assert [(one.version, one.yanked, one.uploaded) for one in project.releases] == [
        ("2.0.0rc1", False, ""),
        ("1.11.0", True, ""),
        ("1.10.0", False, "2026-02-02"),
        ("1.9.0", False, "2026-01-02"),
    ]
    assert project.releases[2].requires_python == ">=3.9"
    assert project.releases[0].metadata_url == (
        "https://index.test/files/acme_kit-2.0.0rc1.tar.gz.metadata"
    )


async def test_an_index_that_only_speaks_html_is_read() -> None:
    page = """<!DOCTYPE html><a href="../../f/acme_kit-1.0-py3-none-any.whl#sha256=1"
      data-requires-python="&gt;=3.8" data-core-metadata="sha256=2">x</a>
      <a href="https://files.test/acme-kit-0.9.tar.gz" data-yanked="">y</a><a>z</a>"""
    answer = HttpAnswer(
        status=200, headers={"content-type": "text/html; charset=utf-8"}, body=page.encode()
    )
    first, second = read_project("acme-kit", answer, f"{URL}/acme-kit/").releases
    assert (first.version, first.requires_python, first.yanked) == ("1.0", ">=3.8", False)
    assert first.metadata_url == "https://index.test/f/acme_kit-1.0-py3-none-any.whl.metadata"
    assert (second.version, second.yanked, second.metadata_url) == ("0.9", True, "")


@pytest.mark.rules("A5.T9")
@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HttpAnswer(status=404), "no package 'acme' on index.test.*do not guess"),
        (HttpAnswer(status=503), "answered 503"),
        (HttpAnswer(status=200, headers={"content-type": "text/plain"}), "can't be read"),
        (HttpAnswer(status=200, headers={"content-type": JSON}, body=b"{"), "can't be read"),
        (HttpAnswer(status=200, headers={"content-type": JSON}, body=b"[]"), "can't be read"),
        (None, r"can't be reached \(dns\)"),
    ],
)
async def test_what_is_no_answer_is_told_with_a_next_step(
    answer: HttpAnswer | None, words: str
) -> None:
    transport = FakeTransport({f"{URL}/acme/": answer} if answer else {})
    with pytest.raises(ToolError, match=words):
        await PackageIndex(URL, transport).project("acme")


async def test_a_move_within_the_host_is_followed_and_another_is_not() -> None:
    def moved(to: str) -> HttpAnswer:
        return HttpAnswer(status=301, headers={"location": to})

    answers = {
        f"{URL}/acme-kit/": moved("/new/acme-kit/"),
        "https://index.test/new/acme-kit/": PAGE,
    }
    project = await PackageIndex(URL, FakeTransport(answers)).project("acme-kit")
    assert len(project.releases) == 4
    away = FakeTransport({f"{URL}/acme-kit/": moved("https://evil.test/acme-kit/")})
    with pytest.raises(ToolError, match="answered 301"):
        await PackageIndex(URL, away).project("acme-kit")
    assert len(away.calls) == 1
    circle = FakeTransport({f"{URL}/acme-kit/": moved("")})
    with pytest.raises(ToolError, match="answered 301"):
        await PackageIndex(URL, circle).project("acme-kit")
    assert len(circle.calls) == 4


async def test_the_summary_is_read_from_the_metadata_and_no_password_goes_to_another_host() -> None:
    files = [{**_file("acme_kit-1.0.tar.gz"), "url": "https://files.test/a", "core-metadata": True}]
    metadata = b"Metadata-Version: 2.4\nName: acme-kit\nSummary:  Kits of Acme \n\nSummary: no\n"
    transport = FakeTransport(
        {
            f"{URL}/acme-kit/": _page(*files),
            "https://files.test/a.metadata": HttpAnswer(status=200, body=metadata),
        }
    )
    index = PackageIndex("https://me:p%40ss@index.test/simple", transport)
    project = await index.project("acme-kit")
    assert await index.summary(project.releases[0]) == "Kits of Acme"
    token = base64.b64encode(b"me:p@ss").decode()
    assert transport.calls[0].url == f"{URL}/acme-kit/"
    assert transport.calls[0].headers["authorization"] == f"Basic {token}"
    assert "authorization" not in transport.calls[1].headers
    assert "p%40ss" not in index.host


@pytest.mark.parametrize("url", ["", "http://169.254.169.254/x", "https://gone.test/x"])
async def test_a_summary_that_is_not_there_is_none(url: str) -> None:
    transport = FakeTransport({f"{URL}/acme-kit/": PAGE})
    index = PackageIndex(URL, transport)
    release = (await index.project("acme-kit")).releases[0]._replace(metadata_url=url)
    assert await index.summary(release) == ""
    assert "169.254" not in "".join(call.url for call in transport.calls)


@pytest.mark.parametrize(
    "name", ["", "-a", "a b", "a/b", "../a", "a==1", "a[b]", "ä", "a" * 101, "https://x.test/a"]
)
def test_what_is_no_name_is_refused(name: str) -> None:
    with pytest.raises(ToolInputInvalid, match="no name of a package"):
        check_package_name(name)


@pytest.mark.rules("A5.T9")
@pytest.mark.parametrize(
    ("environment", "url"),
    [
        (
            {"UV_DEFAULT_INDEX": "https://a.test/simple/", "PIP_INDEX_URL": "x"},
            "https://a.test/simple",
        ),
        ({"UV_DEFAULT_INDEX": "corp=https://a.test/simple"}, "https://a.test/simple"),
        ({"UV_INDEX_URL": "https://b.test"}, "https://b.test"),
        ({"PIP_INDEX_URL": "http://c.test:8080/s"}, "http://c.test:8080/s"),
    ],
)
async def test_the_index_that_is_set_is_asked(environment: dict[str, str], url: str) -> None:
    assert await find_index_url(environment) == url


async def test_the_index_of_pips_file_is_asked(tmp_path: Path) -> None:
    file = tmp_path / "pip.conf"
    file.write_text("[global]\nindex-url = https://d.test/simple/\n")
    assert await find_index_url({"PIP_CONFIG_FILE": str(file)}) == "https://d.test/simple"


@pytest.mark.parametrize(
    ("text", "url"),
    [
        (
            "[global]\nindex-url=https://a.test\n[install]\nindex_url = https://b.test\n",
            "https://b.test",
        ),
        ("[global]\ntimeout = 3\n", None),
        ("no section", None),
        ("", None),
    ],
)
def test_pips_file_is_read(text: str, url: str | None) -> None:
    assert read_pip_config(text) == url


@pytest.mark.parametrize(
    ("words", "url"),
    [
        (
            "Base URL of the Index (default\n      https://a.test/simple). This",
            "https://a.test/simple",
        ),
        ("The index (by default: <https://b.test/simple>) [env: X]", "https://b.test/simple"),
        ("(default: 3)", None),
    ],
)
def test_the_default_of_a_client_is_read_from_its_help(words: str, url: str | None) -> None:
    assert read_client_default(words) == url


def _no_files(_: object) -> list[Path]:
    return []


async def test_without_settings_the_clients_are_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = tmp_path / "uv"
    client.write_text(f"#!{sys.executable}\nprint('(by default: <https://e.test/simple>)')\n")
    client.chmod(0o755)
    monkeypatch.setattr(index_url, "_pip_files", _no_files)
    monkeypatch.setattr(index_url, "_clients", lambda: [("/absent/pip",), (str(client),)])
    assert await find_index_url({}) == "https://e.test/simple"
    monkeypatch.setattr(index_url, "_clients", list)
    with pytest.raises(ToolError, match="No package index is known"):
        await find_index_url({})


@pytest.mark.parametrize("url", ["ftp://a.test", "file:///srv", "a.test", "http://[", "secret"])
async def test_a_setting_that_is_no_address_is_told_without_showing_it(url: str) -> None:
    with pytest.raises(ToolError, match="PIP_INDEX_URL sets a package index that is no") as caught:
        await find_index_url({"PIP_INDEX_URL": url})
    assert url not in str(caught.value)


@pytest.mark.rules("A5.T9")
async def test_an_index_is_asked_over_the_transport_of_the_agent() -> None:
    heads: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(
            b"HTTP/1.1 200 OK\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s"
            % (JSON.encode(), len(PAGE.body), PAGE.body)
        )
        await writer.drain()
        writer.close()
        await writer.wait_closed()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    transport = HttpTransport()
    async with asyncio.timeout(20), listener:
        index = PackageIndex(f"http://me:word@127.0.0.1:{port}/simple", transport)
        assert len((await index.project("Acme_Kit")).releases) == 4
        await transport.aclose()
    head = heads[0].decode().lower()
    assert head.startswith("get /simple/acme-kit/ http/1.1")
    assert f"accept: {JSON}, " in head
    assert "authorization: basic " in head
