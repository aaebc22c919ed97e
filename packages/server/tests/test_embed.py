"""The session service as a part of another web app, with that app's users."""

import asyncio
import os
import re
import tempfile
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import pytest
from starlette.applications import Starlette
from starlette.requests import HTTPConnection
from starlette.routing import Mount

from towline_agent.testing import ScriptedProvider
from towline_agent.workspaces.scratch import make_scratch
from towline_protocol import (
    AREAS,
    Capabilities,
    ChangePassword,
    Claim,
    CreateSession,
    Identity,
    Login,
    Problem,
    SessionList,
    Text,
    UsageError,
)
from towline_server import (
    DEFAULT_AGENT,
    AgentSpec,
    Caller,
    Config,
    Connection,
    EmbeddedApp,
    StoreLocked,
    create_app,
)
from towline_server.auth.reserved_name import RESERVED_NAMES
from towline_server.stream.testing import Wire
from towline_server.testing import AppClient

USERS = {
    "ann's badge": Caller("ann"),
    "eve's badge": Caller("eve"),
    **{f"{name}'s badge": Caller(name) for name in RESERVED_NAMES},
}


async def who(connection: HTTPConnection) -> Caller | None:
    return USERS.get(connection.headers.get("x-badge", ""))


def _app(
    folder: Path,
    provider: ScriptedProvider,
    *,
    own: bool = False,
    agents: tuple[str, ...] = (DEFAULT_AGENT,),
    connect: Any = None,
    pages: bool = False,
) -> EmbeddedApp:
    async def usual(model: str) -> Connection:
        del model
        return Connection(provider)

    return create_app(
        Config(data_dir=folder / "data", roots=(folder,), hosts=("app.example.org",)),
        agents={name: AgentSpec(name=name) for name in agents},
        connect=connect or usual,
        default_model="a/b",
        authenticate=None if own else who,
        pages=pages,
        grace_s=0.1,
    )


@dataclass(frozen=True)
class Outer:
    """Another program's app, with the session service in it."""

    app: Any
    token: str = ""

    def client(self, badge: str = "", host: str = "app.example.org") -> AppClient:
        return AppClient(self, prefix="/agent", headers={"x-badge": badge, "host": host})


@asynccontextmanager
async def _mounted(app: EmbeddedApp) -> AsyncGenerator[Outer]:
    outer = Starlette(routes=[Mount("/agent", app=app)], lifespan=app.lifespan)
    async with outer.router.lifespan_context(outer):
        yield Outer(outer)


async def test_users_of_the_outer_app_drive_sessions_and_do_not_see_each_other(
    tmp_path: Path,
) -> None:
    provider = ScriptedProvider("good morning", "good evening")
    async with _mounted(_app(tmp_path, provider)) as outer:
        ann, eve = outer.client("ann's badge"), outer.client("eve's badge")
        assert (await ann.ask("GET", "/api/auth/me")).read(Identity).user == "ann"
        session = await ann.create(CreateSession(title="ann's plan"))
        async with ann.follow(session) as wire:
            assert (await ann.prompt(session, "hello")).status == 202
            await wire.until(lambda: b'"turn_completed"' in b"".join(wire.pieces))
        assert b"good morning" in b"".join(wire.pieces)
        for method, path in (("GET", ""), ("GET", "/view"), ("POST", "/retry")):
            foreign = await eve.ask(method, f"/api/sessions/{session}{path}")
            assert foreign.status == 404
            assert b"ann" not in foreign.body
        assert (await eve.ask("GET", "/api/sessions")).read(SessionList).sessions == ()
        mine = await eve.create()
        rows = (await ann.ask("GET", "/api/sessions")).read(SessionList).sessions
        assert [row.id for row in rows] == [session]
        assert mine != session


@pytest.mark.parametrize(
    ("agents", "first"),
    [(("helper",), "helper"), (("a", "b"), "a"), (("a", DEFAULT_AGENT), DEFAULT_AGENT)],
)
async def test_a_session_without_an_agent_has_the_first_that_the_capabilities_name(
    tmp_path: Path, agents: tuple[str, ...], first: str
) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider("good morning"), agents=agents)) as outer:
        ann = outer.client("ann's badge")
        offered = (await ann.ask("GET", "/api/capabilities")).read(Capabilities).agents
        assert offered[0].name == first
        assert {offer.name for offer in offered} == {*agents}
        session = await ann.create()
        assert (await ann.view(session)).agent == first
        await _finish(ann, session)


