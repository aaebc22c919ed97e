"""Tools that clients declare: what is taken of them, what they may do, what they send back."""

import asyncio
import base64
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_agent import StepAnswer, mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    CallId,
    CallView,
    ClaimCall,
    ClientCallEnded,
    ClientCallOffered,
    ClientTool,
    CreateSession,
    DeclareTools,
    Image,
    Problem,
    ReportProgress,
    SendResult,
    SessionCreated,
    SessionUpdated,
    SessionView,
    Text,
    ToolDeclaration,
    ToolEnded,
    ToolsDeclared,
    block_text,
)
from towline_server.build import BuiltApp
from towline_server.sessions.bulk import MAX_FILE
from towline_server.sessions.client_tool import MAX_CLIENT_TOOLS, MAX_SCHEMA_BYTES
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, Reply, open_test_app, ran, sign_in

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * 40).decode()


def _tool(name: str = "locate", **facts: Any) -> ClientTool:
    plain: dict[str, Any] = {"description": "Where it is.", "parameters": {"type": "object"}}
    return ClientTool(name=name, **{**plain, **facts})


async def _declare(
    client: AppClient, session: str, *tools: ClientTool, reader: str = "phone"
) -> Reply:
    body = DeclareTools(reader=reader, tools=tools)
    return await client.ask("PUT", f"/api/sessions/{session}/tools", body)


async def _claim(client: AppClient, session: str, id_: str) -> Reply:
    path = f"/api/sessions/{session}/calls/{id_}/claim"
    return await client.ask("POST", path, ClaimCall(reader="phone"))


async def _answer(client: AppClient, session: str, id_: str, *content: Text | Image) -> Reply:
    body = SendResult(reader="phone", content=content)
    return await client.ask("POST", f"/api/sessions/{session}/calls/{id_}/result", body)


def _offers(view: SessionView) -> tuple[CallView, ...]:
    return tuple(call for call in view.open_calls if call.expires_at is not None)


async def _take(client: AppClient, session: str, *, after: int = 0) -> CallId:
    """Take the one call that is offered, when so many have ended."""
    view = await client.until(
        session, lambda view: bool(_offers(view)) and len(view.calls) == after
    )
    (open_,) = _offers(view)
    assert (await _claim(client, session, open_.call)).status == 200
    return open_.call


async def _events(client: AppClient, session: str, kind: type) -> list[Any]:
    return [e.event for e in await client.log(session) if isinstance(e.event, kind)]


@tool
async def own() -> str:
    """A tool of the agent's own."""
    return "done"


@pytest.mark.rules("C6", "C5.12")
async def test_a_session_takes_32_client_tools_of_all_its_clients_and_not_one_more(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider("well")
    tools = tuple(_tool(f"tool_{number}") for number in range(MAX_CLIENT_TOOLS))
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(tools=tools[:10]))
        reply = await _declare(client, session, *tools[8:])  # some names are there already
        assert set(reply.read(ToolsDeclared).tools) == {tool.name for tool in tools}
        reply = await _declare(client, session, _tool("more"), reader="watch")
        assert (reply.status, reply.read(Problem).reason) == (422, "too_many_tools")
        assert (await _declare(client, session, *tools[11:], _tool("more"))).status == 200
        many = CreateSession(tools=(*tools, _tool("more")))
        reply = await client.ask("POST", "/api/sessions", many)
        assert (reply.status, reply.read(Problem).reason) == (422, "too_many_tools")
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
    told = {told.name for told in provider.requests[0].tools}
    assert told == {tool.name for tool in tools} - {"tool_10"} | {"more", "ask_user"}


@pytest.mark.rules("C6", "C5.12", "C2.3")
@pytest.mark.parametrize(
    "bad",
    [
        _tool(""),
        _tool("has space"),
        _tool("x" * 65),
        _tool("own"),  # the agent has one
        _tool("ask_user"),
        _tool("web_search"),
        _tool(description=" "),
        _tool(description="x" * 4097),
        _tool(effect="own"),
        _tool(effect="read_only"),
        _tool(timeout_s=0.9),
        _tool(timeout_s=601),
        _tool(parameters={"type": "string"}),
        _tool(parameters={"properties": 1}),
        _tool(parameters={"properties": {"a": {"$ref": "#/$defs/gone"}}}),
        _tool(parameters={"description": "x" * MAX_SCHEMA_BYTES}),
    ],
    ids=[
        "no name", "space in name", "long name", "name of the agent's", "name of ours",
        "name of the provider's", "no words", "many words", "foreign effect", "unknown effect",
        "too short", "too long", "no object", "no schema", "lost reference", "large schema",
    ],
)  # fmt: skip
async def test_a_tool_that_does_not_hold_is_refused_with_all_that_came_with_it(
    tmp_path: Path, bad: ClientTool
) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path, tools=[own]) as built:
        client = AppClient(built)
        session = await client.create()
        reply = await _declare(client, session, _tool("good"), bad)
        assert (reply.status, reply.read(Problem).code) == (422, "rejected"), reply.body
        assert len(reply.read(Problem).detail) < 500
        reply = await client.ask("POST", "/api/sessions", CreateSession(tools=(bad,)))
        assert reply.status == 422
        assert (await _declare(client, session, _tool(), _tool())).status == 422  # twice
        for reader in ("", "x" * 65, "a\nb"):
            assert (await _declare(client, session, _tool(), reader=reader)).status == 400
        assert not await _events(client, session, SessionUpdated)


