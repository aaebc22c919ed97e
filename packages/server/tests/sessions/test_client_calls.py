"""Calls that run in clients: offered, taken by one, answered once, whoever goes away meanwhile."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_agent import Provider, mint_now
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    DENY,
    CallView,
    ClaimCall,
    ClientCall,
    ClientCallClaimed,
    ClientCallEnded,
    ClientCallOffered,
    ClientTool,
    CreateSession,
    DeclareTools,
    Envelope,
    Image,
    Notice,
    Problem,
    ReportProgress,
    SendResult,
    SessionView,
    Text,
    ToolEnded,
    ToolProgress,
    ToolResult,
    ToolStarted,
    block_text,
    decode_frame,
    parse_time,
)
from towline_server import Connect, Connection
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, Reply, open_test_app, ran

LOCATE = ClientTool(
    name="locate",
    description="Where the phone is.",
    parameters={"type": "object", "properties": {"exact": {"type": "boolean"}}},
)
HARMLESS = msgspec.structs.replace(LOCATE, idempotent=True)
BERLIN = (Text(text="Berlin"),)


class ToolClient:
    """A client that runs tools: a phone, as far as a server sees it."""

    def __init__(self, client: AppClient, session: str, reader: str = "phone") -> None:
        self.client = client
        self.session = session
        self.reader = reader

    async def declare(self, *tools: ClientTool) -> Reply:
        body = DeclareTools(reader=self.reader, tools=tools)
        return await self.client.ask("PUT", f"/api/sessions/{self.session}/tools", body)

    async def claim(self, id_: str) -> Reply:
        return await self._post(id_, "claim", ClaimCall(reader=self.reader))

    async def report(self, id_: str, text: str, fraction: float | None = None) -> Reply:
        body = ReportProgress(reader=self.reader, text=text, fraction=fraction)
        return await self._post(id_, "progress", body)

    async def answer(
        self,
        id_: str,
        content: tuple[Text | Image, ...] = BERLIN,
        *,
        is_error: bool = False,
        key: str | None = None,
    ) -> Reply:
        body = SendResult(reader=self.reader, content=content, is_error=is_error)
        return await self._post(id_, "result", body, key)

    async def offered(self, count: int = 1) -> tuple[CallView, ...]:
        """The calls that wait for clients, once there are so many."""
        view = await self.client.until(self.session, lambda view: len(_offers(view)) == count)
        return _offers(view)

    async def end(self) -> SessionView:
        return await self.client.until(self.session, lambda view: view.last_turn is not None)

    async def log(self, *kinds: type) -> list[Any]:
        log = await self.client.log(self.session)
        return [envelope.event for envelope in log if isinstance(envelope.event, kinds)]

    async def _post(
        self, id_: str, what: str, body: msgspec.Struct, key: str | None = None
    ) -> Reply:
        path = f"/api/sessions/{self.session}/calls/{id_}/{what}"
        return await self.client.ask("POST", path, body, headers={"idempotency-key": key})


def _offers(view: SessionView) -> tuple[CallView, ...]:
    return tuple(call for call in view.open_calls if call.expires_at is not None)


def _problem(reply: Reply) -> tuple[int, str | None]:
    return reply.status, reply.read(Problem).reason


def _told(provider: ScriptedProvider) -> list[str]:
    """What the model was told of its last calls."""
    results = [b for b in provider.requests[-1].messages[-1].content if isinstance(b, ToolResult)]
    return [block_text(result.content) for result in results]


def _frames(wire: Wire, kind: type) -> list[Envelope]:
    frames = [decode_frame(event.event, event.data) for event in wire.events]
    found = [frame for frame in frames if isinstance(frame, Envelope)]
    return [frame for frame in found if isinstance(frame.event, kind)]


async def _come_back(phone: ToolClient, reader: str, last: int) -> tuple[int, list[Envelope]]:
    """Follow as that reader from there on; gives the offers that come before what is live."""
    editor = ToolClient(phone.client, phone.session, "editor")
    query = f"reader={reader}&after={last}"
    async with phone.client.follow(phone.session, query=query) as wire:
        await wire.take(1)
        await editor.declare(msgspec.structs.replace(LOCATE, name=f"edit_{last}"))
        await wire.until(lambda: bool(wire.events and b"edit_%d" % last in wire.pieces[-1]))
        return wire.ids[-1], _frames(wire, ClientCallOffered)


class Server:
    """Starts one server after the other on one store."""

    def __init__(self, store: SqliteStore, root: Path) -> None:
        self.clock = FakeClock(held=True)
        self._store = store
        self._root = root

    @asynccontextmanager
    async def up(
        self,
        provider: Provider,
        *,
        mode: str = "auto",
        connect: Connect | None = None,
    ) -> AsyncGenerator[AppClient]:
        """One life of it; it ends as if its machine had been turned off."""
        async with open_test_app(
            provider,
            root=self._root,
            store=self._store,
            mode=mode,
            clock=self.clock,
            connect=connect,
        ) as built:
            yield AppClient(built)

    @asynccontextmanager
    async def calling(
        self, provider: ScriptedProvider, *tools: ClientTool, mode: str = "auto"
    ) -> AsyncGenerator[ToolClient]:
        """A session in which a client's tool is about to be called."""
        async with self.up(provider, mode=mode) as client:
            session = await client.create(CreateSession())
            phone = ToolClient(client, session)
            assert (await phone.declare(*tools or (LOCATE,))).status == 200
            await client.prompt(session, "where am I?")
            yield phone


