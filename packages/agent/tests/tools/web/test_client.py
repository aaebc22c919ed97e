"""Requests against a server that does not behave."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.tools.web.client import WebClient
from towline_agent.tools.web.testing import FakeSite, Send, answer
from towline_agent.tools.web.url import read_url


@pytest.fixture
async def site() -> AsyncIterator[FakeSite]:
    async with FakeSite() as made:
        yield made


async def body_of(site: FakeSite, **facts: float) -> tuple[bytes, str | None]:
    found = await site.client(**facts).ask(read_url(f"{site.url}/"))
    return found.body, found.cut


@pytest.mark.rules("A5.32")
@pytest.mark.parametrize("address", ["127.0.0.2", "10.0.0.1", "169.254.169.254", "::1", "fe80::1"])
async def test_a_public_name_never_leads_to_a_private_address(
    site: FakeSite, address: str
) -> None:
    site.names["evil.example"] = [address]
    url = read_url(f"http://evil.example:{site.port}/")
    with pytest.raises(ToolDenied, match="private address"):
        await site.client().ask(url)
    assert site.asked == []


@pytest.mark.rules("A5.32")
async def test_a_name_that_changes_its_address_is_judged_each_time(site: FakeSite) -> None:
    site.pages["/"] = answer("fine")
    site.names["evil.example"] = ["127.0.0.1", "127.0.0.2"]
    url, client = read_url(f"http://evil.example:{site.port}/"), site.client()
    assert (await client.ask(url)).body == b"fine"
    with pytest.raises(ToolDenied):
        await client.ask(url)
    assert len(site.asked) == 1


@pytest.mark.rules("A5.32")
async def test_the_usual_client_reaches_this_machine_by_its_own_address_alone(
    site: FakeSite,
) -> None:
    site.pages["/"] = answer("mine")
    named = WebClient(environ_proxies=dict)
    assert (await named.ask(read_url(f"http://127.0.0.1:{site.port}/"))).body == b"mine"
    assert (await named.ask(read_url(f"http://localhost:{site.port}/"))).body == b"mine"
    by_name = site.client(public=set[str]().__contains__)
    with pytest.raises(ToolDenied):
        await by_name.ask(read_url(f"{site.url}/"))
    assert len(site.asked) == 2


async def test_a_request_says_who_asks_and_nothing_of_the_one_before(site: FakeSite) -> None:
    site.pages["/"] = answer("x", Set_Cookie="a=b")
    client = site.client()
    for _ in range(2):
        await client.ask(read_url(f"{site.url}/"))
    heads = [head.lower() for head in site.asked]
    assert all("user-agent: towline\r\n" in head for head in heads)
    assert not any("cookie:" in head for head in heads)


@pytest.mark.rules("A5.34")
@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "deflate", "raw"])
async def test_a_packed_body_is_unpacked_as_far_as_it_is_wanted(
    site: FakeSite, encoding: str
) -> None:
    plain = b"0123456789" * 1_000_000
    packed = gzip.compress(plain) if "gzip" in encoding else zlib.compress(plain)
    if encoding == "raw":
        packed, encoding = packed[2:-4], "deflate"
    site.pages["/"] = answer(packed, Content_Encoding=encoding)
    body, cut = await body_of(site, max_bytes=1000)
    assert body == plain[:1000]
    assert cut == "only its first 1000 bytes were read"
    site.pages["/"] = answer(gzip.compress(b"short"), Content_Encoding="gzip")
    assert await body_of(site) == (b"short", None)


@pytest.mark.rules("A5.34")
@pytest.mark.parametrize(
    ("encoding", "body", "why"),
    [
        ("br", b"\x0b\x02", "not asked for"),
        ("zstd", b"\x28\xb5", "not asked for"),
        ("gzip, gzip", gzip.compress(gzip.compress(b"x", mtime=0), mtime=0), "not asked for"),
        ("gzip", b"no gzip at all", "packed wrongly"),
        ("deflate", b"\xff\xff\xff", "packed wrongly"),
    ],
)
async def test_a_body_that_cannot_be_unpacked_is_told(
    site: FakeSite, encoding: str, body: bytes, why: str
) -> None:
    site.pages["/"] = answer(body, Content_Encoding=encoding)
    _, cut = await body_of(site)
    assert why in (cut or "")


@pytest.mark.rules("A5.34")
async def test_a_body_without_an_end_is_cut(site: FakeSite) -> None:
    async def endless(send: Send) -> None:
        await send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        while True:
            await send(b"1000\r\n" + b"x" * 0x1000 + b"\r\n")

    site.pages["/"] = endless
    body, cut = await body_of(site, max_bytes=100_000)
    assert len(body) == 100_000
    assert cut is not None


@pytest.mark.rules("A5.34")
@pytest.mark.parametrize("begins", [b"", b"HTTP/1.1 200 OK\r\nX: ", b"HTTP/1.1 200 OK\r\n\r\nx"])
async def test_a_server_that_drips_is_left_at_the_limit(site: FakeSite, begins: bytes) -> None:
    gone = asyncio.Event()

    async def drip(send: Send) -> None:
        await send(begins)
        try:
            await asyncio.Event().wait()
        finally:
            gone.set()

    site.pages["/"] = drip
    with pytest.raises(ToolError, match="longer than 0.2 s"):
        await body_of(site, timeout_s=0.2)


@pytest.mark.rules("A5.34")
@pytest.mark.parametrize(
    ("raw", "body", "cut"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort", b"short", "broke off"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n", b"short", "broke off"),
        (b"HTTP/1.0 200 OK\r\n\r\nto the end", b"to the end", None),
    ],
)  # fmt: skip
async def test_a_body_of_another_length_than_stated_is_read_as_far_as_it_goes(
    site: FakeSite, raw: bytes, body: bytes, cut: str | None
) -> None:
    site.pages["/"] = raw
    found, why = await body_of(site)
    assert found == body
    assert why is None if cut is None else cut in (why or "")


@pytest.mark.parametrize(
    "raw",
    [
        b"", b"SSH-2.0-OpenSSH_9.6\r\n", b"\x16\x03\x01\x02\x00", b"HTTP/1.1 two hundred\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n" + b"X: " + b"y" * 100_000 + b"\r\n\r\n", b"HTTP/1.1 200\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    ],
)  # fmt: skip
async def test_what_is_no_http_is_an_error_in_our_own_words(site: FakeSite, raw: bytes) -> None:
    site.pages["/"] = raw
    with pytest.raises(ToolError, match=r"^site\.example:\d+ [a-zA-Z ]+\.$"):
        await body_of(site)


async def test_an_unknown_name_and_a_closed_port_are_told_apart(site: FakeSite) -> None:
    with pytest.raises(ToolError, match="is not known"):
        await site.client().ask(read_url("http://nowhere.example/"))
    port = site.port
    await site.__aexit__(None, None, None)
    with pytest.raises(ToolError, match="refuses the connection"):
        await site.client().ask(read_url(f"http://site.example:{port}/"))


@pytest.mark.rules("A5.32")
async def test_a_proxy_of_the_environment_is_used_and_its_password_never_told(
    site: FakeSite,
) -> None:
    proxy = {"http": f"http://me:hush@127.0.0.1:{site.port}"}
    client = site.client(environ_proxies=lambda: proxy)
    site.pages["http://far.example/x"] = answer("by proxy")
    assert (await client.ask(read_url("http://far.example/x"))).body == b"by proxy"
    await site.__aexit__(None, None, None)
    with pytest.raises(ToolError) as raised:
        await client.ask(read_url("http://far.example/x"))
    assert "proxy" in raised.value.message
    assert "hush" not in str(raised.value)
