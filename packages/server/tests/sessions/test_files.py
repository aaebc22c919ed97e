"""Pictures, documents and long outputs: hashes in the log, bytes at the model (C1.10)."""

import base64
import hashlib
import json
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from towline_agent import Model, Request, mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    Block,
    CreateSession,
    File,
    Image,
    MessageEnded,
    Problem,
    PromptAdmitted,
    PromptBlock,
    SendPrompt,
    SessionId,
    Text,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolResult,
    block_text,
)
from towline_server.sessions.bulk import MAX_PART
from towline_server.sessions.files import MAX_TOGETHER, Files
from towline_server.sessions.fill import MAX_TEXT
from towline_server.store import attachments
from towline_server.store.sqlite_store import SqliteStore, open_memory_store, open_store
from towline_server.testing import AppClient, Reply, open_test_app, ran

PNG = b"\x89PNG\r\n\x1a\n" + b"picture" * 10
HASH = hashlib.sha256(PNG).hexdigest()
DATA = base64.b64encode(PNG).decode()
SHOWN = Image(media_type="image/png", data=DATA)
PDF = b"%PDF-1.7\n" + b"pages" * 100


@pytest.fixture
async def store() -> AsyncGenerator[SqliteStore]:
    store = await open_memory_store(mint=mint_now)
    yield store
    await store.close()


async def _say(client: AppClient, session: str, *content: PromptBlock) -> Reply:
    return await client.ask("POST", f"/api/sessions/{session}/prompts", SendPrompt(content=content))


async def _add(store: SqliteStore, data: bytes, name: str = "", user: str = "owner") -> str:
    return (await Files(store, lambda: 10**15).add(user, data, name=name)).file


def _last(request: Request) -> tuple[Block, ...]:
    return request.messages[-1].content


@pytest.mark.rules("C1.10", "A1.4", "A1.5")
async def test_bytes_in_a_prompt_stand_in_no_event_and_reach_the_model(
    tmp_path: Path, store: SqliteStore
) -> None:
    provider = ScriptedProvider("a picture", "the same")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(prompt=(Text(text="see"), SHOWN)))
        await client.until(session, ran(1))
        document = File(name="a.pdf", media_type="x/y", data=base64.b64encode(PDF).decode())
        named = Image(media_type="anything", file=HASH)
        assert (await _say(client, session, named, document)).status == 202
        await client.until(session, ran(2))
        log = await client.log(session)
        raw = await store.read(session, after=0, upto=10**6)
        served = await client.ask("GET", f"/api/files/{HASH}")
    assert served.body == PNG
    assert _last(provider.requests[0]) == (Text(text="see"), SHOWN)
    again = provider.requests[1].messages
    assert again[0].content == (Text(text="see"), SHOWN)
    assert again[2].content == (
        SHOWN,
        File(name="a.pdf", media_type="application/pdf", data=base64.b64encode(PDF).decode()),
    )
    said = [e.event.content for e in log if isinstance(e.event, PromptAdmitted)]
    assert said[0][1] == said[1][0] == Image(media_type="image/png", file=HASH)
    assert not any(DATA.encode() in row.data + (row.private or b"") for row in raw)


@pytest.mark.rules("C1.10")
async def test_after_a_restart_the_model_sees_the_same_bytes(tmp_path: Path) -> None:
    first, second = ScriptedProvider("a picture"), ScriptedProvider("the same")
    session = SessionId("")
    for provider in (first, second):
        store = await open_store(tmp_path / "data", mint=mint_now)
        async with open_test_app(provider, root=tmp_path, store=store) as built:
            client = AppClient(built)
            if provider is first:
                session = await client.create(CreateSession(prompt=(SHOWN,)))
                await client.until(session, ran(1))
            else:
                await client.prompt(session, "and?")
                await client.until(session, ran(2))
        await store.close()
    before, after = first.requests[0].messages, second.requests[0].messages
    assert after[: len(before)] == before