@pytest.fixture
async def server(tmp_path: Path) -> AsyncGenerator[Server]:
    store = await open_memory_store(mint=mint_now)
    yield Server(store, tmp_path)
    await store.close()


async def _pass_time(clock: FakeClock, seconds: float) -> None:
    """Let time pass once the turn waits for it."""
    for _ in range(50):
        await asyncio.sleep(0)
    clock.advance(seconds)


@pytest.mark.rules("C5.12")
async def test_a_call_is_offered_taken_and_answered_by_a_client(server: Server) -> None:
    provider = ScriptedProvider(call("locate", exact=True), "You are in Berlin.")
    async with server.calling(provider) as phone:
        (open_,) = await phone.offered()
        assert open_.expires_at is not None
        assert parse_time(open_.expires_at) - server.clock.now_ms() == 120_000
        claimed = (await phone.claim(open_.call)).read(ClientCall)
        assert (claimed.tool, claimed.by) == ("locate", "phone")
        assert claimed.expires_at == open_.expires_at
        assert msgspec.json.decode(claimed.arguments) == {"exact": True}
        (shown,) = (await phone.client.view(phone.session)).open_calls
        assert shown.claimed_by == "phone"
        reply = await phone.answer(open_.call)
        assert reply.read(ClientCallEnded).status == "completed"
        view = await phone.end()
        log = await phone.log(ToolStarted, ClientCallOffered, ClientCallClaimed, ToolEnded)
    kinds = (ToolStarted, ClientCallOffered, ClientCallClaimed, ToolEnded)
    assert [isinstance(event, kind) for event, kind in zip(log, kinds, strict=True)] == [True] * 4
    assert [(c.status, c.claimed_by) for c in view.calls] == [("completed", "phone")]
    assert _told(provider) == ["Berlin"]


@pytest.mark.rules("C5.12", "S21")
async def test_of_two_clients_that_take_a_call_at_once_one_gets_it(server: Server) -> None:
    async with server.calling(ScriptedProvider(call("locate"), "well")) as phone:
        watch = ToolClient(phone.client, phone.session, "watch")
        stranger = ToolClient(phone.client, phone.session, "stranger")
        await watch.declare(LOCATE)
        (open_,) = await phone.offered()
        assert _problem(await stranger.claim(open_.call)) == (422, "not_declared")
        assert _problem(await phone.answer(open_.call)) == (409, "not_claimed")
        assert _problem(await phone.report(open_.call, "on it")) == (409, "not_claimed")
        one, two, again = await asyncio.gather(
            phone.claim(open_.call), watch.claim(open_.call), phone.claim(open_.call)
        )
        assert (one.status, again.status, one.body == again.body) == (200, 200, True)
        assert _problem(two) == (409, "claimed")
        assert _problem(await watch.answer(open_.call)) == (409, "claimed")
        assert _problem(await watch.report(open_.call, "on it")) == (409, "claimed")
        assert len(await phone.log(ClientCallClaimed)) == 1
        assert (await phone.answer(open_.call)).status == 200
        await phone.end()