@pytest.mark.rules("C6")
async def test_schemas_are_taken_up_to_their_bounds(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        room = MAX_SCHEMA_BYTES - len('{"type":"object","description":""}')
        full = {"type": "object", "description": "x" * room}
        assert (await _declare(client, session, _tool(parameters=full))).status == 200
        reply = await _declare(
            client, session, _tool(parameters={**full, "description": "x" * (room + 1)})
        )
        assert reply.read(Problem).reason == "schema_too_large"
        deep: dict[str, Any] = {}
        for _ in range(300):
            deep = {"items": deep}
        reply = await _declare(client, session, _tool(parameters={"properties": {"a": deep}}))
        assert "levels" in reply.read(Problem).detail
        many = [_tool(f"tool_{number}", parameters=full) for number in range(31)]
        reply = await _declare(client, session, *many)
        assert reply.read(Problem).reason == "tools_too_large"


@pytest.mark.rules("C5.12")
async def test_a_declaration_counts_from_the_next_turn_until_it_is_taken_back(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(call("locate"), "well", "hello", call("locate"), "well")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(title="tools"))
        await _declare(client, session, _tool())
        assert (await _declare(client, session, _tool())).status == 200  # the same again
        await client.prompt(session, "where?")
        call_ = await _take(client, session)
        await _declare(client, session)  # taken back, but the turn goes on with it
        await _declare(client, session, _tool("other"), reader="watch")
        await _answer(client, session, call_, Text(text="here"))
        await client.until(session, ran(1))
        await client.prompt(session, "and now?")
        await client.until(session, ran(2))
        await client.prompt(session, "again")
        view = await client.until(session, ran(3))
        events = await _events(client, session, SessionUpdated)
    told = [[told.name for told in request.tools] for request in provider.requests]
    assert told == [["ask_user", "locate"]] * 2 + [["ask_user", "other"]] * 3
    assert [c.status for c in view.calls] == ["completed", "failed"]
    assert block_text(view.calls[1].content).startswith("There is no tool 'locate'.")
    assert [event.tools for event in events] == [
        ToolDeclaration(reader="phone", tools=(_tool(),)),
        ToolDeclaration(reader="phone"),
        ToolDeclaration(reader="watch", tools=(_tool("other"),)),
    ]


@pytest.mark.rules("C5.5", "C5.12")
async def test_a_turn_that_waits_for_a_client_holds_up_no_drain_and_goes_on_with_its_own_tools(
    tmp_path: Path,
) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider(call("locate")), root=tmp_path, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await _declare(client, session, _tool())
        await client.prompt(session, "where?")
        call_ = await _take(client, session)
        await _declare(client, session)  # counts from the next turn on, whoever runs this one
        async with asyncio.timeout(10):
            await built.sessions.drain(3600)
    provider = ScriptedProvider("well")
    async with open_test_app(provider, root=tmp_path, store=store) as built:
        client = AppClient(built)
        assert (await _answer(client, session, call_, Text(text="here"))).status == 200
        view = await client.until(session, ran(1))
    await store.close()
    assert [c.status for c in view.calls] == ["completed"]
    assert "locate" in [told.name for told in provider.requests[0].tools]


@pytest.mark.rules("C5.12")
async def test_of_two_declarations_of_one_name_the_newer_one_is_told(tmp_path: Path) -> None:
    provider = ScriptedProvider("well")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(tools=(_tool(),)))
        await _declare(client, session, _tool(description="The watch."), reader="watch")
        await _declare(client, session, _tool(description="The phone."))
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
        created = await _events(client, session, SessionCreated)
    (told,) = [told for told in provider.requests[0].tools if told.name == "locate"]
    assert told.description == "The phone."
    assert created[0].tools == (_tool(),)


