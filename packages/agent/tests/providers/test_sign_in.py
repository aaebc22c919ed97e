"""Signing in: the whole flow over real HTTP, and everything that tries to disturb it."""

import asyncio
import contextlib
import re
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlencode, urlsplit

import msgspec
import pytest

from towline_agent import AuthenticationFailed
from towline_agent.providers.http import HttpTransport
from towline_agent.providers.oauth import OAUTH_SERVICES
from towline_agent.providers.sign_in import OAuthSignIn
from towline_agent.providers.testing import FakeAuthorization, fetch_page
from towline_agent.testing import FakeClock
from towline_protocol import UsageError


@pytest.fixture(name="server")
async def server_fixture() -> AsyncGenerator[FakeAuthorization]:
    async with asyncio.timeout(20), FakeAuthorization() as server:
        yield server


@pytest.fixture(name="transport")
async def transport_fixture() -> AsyncGenerator[HttpTransport]:
    made = HttpTransport()
    yield made
    await made.aclose()


@pytest.fixture(name="sign_in")
def sign_in_fixture(server: FakeAuthorization, transport: HttpTransport) -> OAuthSignIn:
    return OAuthSignIn(server.service(), server.client, transport=transport)


def _query(url: str) -> dict[str, str]:
    return {name: values[0] for name, values in parse_qs(urlsplit(url).query).items()}


def _back(sign_in: OAuthSignIn, **changes: str) -> str:
    """The address to come back to with an answer that is right but for the changes."""
    asked = _query(sign_in.url)
    fields = {"state": asked["state"], "code": "code-1", **changes}
    return f"{asked['redirect_uri']}?{urlencode(fields)}"


@pytest.mark.rules("A2.66")
async def test_a_consent_in_the_browser_gives_tokens(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    async with sign_in:
        asked = _query(sign_in.url)
        page = await server.browse(sign_in.url)
        tokens = await sign_in.tokens()
    assert asked["code_challenge_method"] == "S256"
    assert asked["redirect_uri"].startswith("http://127.0.0.1:")
    assert (page.status, "Received" in page.text) == (200, True)
    assert page.headers["cache-control"] == "no-store"
    assert tokens.access.startswith("ya29.")
    assert tokens.refresh == server.refresh_token
    (form,) = server.forms
    assert form["redirect_uri"] == asked["redirect_uri"]
    assert len(form["code_verifier"]) >= 43
    assert form["code_verifier"] not in sign_in.url


@pytest.mark.rules("A2.66")
async def test_a_way_back_with_another_state_is_refused_and_changes_nothing(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    async with sign_in:
        for state in ("", "guessed", _query(sign_in.url)["state"] + "x", "é"):
            page = await fetch_page(_back(sign_in, state=state, code="stolen"))
            assert (page.status, "Not this sign-in" in page.text) == (400, True)
        asked = _query(sign_in.url)
        page = await fetch_page(f"{asked['redirect_uri']}?code=stolen")
        assert page.status == 400
        twice = f"{_back(sign_in, code='stolen')}&state=guessed"
        assert (await fetch_page(twice)).status == 400
        await server.browse(sign_in.url)
        await sign_in.tokens()
    assert [form["code"] for form in server.forms] == ["code-1"]


@pytest.mark.rules("A2.66")
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({"host": "evil.example"}, 403),
        ({"host": "127.0.0.1.evil.example"}, 403),
        ({"method": "POST"}, 405),
        ({"head": b"GET /favicon.ico HTTP/1.1\r\nHost: {host}\r\n\r\n"}, 404),
        ({"head": b"GET // HTTP/1.1\r\nHost: {host}\r\n\r\n"}, 404),
        ({"head": b"GET http://[ HTTP/1.1\r\nHost: {host}\r\n\r\n"}, 400),
        ({"head": b"\x16\x03\x01\x02\x00\r\n\r\n"}, 400),
        ({"head": b"GET /callback?%s HTTP/1.1\r\nHost: {host}\r\n\r\n" % (b"a=1&" * 50)}, 400),
    ],
)
async def test_a_caller_that_is_no_browser_on_its_way_back_is_shown_out(
    server: FakeAuthorization,
    sign_in: OAuthSignIn,
    changes: dict[str, str | bytes],
    status: int,
) -> None:
    async with sign_in:
        host = urlsplit(_query(sign_in.url)["redirect_uri"]).netloc
        call: dict[str, str | bytes] = {
            name: value.replace(b"{host}", host.encode()) if isinstance(value, bytes) else value
            for name, value in changes.items()
        }
        page = await fetch_page(_back(sign_in), **call)  # pyright: ignore[reportArgumentType]
        assert page.status == status
        assert "<h1>" in page.text
        await server.browse(sign_in.url)
        assert (await sign_in.tokens()).access