@pytest.mark.rules("C5.10", "C5.12", "S23")
async def test_the_first_result_counts_and_the_same_again_is_no_conflict(server: Server) -> None:
    provider = ScriptedProvider(call("locate"), "well")
    async with server.calling(provider) as phone:
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
        replies = await asyncio.gather(*(phone.answer(open_.call) for _ in range(3)))
        assert [reply.status for reply in replies] == [200] * 3
        other = (Text(text="Rome"),)
        assert _problem(await phone.answer(open_.call, other)) == (409, "already_resolved")
        assert _problem(await phone.answer(open_.call, is_error=True))[0] == 409
        assert _problem(await phone.claim(open_.call)) == (410, "expired")
        assert _problem(await phone.report(open_.call, "still on it")) == (410, "expired")
        watch = ToolClient(phone.client, phone.session, "watch")
        assert _problem(await watch.answer(open_.call)) == (409, "claimed")
        for ask in (phone.claim, phone.answer):
            assert (await ask("call_unknown")).status == 404
        assert (await phone.report("call_unknown", "?")).status == 404
        await phone.end()
        assert len(await phone.log(ToolEnded)) == 1
        assert not await phone.log(Notice)
    assert _told(provider) == ["Berlin"]


@pytest.mark.rules("C5.12", "S23")
async def test_a_client_that_was_gone_for_a_moment_is_offered_the_same_call_again(
    server: Server,
) -> None:
    async with server.calling(ScriptedProvider(call("locate"), "well")) as phone:
        async with phone.client.follow(phone.session, query="reader=phone") as wire:
            await wire.until(lambda: bool(_frames(wire, ClientCallOffered)))
            last = wire.ids[-1]
        await _pass_time(server.clock, 1.3)
        (open_,) = await phone.offered()
        event = ClientCallOffered(call=open_.call, expires_at=open_.expires_at or "")
        for reader, offers in (("phone", 1), ("stranger", 0), ("", 0)):
            last, again = await _come_back(phone, reader, last)
            # Without a number: nothing new has happened for the others.
            assert [(frame.event, frame.seq) for frame in again] == [(event, None)] * offers
        await phone.claim(open_.call)
        event = msgspec.structs.replace(event, to="phone")
        for reader, offers in (("phone", 1), ("watch", 0)):
            last, again = await _come_back(phone, reader, last)
            assert [frame.event for frame in again] == [event] * offers
        assert (await phone.answer(open_.call)).status == 200
        await phone.end()
        assert len(await phone.log(ClientCallOffered)) == 1


@pytest.mark.rules("C5.12", "S23", "S17")
async def test_what_no_client_takes_fails_at_its_deadline(server: Server) -> None:
    provider = ScriptedProvider(call("locate"), "well")
    async with server.calling(provider) as phone:
        (open_,) = await phone.offered()
        await _pass_time(server.clock, 119)
        assert await phone.offered() == (open_,)
        await _pass_time(server.clock, 1)
        view = await phone.end()
        assert _problem(await phone.claim(open_.call)) == (410, "expired")
        assert _problem(await phone.answer(open_.call)) == (410, "expired")
    assert [c.status for c in view.calls] == ["failed"]
    assert "No client took the call within 120 s" in _told(provider)[0]


@pytest.mark.rules("C5.5", "C5.7", "C5.12", "S23")
async def test_a_client_that_took_a_call_and_does_not_come_back_leaves_it_unknown(
    server: Server,
) -> None:
    provider = ScriptedProvider(call("locate"), "I see")
    async with server.calling(provider) as phone:
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
        await _pass_time(server.clock, 120)
        view = await phone.end()
        for _ in range(2):  # it comes back, and does not give up at once
            assert _problem(await phone.answer(open_.call)) == (410, "expired")
        notices = await phone.log(Notice)
        (ended,) = await phone.log(ToolEnded)
    assert [notice.code for notice in notices] == ["late_result"]
    assert (ended.status, ended.is_error) == ("unknown", True)
    assert [c.status for c in view.calls] == ["unknown"]
    assert "may or may not" in _told(provider)[0]