@pytest.mark.rules("C2.9", "C6")
async def test_what_a_prompt_may_not_bring_is_refused_by_name(
    tmp_path: Path, store: SqliteStore
) -> None:
    foreign = await _add(store, PNG, user="somebody")
    binary = await _add(store, b"\x00\x01", "a.bin")
    words = await _add(store, b"words", "a.txt")
    half = await _add(store, b"x" * (MAX_TOGETHER // 2 + 1))
    image = "image/png"
    refused: list[tuple[tuple[PromptBlock, ...], int, str, str]] = [
        ((Image(media_type=image, file=foreign),), 422, "rejected", "no file"),
        ((Image(media_type=image, file="0" * 64),), 422, "rejected", "no file"),
        ((File(name="a.bin", media_type=image, file=binary),), 422, "rejected", "no model reads"),
        ((Image(media_type=image, file=words),), 422, "rejected", "not a picture"),
        ((Image(media_type=image),), 400, "invalid_request", "either"),
        ((Image(media_type=image, data=DATA, file=words),), 400, "invalid_request", "either"),
        ((Image(media_type=image, data="no base 64"),), 400, "invalid_request", "Base 64"),
        ((Image(media_type=image, data=""),), 400, "invalid_request", "empty"),
        ((Image(media_type=image, file=foreign),) * 65, 400, "invalid_request", "64 blocks"),
        ((Text(text=" "),), 400, "invalid_request", "empty"),
        (
            (File(name="n" * 256, media_type="a/b", file=words),),
            400,
            "invalid_request",
            "255",
        ),
        (
            (File(name="a", media_type="a/b", file=half), File(name="b", media_type="", file=half)),
            413,
            "payload_too_large",
            str(MAX_TOGETHER),
        ),
    ]
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        for content, status, code, words_ in refused:
            for path, body in (
                (f"/api/sessions/{session}/prompts", SendPrompt(content=content)),
                ("/api/sessions", CreateSession(prompt=content)),
            ):
                reply = await client.ask("POST", path, body)
                assert (reply.status, reply.read(Problem).code) == (status, code), reply.body
                assert words_ in reply.read(Problem).detail
        assert (await client.view(session)).queue == ()


@pytest.mark.rules("A5.80")
async def test_a_text_file_is_given_as_words_that_name_it_up_to_a_bound(
    tmp_path: Path, store: SqliteStore
) -> None:
    short = await _add(store, "gr\u00fc\u00dfe".encode(), "a.py")
    long = await _add(store, ("\u00fc" * (MAX_TEXT + 1)).encode(), "b.txt")
    provider = ScriptedProvider("read")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        blocks = (
            File(name='x".py', media_type="", file=short),
            File(name="", media_type="text/html", file=long),
        )
        assert (await _say(client, session, *blocks)).status == 202
        await client.until(session, ran(1))
    one, two = _last(provider.requests[0])
    assert one == Text(text='<file name="x .py">\ngr\u00fc\u00dfe\n</file>')
    assert isinstance(two, Text)
    assert two.text.startswith('<file name="b.txt">\n\u00fc')
    assert two.text.count("\u00fc") == MAX_TEXT
    assert two.text.endswith("[… the rest is left out …]\n</file>")


async def test_a_model_that_sees_no_pictures_is_told_that_there_is_one(
    tmp_path: Path, store: SqliteStore
) -> None:
    provider = ScriptedProvider("well", model=Model(provider="a", id="b", images=False))
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(prompt=(Text(text="see"), SHOWN)))
        await client.until(session, ran(1))
    told = Text(text="[a picture (image/png) that this model cannot see]")
    assert _last(provider.requests[0]) == (Text(text="see"), told)


async def test_a_file_that_is_gone_is_a_line_and_no_failed_turn(
    tmp_path: Path, store: SqliteStore
) -> None:
    provider = ScriptedProvider("a picture", "gone?")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(prompt=(SHOWN,)))
        await client.until(session, ran(1))
        await store.write(lambda c: c.execute("DELETE FROM file_owners"))
        await client.prompt(session, "and now?")
        view = await client.until(session, ran(2))
    assert view.fault is None
    gone = provider.requests[1].messages[0].content
    assert gone == (Text(text="[a picture (image/png) is no longer there]"),)