async def _finish(client: AppClient, session: str) -> bytes:
    """Say hello, and give the stream up to the turn's end."""
    async with client.follow(session) as wire:
        assert (await client.prompt(session, "hello")).status == 202
        ends = (b'"turn_completed"', b'"turn_failed"')
        await wire.until(lambda: any(end in b"".join(wire.pieces) for end in ends))
    return b"".join(wire.pieces)


async def test_a_plain_function_that_gives_a_provider_connects_as_well(tmp_path: Path) -> None:
    provider = ScriptedProvider("good morning")

    def connect(model: str) -> ScriptedProvider:
        assert model == "a/b"
        return provider

    async with _mounted(_app(tmp_path, provider, connect=connect)) as outer:
        ann = outer.client("ann's badge")
        assert b"good morning" in await _finish(ann, await ann.create())


async def test_what_connects_to_no_provider_is_named_in_the_turn_s_end(tmp_path: Path) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider(), connect=str)) as outer:
        ann = outer.client("ann's badge")
        ended = await _finish(ann, await ann.create())
    assert b"`connect` gave 'str' for 'a/b'; have it return a provider" in ended


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"connect": "openai"}, "connect='openai' cannot be called"),
        ({"agents": {}}, "There is no agent; give one"),
        ({"agents": {"a": AgentSpec(name="b")}}, "The agent 'a' has a spec of the name 'b'"),
    ],
)
def test_what_cannot_be_embedded_is_told_at_once(
    tmp_path: Path, changed: dict[str, Any], says: str
) -> None:
    def connect(model: str) -> ScriptedProvider:
        raise AssertionError(model)

    given: dict[str, Any] = {"agents": {"a": AgentSpec(name="a")}, "connect": connect, **changed}
    with pytest.raises(UsageError) as caught:
        create_app(Config(data_dir=tmp_path / "data"), default_model="a/b", **given)
    assert caught.value.message.startswith(says)


async def test_a_page_below_a_prefix_is_none_and_the_log_says_so_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    app = _app(tmp_path, ScriptedProvider(), pages=True)
    async with _mounted(app) as outer:
        for _ in range(2):
            assert (await outer.client().ask("GET", "/")).status == 404
    (line,) = [record.getMessage() for record in caplog.records]
    assert "mounted at '/agent', so `pages=True` has no effect" in line


async def test_the_capabilities_leave_out_what_the_outer_app_does(tmp_path: Path) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider())) as outer:
        ann = outer.client("ann's badge")
        found = (await ann.ask("GET", "/api/capabilities")).read(Capabilities)
    assert {*AREAS.values()} - {*found.areas} == {"auth", "model"}


async def test_who_the_outer_app_does_not_know_comes_not_in(tmp_path: Path) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider())) as outer:
        for badge in ("", "a forged badge"):
            refused = await outer.client(badge).ask("GET", "/api/auth/me")
            assert (refused.status, refused.read(Problem).code) == (401, "unauthorized")
        assert (await outer.client().ask("GET", "/healthz")).status == 200
        elsewhere = await outer.client("ann's badge", "evil.example").ask("GET", "/api/auth/me")
        assert elsewhere.status == 403


async def test_the_outer_app_calls_nobody_as_logs_call_what_nobody_decided(tmp_path: Path) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider())) as outer:
        for name in RESERVED_NAMES:
            refused = await outer.client(f"{name}'s badge").ask("GET", "/api/auth/me")
            problem = refused.read(Problem)
            assert (refused.status, problem.reason) == (401, "reserved_name")
            assert repr(name) in problem.detail


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/api/auth/login", Login(password="correct horse")),
        ("POST", "/api/auth/claim", Claim(code="ABCD-EFGH")),
        ("POST", "/api/auth/pair", None),
        ("POST", "/api/auth/logout", None),
        ("GET", "/api/auth/tokens", None),
        ("PUT", "/api/users/ann/password", ChangePassword(password="correct horse")),
    ],
)
async def test_the_server_has_no_users_of_its_own_then(
    tmp_path: Path, method: str, path: str, body: Any
) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider())) as outer:
        refused = await outer.client("ann's badge").ask(method, path, body)
        assert (refused.status, refused.read(Problem).code) == (404, "capability_unavailable")


