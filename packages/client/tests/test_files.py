"""Files to a server and back."""

import asyncio
from pathlib import Path

import pytest

from towline_client import CommandRejected
from towline_client.http import HttpTransport
from towline_client.testing import ScriptedServer, connect
from towline_client.transport import Call
from towline_protocol import OPERATIONS


async def test_a_file_goes_by_its_path_and_under_its_name(tmp_path: Path) -> None:
    path = tmp_path / "notes.md"
    path.write_bytes(b"# Notes\n")
    server = ScriptedServer()
    async with connect(server) as client:
        kept = await client.upload(path)
        other = await client.upload(path, name="other.md")
        assert await client.download(kept.file) == b"# Notes\n"
        with pytest.raises(FileNotFoundError):
            await client.upload(tmp_path / "nothing")
    assert (kept.name, other.name, kept.file) == ("notes.md", "other.md", other.file)
    assert server.calls[0].body == b"# Notes\n"


async def test_no_more_of_a_path_is_read_than_shows_that_it_is_too_large(tmp_path: Path) -> None:
    path = tmp_path / "large"
    with path.open("wb") as file:
        file.truncate(2**32)  # takes no room on the disk
    server = ScriptedServer()
    async with connect(server) as client:
        kept = await client.upload(path)
    assert kept.size == 20 * 1024 * 1024 + 1


@pytest.mark.rules("C4.5")
async def test_a_file_whose_reply_was_lost_is_sent_again() -> None:
    server = ScriptedServer()
    async with connect(server) as client:
        server.lose.append("upload_file")
        kept = await client.upload(b"words")
        server.lose.append("download_file")
        assert await client.download(kept.file) == b"words"
    assert [call.operation.name for call in server.calls] == ["upload_file"] * 2 + [
        "download_file"
    ] * 2


async def test_a_file_that_is_not_there_is_refused_by_the_server() -> None:
    async with connect(ScriptedServer()) as client:
        with pytest.raises(CommandRejected) as caught:
            await client.download("0" * 64)
    assert caught.value.code == "not_found"


async def test_bytes_go_over_http_as_bytes() -> None:
    seen = bytearray()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        seen.extend(await reader.readuntil(b"\r\n\r\n"))
        seen.extend(await reader.readexactly(5))
        writer.write(b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = HttpTransport(f"http://127.0.0.1:{port}")
    call = Call(operation=OPERATIONS["upload_file"], path="/api/files", body=b"words")
    async with asyncio.timeout(10), server:
        reply = await transport.request(call)
        await transport.close()
    assert reply.status == 201
    head = seen.decode().lower()
    assert "content-type: application/octet-stream\r\n" in head
    assert "content-length: 5\r\n" in head
    assert head.endswith("words")
