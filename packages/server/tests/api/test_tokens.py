"""Tokens and users by operation: what is listed, what is shown once, what ends with what."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import (
    AREAS,
    OPERATIONS,
    AddUser,
    CreateToken,
    Identity,
    NewToken,
    Pairing,
    Problem,
    TokenInfo,
    TokenList,
    UserInfo,
    UserList,
    format_time,
)
from towline_server.build import BuiltApp
from towline_server.main import STREAM_END_S, sweep
from towline_server.store.sqlite_store import open_memory_store, open_store
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient, Reply, open_test_app, sign_in

DAY_S = 24 * 3600


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(held=True)


@pytest.fixture
async def built(tmp_path: Path, clock: FakeClock) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(), root=tmp_path, clock=clock) as built:
        yield built


async def _tokens(client: AppClient) -> tuple[TokenInfo, ...]:
    return (await client.ask("GET", "/api/auth/tokens")).read(TokenList).tokens


async def _create(client: AppClient, name: str, lifetime_s: int | None = None) -> Reply:
    body = CreateToken(name=name, lifetime_s=lifetime_s)
    return await client.ask("POST", "/api/auth/tokens", body)


async def _device(built: BuiltApp, name: str = "phone") -> AppClient:
    code, _ = built.access.new_code()
    return AppClient(built, token=(await built.access.claim(code, name)).token)


async def _heard(wire: Wire, text: bytes) -> None:
    await wire.until(lambda: text in b"".join(wire.pieces))


async def _closed(wire: Wire) -> None:
    await wire.until(lambda: wire.ended)


async def test_a_token_for_a_program_is_shown_once_and_works_until_its_end(
    built: BuiltApp, clock: FakeClock
) -> None:
    made = (await _create(AppClient(built), " bot ", DAY_S)).read(NewToken)
    assert made.token.startswith("twl_")
    assert made.name == "bot"
    assert made.expires_at == format_time(clock.now_ms() + DAY_S * 1000)
    bot = AppClient(built, token=made.token)
    listed = await bot.ask("GET", "/api/auth/tokens")
    assert made.token not in listed.body.decode()
    now = format_time(clock.now_ms())
    assert listed.read(TokenList).tokens == (
        TokenInfo(
            id=made.id,
            name="bot",
            kind="program",
            created=now,
            last_used=now,
            expires_at=made.expires_at,
            current=True,
        ),
    )
    clock.advance(DAY_S - 1)
    assert (await bot.ask("GET", "/api/auth/me")).status == 200
    clock.advance(2)
    assert (await bot.ask("GET", "/api/auth/me")).status == 401
    assert await _tokens(AppClient(built)) == ()


async def test_a_token_without_an_end_works_until_it_is_revoked(
    built: BuiltApp, clock: FakeClock
) -> None:
    made = (await _create(AppClient(built), "bot")).read(NewToken)
    assert made.expires_at is None
    bot = AppClient(built, token=made.token)
    clock.advance(20 * 365 * DAY_S)
    assert (await bot.ask("GET", "/api/auth/me")).status == 200
    assert (await bot.ask("DELETE", f"/api/auth/tokens/{made.id}")).status == 204
    assert (await bot.ask("GET", "/api/auth/me")).status == 401
    gone = await AppClient(built).ask("DELETE", f"/api/auth/tokens/{made.id}")
    assert (gone.status, gone.read(Problem).code) == (404, "not_found")


@pytest.mark.parametrize(
    ("name", "lifetime_s"), [("", None), (" ", None), ("x" * 81, None), ("bot", 0), ("bot", 2**40)]
)
async def test_a_token_has_a_name_and_a_lifetime_that_make_sense(
    built: BuiltApp, name: str, lifetime_s: int | None
) -> None:
    assert (await _create(AppClient(built), name, lifetime_s)).status == 400


async def test_tokens_for_programs_have_a_bound_and_devices_make_room(built: BuiltApp) -> None:
    local = AppClient(built)
    for number in range(100):
        assert (await _create(local, f"bot {number}")).status == 201
    refused = await _create(local, "one more")
    assert (refused.status, refused.read(Problem).code) == (429, "capacity_exceeded")
    for number in range(101):
        await _device(built, f"phone {number}")
    names = {token.name for token in await _tokens(local) if token.kind == "device"}
    assert len(names) == 100
    assert "phone 100" in names


async def test_what_each_device_is_called_and_how_it_came_in_is_listed(
    built: BuiltApp, clock: FakeClock
) -> None:
    phone = await _device(built, "a phone" * 20)
    clock.advance(7200)
    (listed,) = await _tokens(phone)
    assert (listed.name, listed.kind, listed.current) == (("a phone" * 20)[:80], "device", True)
    assert listed.last_used == format_time(clock.now_ms())
    assert listed.expires_at == format_time(clock.now_ms() + 180 * DAY_S * 1000)
    assert (await _tokens(await _device(built, "")))[1].name == "device"


@pytest.mark.rules("C2.9")
async def test_a_user_s_tokens_are_their_own(built: BuiltApp) -> None:
    ann, eve = await sign_in(built, "ann"), await sign_in(built, "eve")
    made = (await _create(ann, "ann's bot")).read(NewToken)
    assert [token.name for token in await _tokens(eve)] == ["login"]
    foreign = await eve.ask("DELETE", f"/api/auth/tokens/{made.id}")
    absent = await eve.ask("DELETE", "/api/auth/tokens/tok_0")
    assert foreign.status == absent.status == 404
    assert foreign.read(Problem).detail.replace(made.id, "tok_0") == absent.read(Problem).detail
    assert (await AppClient(built, token=made.token).ask("GET", "/api/auth/me")).status == 200


async def test_a_code_lets_in_as_the_user_who_made_it(built: BuiltApp) -> None:
    ann = await sign_in(built, "ann")
    code = (await ann.ask("POST", "/api/auth/pair")).read(Pairing).code
    phone = AppClient(built, token=(await built.access.claim(code, "phone")).token)
    me = (await phone.ask("GET", "/api/auth/me")).read(Identity)
    assert (me.user, me.admin) == ("ann", False)


@pytest.mark.parametrize(
    ("host", "url"),
    [
        ("127.0.0.1:4747", "http://192.0.2.7:4747"),
        ("[::1]:4747", "http://192.0.2.7:4747"),
        ("desk.example.org", "http://desk.example.org"),
    ],
)
async def test_a_link_names_an_address_that_another_device_reaches(
    tmp_path: Path, host: str, url: str
) -> None:
    provider = ScriptedProvider()
    async with open_test_app(
        provider, root=tmp_path, url="http://192.0.2.7:4747", hosts=("desk.example.org",)
    ) as built:
        reply = await AppClient(built).ask("POST", "/api/auth/pair", headers={"host": host})
        pairing = reply.read(Pairing)
        assert pairing.url == f"{url}/#code={pairing.code}"
        assert pairing.qr.startswith("<svg xmlns=")
        assert pairing.code not in pairing.qr  # it is drawn, not written


@pytest.mark.rules("C2.9")
async def test_only_admins_say_who_may_come_in(built: BuiltApp) -> None:
    eve = await sign_in(built, "eve")
    new = AddUser(name="mallory", password="a password")
    for method, path, body in (
        ("GET", "/api/users", None),
        ("POST", "/api/users", new),
        ("DELETE", "/api/users/owner", None),
    ):
        refused = await eve.ask(method, path, body)
        assert (refused.status, refused.read(Problem).code) == (403, "forbidden")
    boss = await sign_in(built, "boss", admin=True)
    assert (await boss.ask("POST", "/api/users", new)).status == 201
    users = (await boss.ask("GET", "/api/users")).read(UserList).users
    found = [(user.name, user.admin, user.has_password) for user in users]
    assert found == [
        ("boss", True, True),
        ("eve", False, True),
        ("mallory", False, True),
        ("owner", True, False),
    ]


async def test_a_user_is_added_once_under_a_name_and_a_password_that_can_be(
    built: BuiltApp,
) -> None:
    local = AppClient(built)
    new = AddUser(name="ann", password="a password")
    made = (await local.ask("POST", "/api/users", new)).read(UserInfo)
    assert (made.name, made.admin, made.has_password) == ("ann", False, True)
    again = await local.ask("POST", "/api/users", new)
    assert (again.status, again.read(Problem).reason) == (409, "name_taken")
    both = await asyncio.gather(
        *(
            local.ask("POST", "/api/users", AddUser(name="bob", password=f"password {n}"))
            for n in range(2)
        )
    )
    assert sorted(reply.status for reply in both) == [201, 409]
    for bad in (AddUser(name="A", password="a password"), AddUser(name="a", password="short")):
        assert (await local.ask("POST", "/api/users", bad)).status == 400


async def test_a_removed_user_is_out_at_once_and_the_sessions_stay_with_nobody(
    tmp_path: Path, clock: FakeClock
) -> None:
    async with open_test_app(
        ScriptedProvider([asyncio.Event()]), root=tmp_path, clock=clock
    ) as built:
        local, ann = AppClient(built), await sign_in(built, "ann")
        session = await ann.create()
        await ann.prompt(session, "hello")
        code = (await ann.ask("POST", "/api/auth/pair")).read(Pairing).code
        async with ann.follow(session) as wire:
            await _heard(wire, b"turn_started")
            assert (await local.ask("DELETE", "/api/users/ann")).status == 204
            await _closed(wire)
        assert built.access.watches.open == 0
        assert (await ann.ask("GET", "/api/auth/me")).status == 401
        claimed = await AppClient(built, token="").ask(
            "POST", "/api/auth/claim", b'{"code": "%s"}' % code.encode()
        )
        assert claimed.status == 401
        new = AddUser(name="ann", password="another password")
        refused = await local.ask("POST", "/api/users", new)
        assert (refused.status, refused.read(Problem).reason) == (409, "name_used")
        assert "sessions are still stored" in refused.read(Problem).detail
        assert (await local.ask("GET", f"/api/sessions/{session}")).status == 404
        back = AddUser(name="ann", password="another password", restore=True)
        assert (await local.ask("POST", "/api/users", back)).status == 201
        assert (await ann.ask("GET", "/api/auth/me")).status == 401  # the old token is not back
        issued = await built.access.login("ann", "another password")
        async with AppClient(built, token=issued.token).follow(session) as wire:
            await _heard(wire, b'"reason":"The user was removed."')


async def test_the_owner_stays_and_nobody_else_is_found(built: BuiltApp) -> None:
    local = AppClient(built)
    refused = await local.ask("DELETE", "/api/users/owner")
    assert (refused.status, refused.read(Problem).reason) == (409, "owner_stays")
    assert (await local.ask("DELETE", "/api/users/nobody")).status == 404


async def test_a_revoked_token_s_streams_end_and_others_go_on(built: BuiltApp) -> None:
    local = AppClient(built)
    lost, kept = await _device(built, "lost"), await _device(built, "kept")
    session = await local.create()
    (id_,) = (token.id for token in await _tokens(local) if token.name == "lost")
    async with lost.follow(session) as ending, kept.follow(session) as going:
        await ending.take(1)
        await going.take(1)
        assert (await local.ask("DELETE", f"/api/auth/tokens/{id_}")).status == 204
        await _closed(ending)
        await local.prompt(session, "still there?")
        await _heard(going, b"prompt_admitted")
        assert b"prompt_admitted" not in b"".join(ending.pieces)
        assert built.access.watches.open == 1


async def test_logging_out_ends_the_streams_of_that_device(built: BuiltApp) -> None:
    phone = await _device(built)
    session = await phone.create()
    async with phone.follow(session) as wire:
        await wire.take(1)
        assert (await phone.ask("POST", "/api/auth/logout")).status == 204
        await _closed(wire)


async def test_a_login_that_has_ended_by_itself_ends_its_streams_when_it_is_swept(
    built: BuiltApp, clock: FakeClock
) -> None:
    ann = await sign_in(built, "ann")
    session = await ann.create()
    async with ann.follow(session) as wire:
        await wire.take(1)
        clock.advance(DAY_S + 1)
        await built.access.accounts.prune()
        await _closed(wire)


class NotingClock(FakeClock):
    """Tells when one task waits."""

    def __init__(self, *, held: bool) -> None:
        super().__init__(held=held)
        self.looks = asyncio.Event()
        self.watched: asyncio.Task[None] | None = None

    async def sleep(self, delay_s: float) -> None:
        if asyncio.current_task() is self.watched:
            self.looks.set()
        await super().sleep(delay_s)


@pytest.mark.rules("C2.9")
async def test_a_stream_outlives_the_end_of_its_token_by_a_minute_at_most(tmp_path: Path) -> None:
    clock = NotingClock(held=True)
    async with contextlib.AsyncExitStack() as stack:
        store = await open_memory_store(mint=mint_now)
        stack.push_async_callback(store.close)
        built = await stack.enter_async_context(
            open_test_app(ScriptedProvider(), root=tmp_path, clock=clock, store=store)
        )
        made = (await _create(AppClient(built), "bot", 5)).read(NewToken)
        sweeper = asyncio.create_task(sweep(built.access, store, clock, built.sessions.trim))
        clock.watched = sweeper
        stack.push_async_callback(asyncio.wait, {sweeper})
        stack.callback(sweeper.cancel)
        async with AppClient(built, token=made.token).follow_all() as wire:
            await wire.take(1)
            async with asyncio.timeout(10):
                await clock.looks.wait()
            assert not wire.ended
            clock.advance(STREAM_END_S + 1)
            await _closed(wire)
            assert wire.ended


async def test_the_store_holds_no_token_and_no_password(tmp_path: Path) -> None:
    store = await open_store(tmp_path / "data", mint=mint_now)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        made = (await _create(AppClient(built), "bot")).read(NewToken)
        code, _ = built.access.new_code()
        device = (await built.access.claim(code, "phone")).token
        await sign_in(built, "ann")
    await store.close()
    stored = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir())
    assert b"phone" in stored
    for secret in (made.token, device, built.token, code, "the password of ann"):
        assert secret.encode() not in stored
        assert secret.removeprefix("twl_").encode() not in stored


@pytest.mark.rules("C2.5")
def test_what_makes_or_takes_credentials_is_never_answered_from_memory() -> None:
    rows = [row for name, row in OPERATIONS.items() if AREAS[name] == "auth"]
    assert len(rows) >= 12
    assert not [row.name for row in rows if row.idempotent]