async def test_every_path_of_the_contract_lies_below_the_prefix(tmp_path: Path) -> None:
    async with _mounted(_app(tmp_path, ScriptedProvider())) as outer:
        ann = outer.client("ann's badge")
        document = msgspec.json.decode((await ann.ask("GET", "/openapi.json")).body)
        assert document["servers"] == [{"url": "/agent"}]
        page = (await ann.ask("GET", "/docs")).body.decode()
        assert re.findall(r'href="([^"#]+)"', page) == [
            "openapi.json",
            "api/manifest",
        ]  # from where the page lies
        missing = await ann.ask("GET", "/api/nothing")
        problem = missing.read(Problem)
        assert (missing.status, problem.code) == (404, "not_found")
        assert (
            problem.detail
            == "There is nothing at '/agent/api/nothing'; /agent/docs lists what there is."
        )
        wrong = await ann.ask("DELETE", "/api/auth/me")
        assert (wrong.status, wrong.headers["allow"]) == (405, "GET, HEAD")
        assert (await ann.ask("GET", "/")).status == 404  # the page is not part of it


async def test_before_its_lifespan_and_after_it_answers_that_it_does_not_run(
    tmp_path: Path,
) -> None:
    app = _app(tmp_path, ScriptedProvider())
    client = AppClient(Outer(app), headers={"x-badge": "ann's badge"})
    early = await client.ask("GET", "/healthz")
    assert (early.status, early.read(Problem).code) == (503, "draining")
    assert early.headers["retry-after"] == "5"
    async with app.lifespan():
        assert (await client.ask("GET", "/healthz")).status == 200
    assert (await client.ask("GET", "/healthz")).status == 503


async def test_the_end_of_the_lifespan_ends_streams_and_turns_and_lets_the_store_go(
    tmp_path: Path,
) -> None:
    app = _app(tmp_path, ScriptedProvider([asyncio.Event()]))
    client = AppClient(Outer(app), headers={"x-badge": "ann's badge"})
    async with app.lifespan():
        session = await client.create(CreateSession(prompt=(Text(text="hello"),)))
        wire = Wire()
        listening = asyncio.create_task(_listen(client, session, wire))
        await wire.until(lambda: b'"turn_started"' in b"".join(wire.pieces))
    await wire.until(lambda: wire.ended)
    await listening
    assert b"event: reset" in b"".join(wire.pieces)
    again = _app(tmp_path, ScriptedProvider())
    async with again.lifespan():  # the folder is free
        view = await AppClient(Outer(again), headers={"x-badge": "ann's badge"}).view(session)
        assert view.turn is None
        with pytest.raises(StoreLocked):
            async with _app(tmp_path, ScriptedProvider()).lifespan():
                pass


async def _listen(client: AppClient, session: str, wire: Wire) -> None:
    async with client.follow(session, wire=wire):
        await wire.until(lambda: wire.ended)


async def _lifespan(app: EmbeddedApp) -> list[dict[str, Any]]:
    """What a web server hears of the app's lifespan when it serves it by itself."""
    heard: list[dict[str, Any]] = []
    words = iter(["lifespan.startup", "lifespan.shutdown"])

    async def receive() -> dict[str, Any]:
        return {"type": next(words)}

    async def send(message: Any) -> None:
        heard.append(message)

    await app({"type": "lifespan"}, receive, send)
    return heard


async def test_served_by_itself_it_takes_the_lifespan_of_the_web_server(tmp_path: Path) -> None:
    heard = await _lifespan(_app(tmp_path, ScriptedProvider()))
    assert [one["type"] for one in heard] == [
        "lifespan.startup.complete",
        "lifespan.shutdown.complete",
    ]
    async with _app(tmp_path, ScriptedProvider()).lifespan():
        (failed,) = await _lifespan(_app(tmp_path, ScriptedProvider()))
    assert failed["type"] == "lifespan.startup.failed"
    assert "is in use by process" in failed["message"]


async def test_without_an_outer_app_s_word_it_has_users_of_its_own(tmp_path: Path) -> None:
    app = _app(tmp_path, ScriptedProvider(), own=True)
    client = AppClient(Outer(app))
    async with app.lifespan():
        refused = (await client.ask("GET", "/api/auth/me")).read(Problem)
        assert refused.reason == "missing"
        assert "`Authorization: Bearer`" in refused.detail
        assert "`POST /api/auth/login`" in refused.detail
        wrong = await client.ask("POST", "/api/auth/login", Login(password="correct horse"))
        assert wrong.read(Problem).reason == "wrong_password"


async def test_scratch_folders_go_with_the_last_app_of_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ours = tmp_path / f"towline-{os.geteuid()}"
    left = ours / "left-by-one-that-was-killed"
    left.mkdir(parents=True, mode=0o700)
    ours.chmod(0o700)
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        folder.mkdir()
    async with _mounted(_app(first, ScriptedProvider("one"))):
        assert left.name not in _names(ours)
        place = Path(make_scratch("/project"))
        async with _mounted(_app(second, ScriptedProvider("two"))):
            assert place.name in _names(ours)
        assert place.name in _names(ours)
    assert not _names(ours)


def _names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}
