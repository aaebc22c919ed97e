"""Who may come in: one-time codes, tokens, the page's cookie."""

from collections.abc import AsyncGenerator
from http.cookies import SimpleCookie
from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import FakeClock, ScriptedProvider
from towline_protocol import Claim, Claimed, Identity, Pairing, Problem, TokenList, parse_time
from towline_server.api.access import DEVICE_LIFE_S
from towline_server.api.guard import Message
from towline_server.auth.codes import CODE_LIFE_S, Codes
from towline_server.build import BuiltApp
from towline_server.errors import AccessDenied, StoreFull, TooManyTries
from towline_server.store.sqlite_store import open_memory_store, open_store
from towline_server.testing import AppClient, Reply, open_test_app


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock(held=True)


@pytest.fixture
async def built(tmp_path: Path, clock: FakeClock) -> AsyncGenerator[BuiltApp]:
    async with open_test_app(ScriptedProvider(), root=tmp_path, clock=clock) as built:
        yield built


async def _claim(built: BuiltApp, code: str, *, cookie: bool = False, name: str = "") -> Reply:
    body = Claim(code=code, cookie=cookie, name=name)
    return await AppClient(built, token="").ask("POST", "/api/auth/claim", body)


async def _me(built: BuiltApp, token: str) -> int:
    return (await AppClient(built, token=token).ask("GET", "/api/auth/me")).status


@pytest.mark.rules("C2.3")
async def test_a_code_works_once_and_gives_a_token_that_works(built: BuiltApp) -> None:
    local = AppClient(built)
    pairing = (await local.ask("POST", "/api/auth/pair")).read(Pairing)
    assert pairing.url == f"{built.url}/#code={pairing.code}"
    claimed = (await _claim(built, pairing.code, name="phone")).read(Claimed)
    assert claimed.user == "owner"
    assert claimed.token is not None
    me = await AppClient(built, token=claimed.token).ask("GET", "/api/auth/me")
    assert me.read(Identity) == Identity(user="owner", server_name="towline", admin=True)
    again = await _claim(built, pairing.code)
    assert (again.status, again.read(Problem).reason) == (401, "bad_code")


async def test_a_code_may_be_typed_as_people_type(built: BuiltApp) -> None:
    for was, becomes in (("-", ""), ("-", " "), ("-", " — ")):
        code, _ = built.access.new_code()
        assert (await _claim(built, f" {code.lower().replace(was, becomes)} ")).status == 200


async def test_a_code_is_too_old_after_ten_minutes(built: BuiltApp, clock: FakeClock) -> None:
    code, until = built.access.new_code()
    assert parse_time(until) - clock.now_ms() == CODE_LIFE_S * 1000
    clock.advance(CODE_LIFE_S + 1)
    assert (await _claim(built, code)).status == 401


@pytest.mark.rules("C2.4")
async def test_guessing_codes_is_slow(built: BuiltApp, clock: FakeClock) -> None:
    code, _ = built.access.new_code()
    for _ in range(10):
        assert (await _claim(built, "AAAA-AAAA")).status == 401
    clock.advance(20.5)
    refused = await _claim(built, code)  # even the right one waits now
    assert (refused.status, refused.headers["retry-after"]) == (429, "40")
    assert refused.read(Problem).code == "rate_limited"
    clock.advance(40)
    assert (await _claim(built, code)).status == 200


@pytest.mark.rules("C2.3")
async def test_what_is_far_too_long_for_a_code_is_refused_unread(built: BuiltApp) -> None:
    refused = await _claim(built, "A" * 1_000_000)
    assert (refused.status, refused.read(Problem).code) == (400, "invalid_request")