@pytest.mark.rules("C5.12", "S23")
@pytest.mark.parametrize("second", ["answers", "is gone too", "takes it not"])
async def test_a_harmless_call_goes_back_to_all_once(server: Server, second: str) -> None:
    async with server.calling(ScriptedProvider(call("locate"), "well"), HARMLESS) as phone:
        watch = ToolClient(phone.client, phone.session, "watch")
        await watch.declare(HARMLESS)
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
        await _pass_time(server.clock, 120)
        view = await phone.client.until(
            phone.session,
            lambda view: bool(_offers(view)) and _offers(view)[0].expires_at != open_.expires_at,
        )
        (again,) = _offers(view)
        assert (again.call, again.claimed_by) == (open_.call, None)
        assert parse_time(again.expires_at or "") - server.clock.now_ms() == 120_000
        if second != "takes it not":
            assert (await watch.claim(open_.call)).status == 200
            assert _problem(await phone.answer(open_.call)) == (409, "claimed")
        if second == "answers":
            assert (await watch.answer(open_.call)).status == 200
        else:
            await _pass_time(server.clock, 120)
        (ended,) = (await phone.end()).calls
        assert len(await phone.log(ClientCallOffered)) == 2
    expected = {"answers": "completed", "is gone too": "unknown", "takes it not": "failed"}
    assert ended.status == expected[second]


@pytest.mark.rules("C5.7", "C5.12", "S17")
async def test_a_stop_ends_a_call_for_its_client_and_a_late_result_is_a_notice(
    server: Server,
) -> None:
    provider = ScriptedProvider(call("locate"), "well", "well again")
    async with server.calling(provider) as phone:
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
        async with phone.client.follow(phone.session, query="reader=phone") as wire:
            await phone.client.interrupt(phone.session)
            await wire.until(lambda: bool(_frames(wire, ToolEnded)))
        (call_,) = (await phone.end()).calls
        assert call_.status == "cancelled"
        assert _problem(await phone.answer(open_.call)) == (410, "expired")
        await phone.client.prompt(phone.session, "go on")
        await phone.client.until(phone.session, ran(2))
        assert [notice.code for notice in await phone.log(Notice)] == ["late_result"]
    assert "Berlin" not in str(provider.requests[-1].messages)


@pytest.mark.rules("C5.12", "C1.5")
async def test_progress_is_shown_and_not_stored(server: Server) -> None:
    async with server.calling(ScriptedProvider(call("locate"), "well")) as phone:
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
        async with phone.client.follow(phone.session) as wire:
            await wire.until(lambda: bool(_frames(wire, ClientCallClaimed)))
            assert (await phone.report(open_.call, "looking up", 0.5)).status == 204
            await wire.until(lambda: bool(_frames(wire, ToolProgress)))
            (frame,) = _frames(wire, ToolProgress)
        event = ToolProgress(call=open_.call, text="looking up", fraction=0.5)
        assert (frame.event, frame.seq) == (event, None)
        assert (await phone.report(open_.call, "beyond", 1.5)).status == 400
        assert (await phone.report(open_.call, "x" * 4001)).status == 400
        await phone.answer(open_.call)
        await phone.end()
        assert not await phone.log(ToolProgress)


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize("option", ["allow_once", DENY])
async def test_a_person_is_asked_before_a_call_is_offered(server: Server, option: str) -> None:
    async with server.calling(ScriptedProvider(call("locate"), "well"), mode="ask") as phone:
        view = await phone.client.until(phone.session, lambda view: bool(view.permissions))
        (request,) = view.permissions
        assert not _offers(view)
        assert (await phone.claim(request.call)).status == 404
        await phone.client.answer(phone.session, request, option)
        if option == "allow_once":
            (open_,) = await phone.offered()
            await phone.claim(open_.call)
            await phone.answer(open_.call)
        (ended,) = (await phone.end()).calls
        offers = await phone.log(ClientCallOffered)
    assert (ended.status, len(offers)) == (
        ("completed", 1) if option == "allow_once" else ("denied", 0)
    )


