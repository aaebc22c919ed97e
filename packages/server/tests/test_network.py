"""A server on a network: when it starts, what it is called, whom it believes, what it logs."""

import asyncio
import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from http.cookies import SimpleCookie
from pathlib import Path

import aiohttp
import pytest

from towline_agent import SystemClock, mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import AddUser, Claim, CreateToken, Login, NewToken, Problem, UsageError
from towline_server import main
from towline_server.api.accounts import Accounts
from towline_server.auth.hosts import Hosts, is_loopback, reach_url
from towline_server.config import Config
from towline_server.main import Ready, RunFile, serve
from towline_server.sessions.agents import DEFAULT_AGENT, AgentSpec, Connection
from towline_server.store.sqlite_store import open_store
from towline_server.testing import AppClient, open_test_app, open_test_server

PASSWORD = "correct horse battery"
PATIENCE_S = 20.0


@pytest.mark.parametrize("host", ["127.0.0.1", "127.8.8.8", "::1", "localhost", "LOCALHOST"])
def test_loopback_is_this_machine_alone(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize(
    "host",
    [
        "0.0.0.0",
        "::",
        "192.168.1.5",
        "desk",
        "127.1",
        "",
        "localhost.example.org",
        "::ffff:127.0.0.1",
    ],
)
def test_what_may_be_reached_from_elsewhere_counts_as_a_network(host: str) -> None:
    assert not is_loopback(host)


def test_on_loopback_a_server_has_few_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "Desk.Home")
    hosts = Hosts("127.0.0.1", ("mine.example.org",), url="https://Line.example.org:8443")
    for name in ("desk", "desk.home", "desk.local", "mine.example.org", "line.example.org"):
        assert name in hosts
    for name in ("192.168.1.5", "[fd00::1]", "evil.example", "", "mine.example.org.evil.example"):
        assert name not in hosts
    assert None not in hosts


def test_on_a_network_any_bare_address_is_a_name_and_no_foreign_name_is() -> None:
    hosts = Hosts("0.0.0.0")
    for name in ("192.168.1.5", "[fd00::1]", "10.0.0.1"):
        assert name in hosts
    for name in ("evil.example", "192.168.1.5.evil.example", "0x7f000001", "1"):
        assert name not in hosts


def test_a_link_names_what_other_devices_reach() -> None:
    assert reach_url("192.168.1.5", 4747) == "http://192.168.1.5:4747"
    assert reach_url("fd00::1", 80) == "http://[fd00::1]:80"
    assert "0.0.0.0" not in reach_url("0.0.0.0", 4747)
    assert reach_url("::", 4747) == reach_url("0.0.0.0", 4747)


