"""What a request carries, and how a sign-in stays fresh."""

import asyncio
import gc
import re
import weakref
from collections.abc import AsyncGenerator
from typing import Any

import msgspec
import pytest

from towline_agent import (
    AuthenticationFailed,
    HttpCall,
    ProviderUnavailable,
    ResponseMalformed,
    TransportFailed,
)
from towline_agent.providers.credential import (
    BearerCredential,
    Credential,
    KeyCredential,
    NoCredential,
    OAuthCredential,
    auth_headers,
    parse_pasted_token,
)
from towline_agent.providers.http import HttpTransport
from towline_agent.providers.oauth import OAUTH_SERVICES, OAuthClient, OAuthTokens
from towline_agent.providers.testing import FakeAuthorization
from towline_agent.testing import FakeClock, Scripted, ScriptedTransport
from towline_protocol import UsageError

START_MS = 1_800_000_000_000
CLIENT = OAuthClient(id="client-of-the-user", secret="client-secret")
SERVICE = OAUTH_SERVICES["gemini"]
SECRETS = re.compile("client-secret|1//old|1//new|ya29")
OLD = OAuthTokens(access="ya29.old", refresh="1//old", expires_ms=START_MS + 3_600_000)


def _said(access: str = "ya29.new", **more: Any) -> bytes:
    return msgspec.json.encode({"access_token": access, "expires_in": 3600, **more})


def _credential(
    transport: ScriptedTransport, clock: FakeClock, tokens: OAuthTokens = OLD, **more: Any
) -> OAuthCredential:
    return OAuthCredential(SERVICE, CLIENT, tokens, transport=transport, clock=clock, **more)


def _refused(status: int, **body: str) -> Scripted:
    return Scripted(status=status, parts=(msgspec.json.encode(body),))


@pytest.mark.rules("A2.64", "A2.65")
@pytest.mark.parametrize(
    ("credential", "plain", "own"),
    [
        (NoCredential(), {}, {}),
        (KeyCredential("sk-1"), {"authorization": "Bearer sk-1"}, {"x-key": "sk-1"}),
        (
            BearerCredential("tok"),
            {"authorization": "Bearer tok"},
            {"authorization": "Bearer tok"},
        ),
        (
            BearerCredential("tok", "my-project"),
            {"authorization": "Bearer tok"},
            {"authorization": "Bearer tok", "x-project": "my-project"},
        ),
    ],
)
async def test_each_kind_of_credential_goes_in_its_header(
    credential: Credential, plain: dict[str, str], own: dict[str, str]
) -> None:
    token = await credential.token()
    assert auth_headers(credential, token) == plain
    headers = auth_headers(credential, token, key_header="x-key", project_header="x-project")
    assert headers == own
    assert "sk-1" not in repr(credential)
    assert "tok" not in repr(credential)


@pytest.mark.rules("A2.64", "A2.72")
async def test_a_sign_in_goes_as_a_bearer_token_with_its_project() -> None:
    credential: Credential = _credential(ScriptedTransport(), FakeClock(), project="my-project")
    token = await credential.token()
    headers = auth_headers(credential, token, key_header="x-key", project_header="x-project")
    assert headers == {"authorization": "Bearer ya29.old", "x-project": "my-project"}


@pytest.mark.rules("A2.68")
async def test_a_token_is_refreshed_a_minute_before_it_ends() -> None:
    clock = FakeClock(START_MS)
    transport = ScriptedTransport(_said())
    credential = _credential(transport, clock)
    clock.advance(3600 - 60.001)
    assert await credential.token() == "ya29.old"
    assert transport.calls == []
    clock.advance(0.001)
    assert await credential.token() == "ya29.new"
    clock.advance(3600 - 60.001)
    assert await credential.token() == "ya29.new"
    (call,) = transport.calls
    assert (call.method, call.url) == ("POST", SERVICE.token_url)
    assert b"grant_type=refresh_token&refresh_token=1%2F%2Fold" in (call.body or b"")