@pytest.mark.rules("C5.5", "C5.8", "C5.12", "S23")
@pytest.mark.parametrize("taken", [False, True])
async def test_a_restart_keeps_the_offer_who_took_it_and_the_time_that_was_left(
    server: Server, *, taken: bool
) -> None:
    async with server.calling(ScriptedProvider(call("locate"))) as phone:
        (open_,) = await phone.offered()
        await _pass_time(server.clock, 50)
        if taken:
            await phone.claim(open_.call)
        else:  # any event tells the next server how long this one ran
            await phone.client.prompt(phone.session, "and then?")
    server.clock.advance(3600)  # an hour in which no server runs
    provider = ScriptedProvider("well", "well")
    async with server.up(provider) as client:
        phone.client = client
        view = await client.until(
            phone.session,
            lambda view: bool(_offers(view)) and _offers(view)[0].expires_at != open_.expires_at,
        )
        (again,) = _offers(view)
        assert (again.call, again.claimed_by) == (open_.call, "phone" if taken else None)
        assert parse_time(again.expires_at or "") - server.clock.now_ms() == 70_000
        watch = ToolClient(client, phone.session, "watch")
        await watch.declare(LOCATE)
        if taken:
            assert (await watch.claim(open_.call)).status == 409
        assert (await phone.claim(open_.call)).status == 200
        assert (await phone.answer(open_.call)).status == 200
        view = await client.until(phone.session, ran(1 if taken else 2))
        assert len(await phone.log(ToolStarted, ToolEnded)) == 3  # it was started anew
    assert [c.status for c in view.calls] == ["completed"]
    assert "Berlin" in str(provider.requests[0].messages)


@pytest.mark.rules("C5.5", "C5.10", "C5.12", "S23")
async def test_a_result_that_a_crash_cut_is_sent_again_and_counts_once(server: Server) -> None:
    async with server.calling(ScriptedProvider(call("locate"))) as phone:
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
    go = asyncio.Event()
    provider = ScriptedProvider("well", [asyncio.Event()])

    async def connect(model: str) -> Connection:
        del model
        await go.wait()
        return Connection(provider)

    async with server.up(provider, connect=connect) as client:
        phone.client = client
        early = asyncio.create_task(phone.answer(open_.call, key="k"))  # the turn is not there yet
        for _ in range(20):  # the store works in turn, so the early one gets as far as its call
            await client.ask("GET", f"/api/sessions/{phone.session}")
        assert not early.done()
        assert _problem(await phone.answer(open_.call, (Text(text="Rome"),)))[0] == 409
        go.set()
        assert (await early).status == 200
        await client.until(phone.session, ran(1))
    async with server.up(provider) as client:  # and after the next restart it is known as before
        phone.client = client
        assert (await phone.answer(open_.call)).status == 200
        assert (await phone.answer(open_.call, key="k")).body == (await early).body
        assert _problem(await phone.answer(open_.call, (Text(text="Rome"),)))[0] == 409
        (ended,) = await phone.log(ToolEnded)
    assert (ended.status, ended.content) == ("completed", BERLIN)


@pytest.mark.rules("C5.12")
async def test_a_server_that_goes_lets_go_of_a_client_whose_result_it_did_not_keep(
    server: Server,
) -> None:
    async with server.calling(ScriptedProvider(call("locate"))) as phone:
        (open_,) = await phone.offered()
        await phone.claim(open_.call)
    never = asyncio.Event()

    async def connect(model: str) -> Connection:
        del model
        await never.wait()
        return Connection(ScriptedProvider())

    async with server.up(ScriptedProvider(), connect=connect) as client:
        phone.client = client
        waits = asyncio.create_task(phone.answer(open_.call))
        for _ in range(50):
            await asyncio.sleep(0)
    async with asyncio.timeout(10):
        assert (await waits).status == 500
    async with server.up(ScriptedProvider("well")) as client:
        phone.client = client
        assert (await phone.answer(open_.call)).status == 200
        await client.until(phone.session, ran(1))
