"""Sign-ins by operation: consented here or pasted from elsewhere, refused, given up, replaced."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest

from towline.providers.desk import Desk
from towline.providers.reach import Reach
from towline.providers.sign_in import WaitingSignIns
from towline.secrets import Login, Wallet, kept_secrets
from towline.secrets.testing import MemorySecretStore
from towline_agent.providers.oauth import OAUTH_SERVICES
from towline_agent.providers.testing import FakeAuthorization, fetch_page
from towline_agent.testing import FakeClock
from towline_protocol import (
    FinishSignIn,
    ProviderInfo,
    StartSignIn,
    UsageError,
    encode,
)
from towline_server import ConsentPending, ProviderNotFound, Rejected, SignIns, UpstreamUnavailable

END_S = 30.0
MINE = StartSignIn(
    client_id=FakeAuthorization.client.id, client_secret=FakeAuthorization.client.secret
)


@pytest.fixture(name="server")
async def server_fixture(monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[FakeAuthorization]:
    async with asyncio.timeout(END_S), FakeAuthorization() as server:
        monkeypatch.setitem(OAUTH_SERVICES, "gemini", server.service())
        monkeypatch.setitem(OAUTH_SERVICES, "vertex", server.service("vertex", needs_project=True))
        yield server


class Home:
    """A desk over a wallet in memory."""

    def __init__(self, folder: Path) -> None:
        self.keyring, self.file = MemorySecretStore("the keyring"), MemorySecretStore("the file")
        self.folder = folder
        self.reach = Reach({})
        self.desk = Desk(self.reach, folder, lambda: "gemini/x", wallet=self.wallet)

    def wallet(self) -> Wallet:
        return Wallet(self.keyring, self.file, self.folder / "secrets.json")

    def login(self, provider: str = "gemini") -> Login | None:
        return kept_secrets(self.wallet(), provider).login

    async def info(self) -> ProviderInfo:
        rows = (await self.desk.providers()).providers
        return next(row for row in rows if row.provider == "gemini")


@pytest.fixture(name="home")
async def home_fixture(tmp_path: Path) -> AsyncGenerator[Home]:
    home = Home(tmp_path)
    yield home
    await home.desk.aclose()


async def over(sign_ins: WaitingSignIns) -> None:
    """Wait until no sign-in waits for a person."""
    for _ in range(100_000):
        if not sign_ins.waits("gemini"):
            return
        await asyncio.sleep(0)
    raise AssertionError("It still waits.")


@pytest.mark.rules("A2.66", "A2.69")
async def test_a_consent_on_this_machine_is_kept_and_asked_with(
    server: FakeAuthorization, home: Home
) -> None:
    sign_ins: SignIns = home.desk.sign_ins
    started = await sign_ins.start("google", MINE)
    assert (await home.info()).signing_in
    await server.browse(started.url)
    info = await sign_ins.finish("gemini", FinishSignIn())
    assert (info.state, info.found, info.signed_in) == ("ready", "sign_in", True)
    assert not info.signing_in
    login = home.login()
    assert login is not None
    assert (login.client_id, login.refresh) == (server.client.id, server.refresh_token)
    assert home.reach.credential("gemini") is not None
    assert home.reach.version("gemini") == 1
    assert not any(word in encode(info) for word in (b"1//", b"ya29", b"client-secret"))


@pytest.mark.rules("A2.71")
async def test_a_phone_hands_in_where_its_browser_ended(
    server: FakeAuthorization, home: Home
) -> None:
    started = await home.desk.sign_ins.start("gemini", MINE)
    page = await fetch_page(started.url)
    back = page.headers["location"]  # the phone cannot open it
    with pytest.raises(UsageError, match="does not belong"):
        await home.desk.sign_ins.finish(
            "gemini", FinishSignIn(address="http://127.0.0.1:1/?state=x&code=y")
        )
    info = await home.desk.sign_ins.finish("gemini", FinishSignIn(address=back))
    assert info.signed_in
    with pytest.raises(Rejected, match="No sign-in"):
        await home.desk.sign_ins.finish("gemini", FinishSignIn(address=back))


async def test_a_consent_that_nobody_asks_about_is_kept_all_the_same(
    server: FakeAuthorization, home: Home
) -> None:
    started = await home.desk.sign_ins.start("gemini", MINE)
    await server.browse(started.url)
    await over(home.desk.sign_ins)
    assert (await home.info()).signed_in
    assert (await home.desk.sign_ins.finish("gemini", FinishSignIn())).signed_in


async def test_a_refusal_is_told_and_shown(server: FakeAuthorization, home: Home) -> None:
    server.denies = True
    started = await home.desk.sign_ins.start("gemini", MINE)
    await server.browse(started.url)
    await over(home.desk.sign_ins)
    assert "did not allow" in str((await home.info()).problem)
    with pytest.raises(Rejected, match="did not allow"):
        await home.desk.sign_ins.finish("gemini", FinishSignIn())
    assert (await home.info()).problem is None
    assert home.login() is None


async def test_a_token_endpoint_that_does_not_answer_is_told(
    server: FakeAuthorization, home: Home, monkeypatch: pytest.MonkeyPatch
) -> None:
    gone = msgspec.structs.replace(server.service(), token_url="http://127.0.0.1:9")
    monkeypatch.setitem(OAUTH_SERVICES, "gemini", gone)
    started = await home.desk.sign_ins.start("gemini", MINE)
    await server.browse(started.url)
    with pytest.raises(UpstreamUnavailable):
        await home.desk.sign_ins.finish("gemini", FinishSignIn())


async def test_a_person_who_takes_their_time_is_waited_for_again(
    server: FakeAuthorization,
) -> None:
    async def keep(provider: str, login: Login) -> ProviderInfo:
        del login
        return ProviderInfo(provider=provider, title="x", state="ready")

    sign_ins = WaitingSignIns(lambda _: {}, keep, clock=FakeClock(held=True), finish_s=0.01)
    started = await sign_ins.start("gemini", MINE)
    assert started.expires_at == "2027-01-15T08:05:00.000Z"
    with pytest.raises(ConsentPending):
        await sign_ins.finish("gemini", FinishSignIn())
    await server.browse(started.url)
    await over(sign_ins)
    assert (await sign_ins.finish("gemini", FinishSignIn())).state == "ready"


@pytest.mark.rules("A2.67")
async def test_one_that_is_given_up_listens_no_more(server: FakeAuthorization, home: Home) -> None:
    started = await home.desk.sign_ins.start("gemini", MINE)
    back = (await fetch_page(started.url)).headers["location"]
    await home.desk.sign_ins.cancel("gemini")
    await home.desk.sign_ins.cancel("gemini")
    assert not (await home.info()).signing_in
    with pytest.raises(OSError, match=r"."):
        await fetch_page(back)
    with pytest.raises(Rejected):
        await home.desk.sign_ins.finish("gemini", FinishSignIn())
    first = await home.desk.sign_ins.start("gemini", MINE)
    second = await home.desk.sign_ins.start("gemini", MINE)
    assert first.url != second.url
    with pytest.raises(OSError, match=r"."):
        await fetch_page((await fetch_page(first.url)).headers["location"])
    await server.browse(second.url)
    assert (await home.desk.sign_ins.finish("gemini", FinishSignIn())).signed_in


@pytest.mark.parametrize(
    ("provider", "asked", "kind"),
    [
        ("openai", MINE, Rejected),
        ("nobody", MINE, ProviderNotFound),
        ("gemini", StartSignIn(), UsageError),
        ("gemini", StartSignIn(client_id="a b"), UsageError),
        ("gemini", StartSignIn(client_id="a", client_secret="b c"), UsageError),
        ("vertex", MINE, UsageError),
        ("vertex", StartSignIn(client_id="a", project="p q"), UsageError),
    ],
)
async def test_what_cannot_be_a_sign_in_is_told(
    server: FakeAuthorization,
    home: Home,
    provider: str,
    asked: StartSignIn,
    kind: type[Exception],
) -> None:
    with pytest.raises(kind):
        await home.desk.sign_ins.start(provider, asked)
    assert server.forms == []