@asynccontextmanager
async def _serving(config: Config, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Ready]:
    """A whole server, stopped at the end as by a signal."""
    stop: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    ready: asyncio.Future[Ready] = asyncio.get_running_loop().create_future()

    @contextmanager
    def no_signals() -> Generator[asyncio.Future[None]]:
        yield stop

    monkeypatch.setattr(main, "_signals", no_signals)

    async def connect(model: str) -> Connection:
        del model
        return Connection(ScriptedProvider())

    task = asyncio.create_task(
        serve(
            config,
            agents={DEFAULT_AGENT: AgentSpec(name=DEFAULT_AGENT)},
            connect=connect,
            default_model="a/b",
            version="0",
            on_ready=ready.set_result,
            run_file=config.data_dir / "run.json",
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        await asyncio.wait({task, ready}, return_when=asyncio.FIRST_COMPLETED)
        try:
            if not ready.done():
                await task  # raises why
            yield ready.result()
        finally:
            stop.set_result(None)
            await asyncio.wait({task})
    task.result()


async def test_another_address_without_a_password_is_refused_before_anything_is_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bound: list[object] = []

    def note(*where: object, **more: object) -> None:
        bound.append((where, more))

    monkeypatch.setattr(main, "open_listener", note)
    config = Config(data_dir=tmp_path / "data", roots=(tmp_path,), host="0.0.0.0", port=0)
    with pytest.raises(UsageError) as caught:
        async with _serving(config, monkeypatch):
            pass
    assert caught.value.message == (
        "host = '0.0.0.0' would let the network in, and no user has a password yet: set one with "
        "`towline users password owner`, or leave host at 127.0.0.1."
    )
    assert bound == []


async def test_with_a_password_it_listens_on_the_network_and_a_link_says_where(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = await open_store(tmp_path / "data", mint=mint_now)
    accounts = Accounts(store, now_ms=SystemClock().now_ms, mint=mint_now)
    await accounts.set_password("owner", PASSWORD)
    accounts.passwords.close()
    await store.close()
    config = Config(data_dir=tmp_path / "data", roots=(tmp_path,), host="0.0.0.0", port=0)
    async with _serving(config, monkeypatch) as ready:
        assert ready.url.startswith("http://127.0.0.1:")
        port = ready.url.rpartition(":")[2]
        assert ready.pairing_url == f"{reach_url('0.0.0.0', int(port))}/#code={ready.code}"
        async with aiohttp.ClientSession() as client:
            async with client.get(f"{ready.url}/api/auth/me") as answer:
                assert answer.status == 401
            body = {"password": PASSWORD}
            async with client.post(f"{ready.url}/api/auth/login", json=body) as answer:
                assert answer.status == 200


async def test_an_address_that_is_set_stands_in_links(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = "https://desk.example.org"
    config = Config(data_dir=tmp_path / "data", roots=(tmp_path,), port=0, url=url)
    async with _serving(config, monkeypatch) as ready:
        assert ready.pairing_url == f"{url}/#code={ready.code}"


@pytest.mark.parametrize(
    ("proxies", "believed"), [(("127.0.0.1",), True), (("10.0.0.0/8",), False), ((), False)]
)
async def test_only_the_word_of_a_known_proxy_counts(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    proxies: tuple[str, ...],
    *,
    believed: bool,
) -> None:
    monkeypatch.setenv("FORWARDED_ALLOW_IPS", "*")
    provider = ScriptedProvider()
    async with open_test_server(provider, root=tmp_path, proxies=proxies) as built:
        await built.access.accounts.set_password("owner", PASSWORD)
        headers = {"x-forwarded-proto": "https", "x-forwarded-for": "203.0.113.9"}
        body = {"password": PASSWORD, "cookie": True}
        async with (
            aiohttp.ClientSession() as client,
            client.post(f"{built.url}/api/auth/login", json=body, headers=headers) as answer,
        ):
            assert answer.status == 200
            (name,) = SimpleCookie(answer.headers["set-cookie"])
        assert name.startswith("__Host-") is believed


async def test_no_secret_is_logged_whatever_is_asked(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        local, nobody = AppClient(built), AppClient(built, token="")
        new = AddUser(name="ann", password=PASSWORD)
        assert (await local.ask("POST", "/api/users", new)).status == 201
        login = Login(user="ann", password=PASSWORD)
        logged_in = await nobody.ask("POST", "/api/auth/login", login)
        wrong = Login(user="ann", password="a wrong password")
        refused = await nobody.ask("POST", "/api/auth/login", wrong)
        made = await local.ask("POST", "/api/auth/tokens", CreateToken(name="bot"))
        code, _ = built.access.new_code()
        claimed = await nobody.ask("POST", "/api/auth/claim", Claim(code=code))
        bad = await nobody.ask("POST", "/api/auth/claim", Claim(code="BADC-ODE2"))
        foreign = await AppClient(built, token="twl_foreign-token").ask("GET", "/api/auth/me")
        short = await local.ask("POST", "/api/users", AddUser(name="bob", password="shorty"))
        broken = await nobody.ask("POST", "/api/auth/login", b'{"password": "half a secr')
        shown = repr((built, logged_in.status, RunFile(url="u", pid=1, token=built.token)))
    secrets = [PASSWORD, "a wrong password", "shorty", "half a secr", "twl_", code, "BADC"]
    for reply in (refused, bad, foreign, short, broken):
        assert reply.status >= 400
        assert not [secret for secret in secrets if secret in reply.read(Problem).detail]
    assert made.read(NewToken).token.startswith("twl_")
    assert claimed.status == 200
    assert "POST /api/auth/login 200" in caplog.text  # it was logged at all
    assert not [secret for secret in secrets if secret in caplog.text + shown]