@pytest.mark.rules("A2.68")
async def test_many_tasks_share_one_refresh() -> None:
    go = asyncio.Event()
    transport = ScriptedTransport(Scripted(parts=(go, _said())))
    credential = _credential(transport, FakeClock(), OAuthTokens(refresh="1//old"))
    async with asyncio.timeout(5), asyncio.TaskGroup() as group:
        tasks = [group.create_task(credential.token()) for _ in range(50)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        go.set()
    assert {task.result() for task in tasks} == {"ya29.new"}
    assert len(transport.calls) == 1


@pytest.mark.rules("A2.68")
async def test_the_task_that_refreshes_may_be_cancelled_without_harm_to_the_others() -> None:
    never = asyncio.Event()
    transport = ScriptedTransport(Scripted(parts=(never,)), _said())
    credential = _credential(transport, FakeClock(), OAuthTokens(refresh="1//old"))
    async with asyncio.timeout(5):
        first, second = (asyncio.create_task(credential.token()) for _ in range(2))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        first.cancel()
        assert await second == "ya29.new"
        with pytest.raises(asyncio.CancelledError):
            await first
    assert transport.cancelled == 1


@pytest.mark.rules("A2.68")
def test_no_closed_loop_is_kept_for_the_refresh_that_its_tasks_shared() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    script = [Scripted(parts=(go, _said())) for go in (first, second)]
    clock = FakeClock()
    credential = _credential(ScriptedTransport(*script), clock, OAuthTokens(refresh="1//old"))

    async def share(go: asyncio.Event) -> None:
        tasks = [asyncio.create_task(credential.token()) for _ in range(2)]
        await asyncio.sleep(0)
        go.set()
        await asyncio.wait(tasks)

    loop = asyncio.new_event_loop()
    loop.run_until_complete(share(first))
    loop.close()
    gone = weakref.ref(loop)
    clock.advance(3600)
    asyncio.run(share(second))
    del loop, script, first
    gc.collect()
    assert gone() is None


@pytest.mark.rules("A2.68")
async def test_many_tasks_share_one_failure() -> None:
    go = asyncio.Event()
    refusal = Scripted(status=400, parts=(go, b'{"error":"invalid_grant"}'))
    transport = ScriptedTransport(refusal, _said())
    credential = _credential(transport, FakeClock(), OAuthTokens(refresh="1//old"))
    async with asyncio.timeout(5):
        tasks = [asyncio.create_task(credential.token()) for _ in range(20)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        go.set()
        errors = await asyncio.gather(*tasks, return_exceptions=True)
    assert {type(error) for error in errors} == {AuthenticationFailed}
    assert len(transport.calls) == 1
    assert await credential.token() == "ya29.new"  # the next request asks anew


@pytest.mark.parametrize(
    "refusal",
    [
        _refused(400, error="invalid_grant", error_description="Token 1//old has been revoked."),
        _refused(401, error="invalid_client"),
        _refused(403, error="1//old"),
        Scripted(status=400, parts=(b"<html>client-secret</html>",)),
    ],
)
async def test_a_sign_in_that_ended_says_how_to_get_a_new_one(refusal: Scripted) -> None:
    credential = _credential(ScriptedTransport(refusal), FakeClock(), OAuthTokens(refresh="1//old"))
    with pytest.raises(AuthenticationFailed, match="run `towline login gemini`") as caught:
        await credential.token()
    assert not caught.value.retryable
    assert not SECRETS.search(f"{caught.value} {caught.value!r} {credential!r}")


@pytest.mark.parametrize(
    "failure",
    [
        Scripted(parts=(TransportFailed("refused"),)),
        Scripted(parts=(TransportFailed("idle"),)),
        _refused(503, error="1//old"),
        Scripted(status=500),
        _refused(403, error="rate_limit_exceeded"),
        _refused(400, error="temporarily_unavailable"),
    ],
)
async def test_a_failure_that_passes_can_be_tried_again(failure: Scripted) -> None:
    transport = ScriptedTransport(failure, _said())
    credential = _credential(transport, FakeClock(), OAuthTokens(refresh="1//old"))
    with pytest.raises(ProviderUnavailable) as caught:
        await credential.token()
    assert caught.value.retryable
    assert not SECRETS.search(f"{caught.value} {caught.value!r}")
    assert await credential.token() == "ya29.new"


@pytest.mark.rules("A2.68")
async def test_an_old_token_serves_until_its_end_while_the_service_is_down() -> None:
    clock = FakeClock(START_MS)
    down = Scripted(parts=(TransportFailed("refused"),))
    credential = _credential(ScriptedTransport(down, down), clock)
    clock.advance(3600 - 30)
    assert await credential.token() == "ya29.old"
    clock.advance(30)
    with pytest.raises(ProviderUnavailable):
        await credential.token()


async def test_a_token_without_a_refresh_token_ends_with_a_clear_word() -> None:
    clock = FakeClock(START_MS)
    tokens = OAuthTokens(access="ya29.old", expires_ms=START_MS + 120_000)
    credential = _credential(ScriptedTransport(), clock, tokens)
    assert await credential.token() == "ya29.old"
    clock.advance(120)
    with pytest.raises(AuthenticationFailed, match="towline login gemini"):
        await credential.token()


async def test_a_replaced_refresh_token_is_kept() -> None:
    kept: list[OAuthTokens] = []

    async def keep(tokens: OAuthTokens) -> None:
        kept.append(tokens)

    clock = FakeClock()
    transport = ScriptedTransport(_said(), _said(refresh_token="1//new"), _said())
    credential = _credential(transport, clock, OAuthTokens(refresh="1//old"), keep=keep)
    for _ in range(3):
        await credential.token()
        clock.advance(3600)
    assert [tokens.refresh for tokens in kept] == ["1//new"]
    sent = [call.body or b"" for call in transport.calls]
    assert [b"%2F%2Fnew" in body for body in sent] == [False, False, True]


@pytest.mark.parametrize(
    "body",
    [b"", b"{}", b"[]", b'{"access_token":""}', b'{"access_token":7}', b"ya29.<html>", b"\xff"],
)
async def test_an_answer_without_a_token_in_it_is_malformed(body: bytes) -> None:
    credential = _credential(ScriptedTransport(body), FakeClock(), OAuthTokens(refresh="1//old"))
    with pytest.raises(ResponseMalformed) as caught:
        await credential.token()
    assert caught.value.__cause__ is None
    assert not SECRETS.search(str(caught.value))


async def test_seconds_that_come_as_text_count() -> None:
    transport = ScriptedTransport(b'{"access_token":"ya29.new","expires_in":"3599"}', _said())
    clock = FakeClock()
    credential = _credential(transport, clock, OAuthTokens(refresh="1//old"))
    await credential.token()
    clock.advance(3599 - 61)
    await credential.token()
    assert len(transport.calls) == 1
    clock.advance(1)
    await credential.token()
    assert len(transport.calls) == 2


def test_a_credential_goes_on_in_another_loop() -> None:
    clock = FakeClock()
    credential = _credential(
        ScriptedTransport(_said(), _said()), clock, OAuthTokens(refresh="1//old")
    )

    async def both() -> None:
        assert await asyncio.gather(credential.token(), credential.token()) == ["ya29.new"] * 2

    for _ in range(2):
        asyncio.run(both())
        clock.advance(3600)


@pytest.fixture(name="server")
async def server_fixture() -> AsyncGenerator[FakeAuthorization]:
    async with asyncio.timeout(20), FakeAuthorization() as server:
        yield server


@pytest.mark.rules("A2.68")
async def test_one_refresh_over_real_http_serves_all_and_follows_a_rotation(
    server: FakeAuthorization,
) -> None:
    server.rotates = True
    transport = HttpTransport()
    clock = FakeClock()
    credential = OAuthCredential(
        server.service(),
        server.client,
        OAuthTokens(refresh=server.refresh_token),
        transport=transport,
        clock=clock,
    )
    try:
        for _ in range(2):
            given = await asyncio.gather(*(credential.token() for _ in range(10)))
            assert len(set(given)) == 1
            clock.advance(3600)
        server.refuses = "invalid_grant"
        with pytest.raises(AuthenticationFailed) as caught:
            await credential.token()
    finally:
        await transport.aclose()
    assert [form["grant_type"] for form in server.forms] == ["refresh_token"] * 3
    assert not re.search("client-secret|refresh-", str(caught.value))


@pytest.mark.rules("A2.72")
@pytest.mark.parametrize(
    ("pasted", "token", "project", "refresh"),
    [
        ("1//0abc", "1//0abc", None, True),
        (" ya29.abc|my-project\n", "ya29.abc", "my-project", False),
        ("1//0abc | my-project", "1//0abc", "my-project", True),
        ("ya29.abc|", "ya29.abc", None, False),
    ],
)
def test_a_pasted_token_is_known_for_what_it_is(
    pasted: str, token: str, project: str | None, refresh: bool
) -> None:
    found = parse_pasted_token(OAUTH_SERVICES["vertex"], pasted)
    assert (found.token, found.project, found.refresh) == (token, project, refresh)
    assert token not in repr(found)


@pytest.mark.parametrize("pasted", ["", "  ", "|my-project", "ya29 abc", "ya29.é", "ya29.a|my\tp"])
def test_what_is_no_token_is_refused_without_repeating_it(pasted: str) -> None:
    with pytest.raises(UsageError, match="Copy it anew") as caught:
        parse_pasted_token(SERVICE, pasted)
    assert "ya29" not in caught.value.message


def test_nothing_secret_stands_in_a_repr() -> None:
    call = HttpCall(url=SERVICE.token_url, body=b"client_secret=client-secret")
    credential = _credential(ScriptedTransport(), FakeClock())
    assert not SECRETS.search(f"{call!r} {CLIENT!r} {OLD!r} {credential!r} {[OLD]!r}")
