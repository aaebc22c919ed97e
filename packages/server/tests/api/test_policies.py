"""Modes, lasting rules and trust, over HTTP and in turns."""

from collections.abc import AsyncGenerator, Callable
from pathlib import Path

import pytest

from towline_agent import mint_now, tool
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    CreateSession,
    PermissionRequested,
    Problem,
    SessionInfo,
    SessionView,
    SetTrust,
    ToolResult,
    TrustInfo,
    UpdateSession,
    block_text,
)
from towline_server.build import BuiltApp
from towline_server.sessions.policies import Policies
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran, sign_in


@tool(name="change", subject=lambda arguments: arguments["what"])
async def _change(what: str) -> str:
    """Change something."""
    return f"changed {what}"


class Desk:
    """A server with one folder, and what its model was told."""

    def __init__(self, built: BuiltApp, provider: ScriptedProvider, policies: Policies) -> None:
        self.built = built
        self.client = AppClient(built)
        self.provider = provider
        self.policies = policies

    async def say(self, session: str) -> None:
        await self.client.prompt(session, "change it")

    async def asked(self, session: str) -> PermissionRequested:
        view = await self.client.until(session, lambda view: bool(view.permissions))
        return view.permissions[0]

    def told(self) -> str:
        (result,) = self.provider.requests[-1].messages[-1].content
        assert isinstance(result, ToolResult)
        return block_text(result.content)

    async def update(self, session: str, mode: str) -> SessionInfo:
        reply = await self.client.ask("PATCH", f"/api/sessions/{session}", UpdateSession(mode=mode))
        return reply.read(SessionInfo)

    async def mode(self, session: str) -> str:
        return (await self.client.view(session)).mode

    async def trust(self, session: str) -> TrustInfo:
        return (await self.client.ask("GET", f"/api/sessions/{session}/trust")).read(TrustInfo)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    provider = ScriptedProvider(*[call("change", what="a"), "done"] * 5)
    policies = Policies(tmp_path / "data", tmp_path / "permissions.toml")
    root = tmp_path / "root"
    root.mkdir()
    async with open_test_app(
        provider, root=root, tools=[_change], mode="ask", policies=policies
    ) as built:
        yield Desk(built, provider, policies)


@pytest.mark.rules("A5.45", "A5.46")
async def test_a_new_session_begins_with_the_mode_that_was_last_chosen(desk: Desk) -> None:
    first = await desk.client.create()
    assert await desk.mode(first) == "ask"
    assert (await desk.update(first, "plan")).mode == "plan"
    assert await desk.mode(await desk.client.create()) == "plan"
    named = await desk.client.create(CreateSession(mode="auto"))
    assert await desk.mode(named) == "auto"
    assert await desk.mode(await desk.client.create()) == "plan"  # one wish is no habit
    other = await sign_in(desk.built, "bob")
    assert (await other.view(await other.create())).mode == "ask"


@pytest.mark.rules("A5.44")
async def test_in_plan_the_model_is_told_to_describe(desk: Desk) -> None:
    session = await desk.client.create(CreateSession(mode="plan"))
    await desk.say(session)
    view = await desk.client.until(session, ran(1))
    assert [made.status for made in view.calls] == ["denied"]
    assert "describe what you would do" in desk.told()


async def test_an_unknown_mode_is_refused_with_the_ones_there_are(desk: Desk) -> None:
    reply = await desk.client.ask("POST", "/api/sessions", CreateSession(mode="yolo"))
    assert reply.status == 400
    assert "ask, accept_edits, auto, plan" in (reply.read(Problem).detail or "")


@pytest.mark.rules("A5.55", "A5.57", "A5.58", "R39")
async def test_what_is_always_allowed_is_stored_as_shown_and_asked_for_no_more(
    desk: Desk,
) -> None:
    session = await desk.client.create()
    await desk.say(session)
    request = await desk.asked(session)
    rules = {option.id: option.rule for option in request.options}
    assert rules["allow_always"] == "allow change(=a)"
    reply = await desk.client.answer(session, request, "allow_always")
    assert reply.status == 200
    await desk.client.until(session, ran(1))
    cwd = (await desk.client.view(session)).cwd
    assert cwd is not None
    found = await desk.policies.read("owner", cwd)
    assert [rule.text for rule in found.user] == ["allow change(=a)"]
    other = await desk.client.create()
    await desk.say(other)
    view = await desk.client.until(other, ran(1))
    assert [made.status for made in view.calls] == ["completed"]
    stranger = await sign_in(desk.built, "bob")
    asking = await stranger.create()
    await stranger.prompt(asking, "change it")
    await stranger.until(asking, lambda view: bool(view.permissions))


@pytest.mark.rules("A5.57")
async def test_a_rule_that_cannot_be_stored_leaves_the_request_open(
    desk: Desk, tmp_path: Path
) -> None:
    session = await desk.client.create()
    await desk.say(session)
    request = await desk.asked(session)
    (tmp_path / "data").write_text("no folder")
    reply = await desk.client.answer(session, request, "allow_always")
    assert reply.status >= 500
    assert (await desk.client.view(session)).permissions
    assert (await desk.client.answer(session, request, "allow_once")).status == 200
    await desk.client.until(session, ran(1))