@pytest.mark.rules("C5.12", "A5.43")
@pytest.mark.parametrize("trusts", [False, True])
async def test_the_effect_that_a_client_declares_counts_if_its_agent_trusts_it(
    tmp_path: Path, *, trusts: bool
) -> None:
    both = StepAnswer(
        content=call("locate").content + call("locate").content, stop_reason="tool_calls"
    )
    provider = ScriptedProvider(both, "well")
    async with open_test_app(
        provider, root=tmp_path, mode="ask", trusts_client_effects=trusts
    ) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(tools=(_tool(effect="read"),)))
        await client.prompt(session, "where?")
        if not trusts:
            view = await client.until(session, lambda view: bool(view.permissions))
            assert {c.effect for c in view.open_calls} == {"write"}
            assert "takes no client's word" in (view.permissions[0].reason or "")
            assert not _offers(view)
            return
        # Nobody is asked, both run together, and each gets its own result.
        view = await client.until(session, lambda view: len(_offers(view)) == 2)
        one, two = _offers(view)
        for open_, said in ((two, "the second"), (one, "the first")):
            await _claim(client, session, open_.call)
            await _answer(client, session, open_.call, Text(text=said))
        await client.until(session, ran(1))
    results: Any = provider.requests[1].messages[-1].content
    assert [block_text(result.content) for result in results] == ["the first", "the second"]


@pytest.mark.rules("C1.10", "C5.12", "S33")
async def test_pictures_are_kept_by_their_hash_and_long_words_are_cut(tmp_path: Path) -> None:
    provider = ScriptedProvider(call("locate"), "I see", call("locate"), "well", call("locate"), "")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(tools=(_tool(),)))
        await client.prompt(session, "look")
        call_ = await _take(client, session)
        picture = Image(media_type="image/jpeg", data=PNG)  # what it is counts, not what it is said
        reply = await _answer(client, session, call_, Text(text="a view"), picture)
        assert reply.read(ClientCallEnded).status == "completed"
        again = await _answer(client, session, call_, Text(text="a view"), picture)
        assert again.status == 200
        await client.until(session, ran(1))
        await client.prompt(session, "read")
        long = Text(text="x" * 70_000 + "the end")
        call_ = await _take(client, session, after=1)
        assert (await _answer(client, session, call_, long)).status == 200
        await client.until(session, ran(2))
        await client.prompt(session, "nothing")
        call_ = await _take(client, session, after=2)
        assert (await _answer(client, session, call_)).status == 200
        await client.until(session, ran(3))
        seen, cut, empty = await _events(client, session, ToolEnded)
    (text, image) = seen.content
    assert (text.text, image.media_type, image.data) == ("a view", "image/png", None)
    assert len(image.file) == 64
    told: Any = provider.requests[1].messages[-1].content[0]
    assert told.content[1].data == PNG
    assert "characters left out" in block_text(cut.content)
    assert block_text(cut.content).endswith("the end")
    assert empty.content == ()


@pytest.mark.rules("C2.3", "C5.12", "C6")
async def test_a_result_that_is_too_large_or_no_picture_is_refused_and_may_be_sent_anew(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider(call("locate"), "well")
    large = base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"\0" * (MAX_FILE - 7)).decode()
    bad: list[tuple[Text | Image, ...]] = [
        (Image(media_type="image/png", data=large),),
        (Image(media_type="image/png", data=large + "AAAA"),),
        (Image(media_type="image/png", data="no base 64!"),),
        (Image(media_type="image/png", data=""),),
        (Image(media_type="image/png", file="0" * 64),),
        (Image(media_type="image/png", data=base64.b64encode(b"<svg>").decode()),),
        (Text(text=""),) * 65,
    ]
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(tools=(_tool(),)))
        await client.prompt(session, "look")
        call_ = await _take(client, session)
        for content in bad:
            reply = await _answer(client, session, call_, *content)
            assert (reply.status, reply.read(Problem).code) == (422, "rejected")
        most = base64.b64encode(base64.b64decode(large)[:-1]).decode()
        reply = await _answer(client, session, call_, Image(media_type="image/png", data=most))
        assert reply.status == 200
        (ended,) = (await client.until(session, ran(1))).calls
    assert ended.status == "completed"


@pytest.mark.rules("C2.9", "C5.12")
async def test_another_user_finds_neither_tools_nor_calls(tmp_path: Path) -> None:
    async with open_test_app(ScriptedProvider(call("locate"), "well"), root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create(CreateSession(tools=(_tool(),)))
        await client.prompt(session, "where?")
        call_ = await _take(client, session)
        await _deny_all(built, session, call_)
        assert (await _answer(client, session, call_, Text(text="here"))).status == 200
        await client.until(session, ran(1))
        assert len(await _events(client, session, ClientCallOffered)) == 1


async def _deny_all(built: BuiltApp, session: str, call_: CallId) -> None:
    stranger = await sign_in(built, "stranger")
    path = f"/api/sessions/{session}/calls/{call_}"
    bodies: dict[str, msgspec.Struct] = {
        "claim": ClaimCall(reader="phone"),
        "progress": ReportProgress(reader="phone", text="on it"),
        "result": SendResult(reader="phone"),
    }
    for what, body in bodies.items():
        assert (await stranger.ask("POST", f"{path}/{what}", body)).status == 404
    assert (await _declare(stranger, session, _tool())).status == 404
    mine = await stranger.create(CreateSession(tools=(_tool(),)))
    assert (await _claim(stranger, mine, call_)).status == 404