async def test_the_newest_files_are_shown_when_there_are_too_many(
    tmp_path: Path, store: SqliteStore
) -> None:
    size = MAX_TOGETHER // 2
    old, middle, new = [await _add(store, PNG + bytes([n]) * (size - len(PNG))) for n in (1, 2, 3)]
    provider = ScriptedProvider("one", "two", "three")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        for turn, file in enumerate((old, middle, new), 1):
            await _say(client, session, Image(media_type="image/png", file=file))
            await client.until(session, ran(turn))
    messages = provider.requests[2].messages
    assert [isinstance(messages[place].content[0], Image) for place in (0, 2, 4)] == [
        False,
        True,
        True,
    ]
    assert "too many files" in block_text(messages[0].content)


@tool(name="look", effect="read")
async def look() -> list[Text | Image]:
    """Look at it."""
    return [Text(text="here"), SHOWN]


@pytest.mark.rules("C1.10")
async def test_pictures_of_tools_are_kept_by_hash_and_shown_to_the_model(
    tmp_path: Path, store: SqliteStore
) -> None:
    provider = ScriptedProvider(call("look"), "nice")
    async with open_test_app(provider, root=tmp_path, store=store, tools=[look]) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "look")
        await client.until(session, ran(1))
        log = await client.log(session)
        assert (await client.ask("GET", f"/api/files/{HASH}")).body == PNG
    (ended,) = [e.event for e in log if isinstance(e.event, ToolEnded)]
    assert ended.content == (Text(text="here"), Image(media_type="image/png", file=HASH))
    (result,) = _last(provider.requests[1])
    assert isinstance(result, ToolResult)
    assert result.content == (Text(text="here"), SHOWN)
    await store.write(partial(attachments.forget_session, session=session, now_ms=0))
    assert await Files(store, lambda: 0).piece("owner", HASH, 0) is None


@pytest.mark.rules("C1.10", "A1.6", "A4.19")
async def test_huge_arguments_and_outputs_are_whole_for_the_tool_for_people_and_after_a_restart(
    tmp_path: Path,
) -> None:
    took: list[str] = []
    output = "\u00fc" * 400_000

    @tool(name="write")
    async def write(text: str) -> str:
        """Write it."""
        took.append(text)
        return output

    text = "\u00e4" * (2 * MAX_PART)
    first, second = ScriptedProvider(call("write", text=text), "done"), ScriptedProvider("well")
    session = SessionId("")
    for provider in (first, second):
        store = await open_store(tmp_path / "data", mint=mint_now)
        async with open_test_app(provider, root=tmp_path, store=store, tools=[write]) as built:
            client = AppClient(built)
            session = session or await client.create()
            await client.prompt(session, "write it")
            await client.until(session, ran(2 if provider is second else 1))
            log = await client.log(session)
            (proposed,) = [e.event for e in log if isinstance(e.event, ToolProposed)]
            (ended,) = [e.event for e in log if isinstance(e.event, ToolEnded)]
            kept = await client.ask("GET", f"/api/files/{proposed.arguments_file}")
            outputs = [await client.ask("GET", f"/api/files/{file}") for file in ended.files]
        await store.close()
    assert took == [text]
    assert json.loads(kept.body) == {"text": text}
    assert outputs[0].body.decode() == output
    asked = next(e.event for e in log if isinstance(e.event, MessageEnded)).content[0]
    assert isinstance(asked, ToolCall)
    assert len(asked.arguments) < MAX_PART
    assert len(block_text(ended.content)) < MAX_PART
    sent, again = first.requests[1].messages, second.requests[0].messages
    assert again[: len(sent)] == sent
    (made,) = [block for block in sent[1].content if isinstance(block, ToolCall)]
    assert json.loads(made.arguments) == {"text": text}
    (result,) = sent[2].content
    assert isinstance(result, ToolResult)
    assert 49_000 < len(block_text(result.content)) <= 50_000