@pytest.mark.rules("A2.66")
async def test_an_endless_request_is_hung_up_on(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    async with sign_in:
        with pytest.raises((EOFError, OSError)):
            await fetch_page(_back(sign_in), head=b"GET /" + b"a" * 100_000)
        await server.browse(sign_in.url)
        assert (await sign_in.tokens()).access


@pytest.mark.rules("A2.66")
async def test_many_silent_callers_are_bounded_and_keep_neither_browser_nor_listener_up(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    surprises: list[object] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: surprises.append(context))
    async with sign_in:
        parts = urlsplit(_back(sign_in))
        callers = [await asyncio.open_connection(parts.hostname, parts.port) for _ in range(16)]
        callers[0][1].write(b"GET / HTTP/1.1\r\nhost: ")  # never ends
        await server.browse(sign_in.url)
        assert (await sign_in.tokens()).access
        assert await callers[0][0].read() == b"", "the oldest had to go"
        callers.append(await asyncio.open_connection(parts.hostname, parts.port))
    for reader, writer in callers:
        with contextlib.suppress(ConnectionError):
            assert await reader.read() == b""
        writer.close()
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert surprises == []


async def test_a_machine_without_a_port_is_told_of_the_other_way(
    sign_in: OAuthSignIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def start_server(*_: object, **__: object) -> None:
        raise OSError(99, "Cannot assign requested address")

    monkeypatch.setattr(asyncio, "start_server", start_server)
    with pytest.raises(UsageError, match=r"Cannot assign.*--token"):
        async with sign_in:
            pytest.fail("it listens all the same")


@pytest.mark.rules("A2.66")
async def test_only_the_first_answer_counts(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    async with sign_in:
        await server.browse(sign_in.url)
        again = await fetch_page(_back(sign_in, code="other"))
        await sign_in.tokens()
    assert (again.status, "Already used" in again.text) == (410, True)
    assert [form["code"] for form in server.forms] == ["code-1"]


@pytest.mark.rules("A2.66")
async def test_a_page_repeats_nothing_that_it_was_sent(sign_in: OAuthSignIn) -> None:
    async with sign_in:
        for state in ("<script>", _query(sign_in.url)["state"]):
            page = await fetch_page(_back(sign_in, state=state, error="<script>alert(1)</script>"))
            assert "script" not in page.text
        with pytest.raises(AuthenticationFailed) as caught:
            await sign_in.tokens()
    assert "script" not in caught.value.message


async def test_a_refused_consent_says_so_in_both_places(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    server.denies = True
    async with sign_in:
        page = await server.browse(sign_in.url)
        with pytest.raises(AuthenticationFailed, match="You did not allow it") as caught:
            await sign_in.tokens()
    assert "Not signed in" in page.text
    assert "towline login gemini" in caught.value.message
    assert server.forms == []


@pytest.mark.rules("A2.67")
async def test_nobody_who_consents_within_five_minutes_ends_the_sign_in(
    server: FakeAuthorization, transport: HttpTransport
) -> None:
    clock = FakeClock(held=True)
    sign_in = OAuthSignIn(server.service(), server.client, transport=transport, clock=clock)
    async with sign_in:
        back = _back(sign_in)
        waiting = asyncio.create_task(sign_in.tokens())
        await clock.wait_for_sleeper()
        clock.advance(299.0)
        await asyncio.sleep(0)
        assert not waiting.done()
        clock.advance(1.0)
        with pytest.raises(AuthenticationFailed, match="within 300 s"):
            await waiting
        assert (await fetch_page(back)).status == 410
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await fetch_page(back)


@pytest.mark.rules("A2.67")
async def test_a_cancel_tears_the_sign_in_down(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    back: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def wait() -> None:
        async with sign_in:
            back.set_result(_back(sign_in))
            await sign_in.tokens()

    waiting = asyncio.create_task(wait())
    address = urlsplit(await back)
    _, writer = await asyncio.open_connection(address.hostname, address.port)
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    writer.close()
    with pytest.raises(OSError, match=r"refused|Connect call failed"):
        await fetch_page(back.result())
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert server.forms == []


@pytest.mark.rules("A2.67")
async def test_a_cancel_while_the_tokens_are_fetched_ends_it_too(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    server.held = asyncio.Event()
    async with sign_in:
        await server.browse(sign_in.url)
        waiting = asyncio.create_task(sign_in.tokens())
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting


@pytest.mark.rules("A2.71")
@pytest.mark.parametrize("around", ["{}", "  {}\n", "'{}'", "<{}>"])
async def test_the_address_where_a_phone_ended_can_be_pasted(
    server: FakeAuthorization, sign_in: OAuthSignIn, around: str
) -> None:
    async with sign_in:
        consent = await fetch_page(sign_in.url)
        sign_in.offer(around.format(consent.headers["location"]))
        tokens = await sign_in.tokens()
    assert tokens.refresh == server.refresh_token


@pytest.mark.rules("A2.71")
@pytest.mark.parametrize(
    ("pasted", "says"),
    [
        ("", "whole address"),
        ("4/0AbCdEf", "whole address"),
        ("http://[", "whole address"),
        ("http://127.0.0.1:1/callback?code=secret-code&state=other", "does not belong"),
        ("http://127.0.0.1:1/callback?code=secret-code", "does not belong"),
    ],
)
async def test_what_is_pasted_wrongly_can_be_pasted_again(
    server: FakeAuthorization, sign_in: OAuthSignIn, pasted: str, says: str
) -> None:
    async with sign_in:
        with pytest.raises(UsageError, match=says) as caught:
            sign_in.offer(pasted)
        assert "secret-code" not in caught.value.message
        await server.browse(sign_in.url)
        assert (await sign_in.tokens()).access


async def test_a_code_that_is_not_accepted_says_what_to_do_and_no_secret(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    async with sign_in:
        await fetch_page(_back(sign_in, code="made-up"))
        with pytest.raises(AuthenticationFailed, match=r"invalid_grant.*towline login gemini") as e:
            await sign_in.tokens()
    assert not re.search("made-up|client-secret", f"{e.value} {e.value!r} {e.value.__cause__}")


async def test_a_consent_that_leaves_something_out_is_not_taken(
    server: FakeAuthorization, sign_in: OAuthSignIn
) -> None:
    server.scope = "https://scopes.example/other"
    async with sign_in:
        await server.browse(sign_in.url)
        with pytest.raises(AuthenticationFailed, match="allow all"):
            await sign_in.tokens()


async def test_two_sign_ins_share_no_secret(server: FakeAuthorization) -> None:
    seen: list[str] = []
    for _ in range(2):
        async with OAuthSignIn(server.service(), server.client) as sign_in:
            asked = _query(sign_in.url)
            seen += [asked["state"], asked["code_challenge"]]
            assert asked["state"] not in repr(sign_in)
    assert len(set(seen)) == 4
    assert min(map(len, seen)) >= 43


@pytest.mark.rules("A2.69")
@pytest.mark.parametrize("provider", ["gemini", "vertex"])
async def test_googles_page_is_asked_in_the_name_of_the_users_own_client(
    server: FakeAuthorization, provider: str
) -> None:
    service = OAUTH_SERVICES[provider]
    async with OAuthSignIn(service, server.client) as sign_in:
        asked = _query(sign_in.url)
    assert sign_in.url.startswith("https://accounts.google.com/o/oauth2/v2/auth?")
    assert asked["client_id"] == server.client.id
    assert "https://www.googleapis.com/auth/cloud-platform" in asked["scope"].split()
    assert (asked["access_type"], asked["prompt"]) == ("offline", "consent")
    assert service.token_url.startswith("https://oauth2.googleapis.com/")
    # no registration of anybody's is built in
    assert "client" not in " ".join(msgspec.structs.asdict(service))
