"""What stands in a session's log and what does not, of a turn with all that a turn can have."""

import re
from pathlib import Path
from typing import Any, Final, get_args

import msgspec
import pytest

from towline_agent import (
    ArgumentsPiece,
    StepAnswer,
    TextPiece,
    ThinkingPiece,
    ToolContext,
    mint_now,
    tool,
)
from towline_agent.testing import ScriptedProvider, call, say
from towline_protocol import (
    CallId,
    Delta,
    Envelope,
    Opaque,
    SessionId,
    Text,
    Thinking,
    ToolCall,
    ToolProgress,
    Usage,
    decode_frame,
)
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_app, ran

SEALED: Final = ("sealed reasoning", "proof of the call", "id of the vendor", "block of the vendor")
"""What only the provider needs."""
DELTAS: Final[tuple[type, ...]] = get_args(Delta)
PREFIXES: Final = {
    "session": "ses_",
    "turn": "trn_",
    "prompt": "pmt_",
    "message": "msg_",
    "call": "call_",
    "permission": "prm_",
    "question": "qst_",
}


@tool(name="work", effect="write")
async def work(context: ToolContext, at: str) -> str:
    """Work and tell of it."""
    context.progress("half done", 0.5)
    context.output("a line\n")
    return f"worked at {at}"


def _asks() -> list[Any]:
    """An answer with a thought, words, a call and a vendor's own block, piece by piece."""
    arguments = '{"at":"noon"}'
    sealed, proof, wire, raw = SEALED
    answer = StepAnswer(
        content=(
            Thinking(text="Hm.", signature=sealed),
            Text(text="I work."),
            ToolCall(
                id=CallId(""), name="work", arguments=arguments, wire_id=wire, signature=proof
            ),
            Opaque(dialect="scripted", raw={"kind": raw}),
        ),
        stop_reason="tool_calls",
        usage=Usage(input=1, output=1),
    )
    pieces = [ThinkingPiece(0, "Hm."), TextPiece(1, "I work."), ArgumentsPiece(2, arguments)]
    return [*pieces, answer]


def _provider(*more: Any) -> ScriptedProvider:
    question = call("ask_user", items=[{"prompt": "Which?"}])
    return ScriptedProvider(_asks(), question, say("Done."), *more)


async def _run(client: AppClient) -> str:
    """One turn: a permission that is given, a question that is answered, and an end."""
    session = await client.create()
    await client.prompt(session, "go")
    view = await client.until(session, lambda view: bool(view.permissions))
    assert (await client.answer(session, view.permissions[0], "allow_once")).status == 200
    view = await client.until(session, lambda view: bool(view.questions))
    (asked,) = view.questions
    answers = {asked.items[0].id: ("this one",)}
    assert (await client.answer_question(session, asked.question, answers)).status == 200
    await client.until(session, ran(1))
    return session


async def _stored(store: SqliteStore, session: str) -> list[bytes]:
    rows = await store.read(SessionId(session), after=0, upto=999)
    return [row.data for row in rows]


@pytest.mark.rules("C1.1", "C1.2")
async def test_each_id_in_a_log_is_ours_and_says_what_it_names_and_each_time_is_utc(
    tmp_path: Path,
) -> None:
    async with open_test_app(_provider(), root=tmp_path, tools=[work], mode="ask") as built:
        client = AppClient(built)
        session = await _run(client)
        async with client.follow(session) as wire:
            await wire.until(lambda: b"turn_completed" in b"".join(wire.pieces))
        frames = [msgspec.json.decode(event.data) for event in wire.events if event.id]
    seen: set[str] = set()
    for frame in frames:
        usual = ("seq", "session", "turn", "time", "event")
        assert tuple(frame) == tuple(name for name in usual if name in frame)
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", frame["time"])
        for name, value in {**frame, **frame["event"]}.items():
            prefix = PREFIXES.get(name)
            if prefix is not None and value is not None:
                assert re.fullmatch(rf"{prefix}[0-9a-z]{{26}}", value), (name, value)
                seen.add(name)
    assert seen == PREFIXES.keys()
    turns = [frame.get("turn") for frame in frames]
    assert (frames[0]["event"]["type"], turns[0]) == ("session_created", None)
    assert len(set(turns)) == 2  # of no turn, and of the one


@pytest.mark.rules("C1.5", "C3.4")
async def test_no_kind_of_delta_is_stored_or_numbered(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(
        _provider(), root=tmp_path, tools=[work], mode="ask", store=store
    ) as built:
        client = AppClient(built)
        session = await client.create()
        async with client.follow(session) as wire:
            await client.prompt(session, "go")
            view = await client.until(session, lambda view: bool(view.permissions))
            await client.answer(session, view.permissions[0], "allow_once")
            await client.until(session, lambda view: bool(view.questions))
            await wire.until(lambda: b"question_asked" in b"".join(wire.pieces))
        frames = [(event.id, decode_frame(event.event, event.data)) for event in wire.events]
    loose = [frame for number, frame in frames if number is None and isinstance(frame, Envelope)]
    assert {type(frame.event) for frame in loose} == set(DELTAS)
    assert all(frame.seq is None for frame in loose)
    kept = [msgspec.json.decode(data)["event"]["type"] for data in await _stored(store, session)]
    assert len(kept) == len([number for number, _ in frames if number is not None])
    assert not {"text_delta", "thinking_delta", "tool_call_delta"} & set(kept)
    assert not {"tool_output_delta", "tool_progress"} & set(kept)
    assert any(isinstance(frame.event, ToolProgress) for frame in loose)
    await store.close()


@pytest.mark.rules("C1.9")
async def test_what_only_a_provider_needs_leaves_the_server_on_no_way_and_comes_back_to_it(
    tmp_path: Path,
) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(
        _provider(), root=tmp_path, tools=[work], mode="ask", store=store
    ) as built:
        session = await _run(AppClient(built))
    provider = ScriptedProvider("And now.", "In the fork.")
    async with open_test_app(
        provider, root=tmp_path, tools=[work], mode="ask", store=store
    ) as built:
        client = AppClient(built)
        told: list[bytes] = []
        async with client.follow_all(query=f"session={session}&after=0") as wire:
            await client.prompt(session, "and now?")
            await client.until(session, ran(2))
            forked = await client.ask("POST", f"/api/sessions/{session}/fork", b"{}")
            fork = msgspec.json.decode(forked.body)["id"]
            await client.prompt(fork, "and here?")
            await client.until(fork, ran(3))
            told += wire.pieces
        for one in (session, fork):
            async with client.follow(one) as wire:
                await wire.until(lambda wire=wire: wire.pieces != [] and len(wire.ids) > 20)
                told += wire.pieces
            for path in ("view", "history?before=999", ""):
                told.append(
                    (await client.ask("GET", f"/api/sessions/{one}/{path}".strip("/"))).body
                )
        told += [
            (await client.ask("GET", path)).body for path in ("/api/sessions", "/api/requests")
        ]
    shown = b"".join(told)
    assert b"I work." in shown
    assert not [sealed for sealed in SEALED if sealed.encode() in shown]
    for request in provider.requests:  # it is all there for the provider, after a restart too
        sent = repr(request.messages)
        assert [sealed for sealed in SEALED if sealed not in sent] == []
    await store.close()