@pytest.mark.rules("C2.3")
async def test_the_page_s_token_lies_in_a_cookie_that_scripts_cannot_read(built: BuiltApp) -> None:
    code, _ = built.access.new_code()
    reply = await _claim(built, code, cookie=True)
    assert reply.read(Claimed) == Claimed(user="owner")  # the token is in the cookie alone
    cookie = SimpleCookie(reply.headers["set-cookie"])[built.access.cookie]
    assert built.access.cookie.startswith("towline-")  # cookies of other ports of this host differ
    assert cookie["httponly"]
    assert cookie["samesite"] == "strict"
    assert cookie["path"] == "/"
    assert cookie["max-age"] == f"{DEVICE_LIFE_S}"
    assert not cookie["secure"]  # http://127.0.0.1 would lose it
    page = AppClient(built, token="")
    headers = {"cookie": f"{built.access.cookie}={cookie.value}"}
    assert (await page.ask("GET", "/api/auth/me", headers=headers)).status == 200
    gone = await page.ask("POST", "/api/auth/logout", headers=headers)
    assert (gone.status, gone.body) == (204, b"")
    assert SimpleCookie(gone.headers["set-cookie"])[built.access.cookie]["max-age"] == "0"
    assert (await page.ask("GET", "/api/auth/me", headers=headers)).status == 401


async def test_logging_out_revokes_the_token_and_no_other_one(built: BuiltApp) -> None:
    tokens: list[str] = []
    for _ in range(2):
        code, _ = built.access.new_code()
        token = (await _claim(built, code)).read(Claimed).token
        assert token is not None
        tokens.append(token)
    assert (await AppClient(built, token=tokens[0]).ask("POST", "/api/auth/logout")).status == 204
    assert [await _me(built, token) for token in tokens] == [401, 200]


async def test_a_device_s_token_lives_on_as_long_as_it_is_used(
    built: BuiltApp, clock: FakeClock
) -> None:
    code, _ = built.access.new_code()
    token = (await _claim(built, code)).read(Claimed).token
    assert token is not None
    for _ in range(3):
        clock.advance(DEVICE_LIFE_S - 1)
        assert await _me(built, token) == 200
    clock.advance(DEVICE_LIFE_S + 1)
    assert await _me(built, token) == 401


@pytest.mark.rules("C2.3")
async def test_each_start_of_the_page_prolongs_a_device_s_cookie_and_no_other(
    built: BuiltApp, clock: FakeClock
) -> None:
    await built.access.accounts.set_password("owner", "a long enough word")
    code, _ = built.access.new_code()
    device = (await _claim(built, code)).read(Claimed).token
    page = AppClient(built, token="")
    clock.advance(DEVICE_LIFE_S // 2)
    headers = {"cookie": f"{built.access.cookie}={device}"}
    asked = await page.ask("GET", "/api/auth/me", headers=headers)
    assert asked.read(Identity).user == "owner"
    cookie = SimpleCookie(asked.headers["set-cookie"])[built.access.cookie]
    assert (cookie.value, cookie["max-age"]) == (device, f"{DEVICE_LIFE_S}")
    assert (cookie["httponly"], cookie["samesite"], cookie["path"]) == (True, "strict", "/")

    login = (await built.access.login("owner", "a long enough word")).token
    for other in (
        {"cookie": f"{built.access.cookie}={login}"},
        {"authorization": f"Bearer {device}"},
        {"authorization": f"Bearer {login}", "cookie": f"{built.access.cookie}={device}"},
    ):
        asked = await page.ask("GET", "/api/auth/me", headers=other)
        assert asked.status == 200
        assert "set-cookie" not in asked.headers


async def test_a_token_works_when_its_use_cannot_be_noted(tmp_path: Path, clock: FakeClock) -> None:
    full = False

    def on_commit(phase: str, _: object) -> None:
        if full and phase == "before":
            raise StoreFull("The disk is full. Make room.")

    store = await open_store(tmp_path / "data", mint=mint_now, on_commit=on_commit)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store, clock=clock) as built:
        code, _ = built.access.new_code()
        token = (await _claim(built, code)).read(Claimed).token
        assert token is not None
        clock.advance(24 * 3600)
        full = True
        assert await _me(built, token) == 200  # a person can still read on a full disk
    await store.close()


async def test_a_token_is_known_to_the_next_server_and_a_local_one_is_not(tmp_path: Path) -> None:
    store = await open_memory_store(mint=mint_now)
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        code, _ = built.access.new_code()
        token = (await _claim(built, code)).read(Claimed).token
        cookie = built.access.cookie
        local = built.token
    assert token is not None
    async with open_test_app(ScriptedProvider(), root=tmp_path, store=store) as built:
        assert await _me(built, token) == 200
        assert await _me(built, local) == 401
        assert built.access.cookie == cookie
    await store.close()