@pytest.mark.rules("A5.48", "A5.49", "A5.50")
async def test_a_projects_rule_counts_when_it_is_stricter_or_trusted(
    desk: Desk, tmp_path: Path
) -> None:
    rules = tmp_path / "root" / ".towline" / "permissions.toml"
    rules.parent.mkdir()
    rules.write_text('rules = ["allow change(a)"]')
    session = await desk.client.create()
    await desk.say(session)
    request = await desk.asked(session)  # not trusted: it allows nothing
    await desk.client.answer(session, request, "deny")
    await desk.client.until(session, ran(1))
    trust = await desk.trust(session)
    path = f"/api/sessions/{session}/trust"
    reply = await desk.client.ask("POST", path, SetTrust(digest=trust.digest))
    assert reply.read(TrustInfo).trusted
    await desk.say(session)
    view = await desk.client.until(session, ran(2))
    assert [made.status for made in view.calls] == ["denied", "completed"]
    rules.write_text('rules = ["deny change"]')
    await desk.say(session)
    view = await desk.client.until(session, ran(3))
    assert view.calls[-1].status == "denied"
    assert "rule 'deny change'" in desk.told()


@pytest.mark.rules("A5.51", "A5.52")
async def test_a_card_shows_the_files_and_its_answer_names_them(desk: Desk, tmp_path: Path) -> None:
    rules = tmp_path / "root" / ".towline" / "permissions.toml"
    rules.parent.mkdir()
    rules.write_text('rules = ["ask change"]')
    session = await desk.client.create()
    shown = await desk.trust(session)
    assert (shown.trusted, shown.changed) == (False, False)
    assert shown.files == (".towline/permissions.toml",)
    assert shown.rules == ("ask change",)
    path = f"/api/sessions/{session}/trust"
    rules.write_text('rules = ["allow change"]')
    reply = await desk.client.ask("POST", path, SetTrust(digest=shown.digest))
    assert (reply.status, reply.read(Problem).reason) == (409, "changed")
    digest = (await desk.trust(session)).digest
    assert (await desk.client.ask("POST", path, SetTrust(digest=digest))).status == 200
    rules.write_text('rules = ["allow change(b)"]')
    shown = await desk.trust(session)
    assert (shown.trusted, shown.changed) == (False, True)
    reply = await desk.client.ask("POST", path, SetTrust())
    assert reply.read(TrustInfo).changed is False


@pytest.mark.rules("A5.51")
async def test_only_an_admin_trusts(desk: Desk) -> None:
    bob = await sign_in(desk.built, "bob")
    session = await bob.create()
    path = f"/api/sessions/{session}/trust"
    assert (await bob.ask("GET", path)).status == 200
    reply = await bob.ask("POST", path, SetTrust())
    assert reply.status == 403


@pytest.mark.rules("R39", "A5.58")
async def test_what_was_allowed_before_a_restart_still_counts_and_as_exactly_as_it_was(
    tmp_path: Path,
) -> None:
    store = await open_memory_store(mint=mint_now)
    session = ""
    asked: list[str | None] = []
    answered: set[str] = set()
    for turn in (1, 2):
        provider = ScriptedProvider(call("change", what="a"), call("change", what="ab"), "done")
        async with open_test_app(
            provider, root=tmp_path, tools=[_change], mode="ask", store=store
        ) as built:
            desk = Desk(built, provider, Policies(None))
            session = session or await desk.client.create()
            await desk.say(session)
            for option in ("allow_session", "deny") if turn == 1 else ("deny",):
                view = await desk.client.until(session, _asks(answered))
                (request,) = view.permissions
                answered.add(request.permission)
                asked.append(request.options[1].rule)
                await desk.client.answer(session, request, option)
            view = await desk.client.until(session, ran(turn))
            assert [made.status for made in view.calls][-2:] == ["completed", "denied"]
    assert asked == ["allow change(=a)", "allow change(=ab)", "allow change(=ab)"]
    await store.close()


def _asks(answered: set[str]) -> Callable[[SessionView], bool]:
    def met(view: SessionView) -> bool:
        return any(waiting.permission not in answered for waiting in view.permissions)

    return met


@pytest.mark.rules("A5.51")
async def test_what_would_be_trusted_is_shown_within_bounds_and_no_secret_file_is(
    desk: Desk, tmp_path: Path
) -> None:
    control = tmp_path / "root" / ".towline"
    control.mkdir()
    (control / "permissions.toml").write_text('rules = ["allow change"]\n')
    (control / "a.bin").write_bytes(b"\0\1")
    (control / ".env").write_text("TOKEN=zebrafish\n")
    (control / "long.md").write_text("\u00e4" * 40_000)
    (control / "z.md").write_text("the end")
    session = await desk.client.create()
    found = await desk.trust(session)
    shown = {one.path.removeprefix(".towline/"): one for one in found.contents}
    assert shown["long.md"].text == "\u00e4" * 32_768
    assert [(name, one.shown) for name, one in shown.items()] == [
        (".env", "secret"),
        ("a.bin", "binary"),
        ("long.md", "cut"),
        ("permissions.toml", "cut"),
        ("z.md", "cut"),
    ]
    assert sum(len(one.text.encode()) for one in found.contents) <= 64 * 1024
    assert "zebrafish" not in repr(found)
    reply = await desk.client.ask(
        "POST", f"/api/sessions/{session}/trust", SetTrust(digest=found.digest)
    )
    assert reply.read(TrustInfo).contents == ()


async def test_what_is_to_be_trusted_can_be_read_whole(desk: Desk, tmp_path: Path) -> None:
    rules = 'rules = ["allow change"]\n'
    (tmp_path / "root" / ".towline").mkdir()
    (tmp_path / "root" / ".towline" / "permissions.toml").write_text(rules)
    (one,) = (await desk.trust(await desk.client.create())).contents
    assert (one.path, one.text, one.shown) == (".towline/permissions.toml", rules, "whole")
    assert one.bytes == len(rules)