async def test_a_code_is_good_again_when_the_token_could_not_be_stored() -> None:
    codes = Codes(lambda: 0.0)
    code = codes.make("me")
    known = codes.claim(code, "here")
    assert known.user == "me"
    with pytest.raises(AccessDenied):
        codes.claim(code, "here")
    codes.give_back(code, known)
    assert codes.claim(code.lower(), "here") == known


async def test_codes_are_void_with_their_user_and_few_at_once() -> None:
    codes = Codes(lambda: 0.0)
    kept = codes.make("you")
    old = [codes.make("me") for _ in range(17)]
    with pytest.raises(AccessDenied):
        codes.claim(old[0], "here")
    assert codes.claim(old[1], "here").user == "me"
    codes.forget("me")
    with pytest.raises(AccessDenied):
        codes.claim(old[2], "here")
    assert codes.claim(kept, "here").user == "you"


@pytest.mark.rules("C2.9")
@pytest.mark.parametrize("ending", ["revoke", "logout", "everywhere"])
async def test_a_code_ends_with_the_token_of_who_asked_for_it(built: BuiltApp, ending: str) -> None:
    code, _ = built.access.new_code()
    phone = AppClient(built, token=(await _claim(built, code)).read(Claimed).token or "")
    taken = (await phone.ask("POST", "/api/auth/pair")).read(Pairing)
    other = (await AppClient(built).ask("POST", "/api/auth/pair")).read(Pairing)
    match ending:
        case "revoke":
            (row,) = (await phone.ask("GET", "/api/auth/tokens")).read(TokenList).tokens
            await AppClient(built).ask("DELETE", f"/api/auth/tokens/{row.id}")
        case "logout":
            await phone.ask("POST", "/api/auth/logout")
        case _:
            await built.access.accounts.set_password("owner", "a new long word", everywhere=True)
    assert (await _claim(built, taken.code)).status == 401
    assert (await _claim(built, other.code)).status == 200


@pytest.mark.rules("C2.9")
async def test_a_request_whose_body_comes_after_its_token_has_ended_does_nothing(
    built: BuiltApp,
) -> None:
    code, _ = built.access.new_code()
    token = (await _claim(built, code)).read(Claimed).token or ""
    sent: list[Message] = []

    async def receive() -> Message:  # asked for when the token was looked at
        await AppClient(built, token=token).ask("POST", "/api/auth/logout")
        return {"type": "http.request", "body": b'{"name":"for ever"}', "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    headers = [
        (b"host", b"127.0.0.1"),
        (b"authorization", f"Bearer {token}".encode()),
        (b"content-type", b"application/json"),
    ]
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/api/auth/tokens",
        "raw_path": b"/api/auth/tokens",
        "query_string": b"",
        "headers": headers,
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        "client": ("127.0.0.1", 1),
        "root_path": "",
        "http_version": "1.1",
    }
    await built.app(scope, receive, send)
    assert sent[0]["status"] == 401
    listed = await AppClient(built).ask("GET", "/api/auth/tokens")
    assert listed.read(TokenList).tokens == ()


async def test_one_address_that_guesses_does_not_close_the_door_to_others() -> None:
    codes = Codes(lambda: 0.0)
    code = codes.make("me")
    for _ in range(10):
        with pytest.raises(AccessDenied):
            codes.claim("AAAA-AAAA", "there")
    with pytest.raises(TooManyTries):
        codes.claim(code, "there")
    for number in range(189):
        with pytest.raises(AccessDenied):
            codes.claim("AAAA-AAAA", f"address {number}")
    assert codes.claim(code, "here").user == "me"
    with pytest.raises(AccessDenied):
        codes.claim("AAAA-AAAA", "here")
    with pytest.raises(TooManyTries):  # nor may many addresses together guess without end
        codes.claim("AAAA-AAAA", "elsewhere")


async def test_the_server_s_own_token_cannot_be_revoked_and_the_answer_says_so(
    built: BuiltApp,
) -> None:
    reply = await AppClient(built).ask("POST", "/api/auth/logout")
    assert reply.status == 400
    assert "towline stop" in reply.read(Problem).detail
