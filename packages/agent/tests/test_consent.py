"""Calls that look at the world before anybody decides on them."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Self

import msgspec
import pytest

from towline_agent.errors import AbortTurn, ToolDenied, ToolError
from towline_agent.permissions.doubt import Allowed
from towline_agent.permissions.part import Part
from towline_agent.permissions.policy import Policy
from towline_agent.permissions.rules import parse_rule
from towline_agent.plan import CallRecord, Plan
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, Tool, ToolContext
from towline_agent.turn import Start
from towline_agent.workspaces.base import ABSENT, FileData, hash_bytes
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import (
    DENY,
    CallId,
    Event,
    Limits,
    MessageEnded,
    MessageId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    PromptDelivered,
    StepEnded,
    StepStarted,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    TurnStarted,
    Usage,
    block_text,
    permission_digest,
)

ONE = CallId("call_one")


class Desk(MemoryWorkspace):
    """A folder whose files a test changes by hand, and that tells what was opened to it."""

    def __init__(self, **texts: str) -> None:
        super().__init__()
        self.texts = {name.replace("_", "."): text for name, text in texts.items()}
        self.opened: frozenset[str] = frozenset()

    async def read(self, path: str) -> FileData:
        if path.startswith("/") and path not in self.opened:
            raise ToolDenied(f"{path!r} lies outside.")
        if path not in self.texts:
            raise ToolError(f"There is no {path!r}.")
        return FileData(data=self.texts[path].encode(), mode=0o644, mtime_ns=0)

    def grant(self, paths: frozenset[str]) -> Self:
        other = type(self)()
        other.texts, other.opened = self.texts, self.opened | paths
        return other


class Pen:
    """A tool that writes a file of a desk, after it has looked at it."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.bases: list[dict[str, str]] = []
        self.opened: list[frozenset[str]] = []
        self.looked = 0
        self.caution: str | None = None
        self.grants: tuple[str, ...] = ()
        self.fails: BaseException | None = None

    def tool(self, **facts: Any) -> Tool:
        async def write(context: ToolContext, path: str, text: str) -> str:
            """Write."""
            self.bases.append(dict(context.bases))
            assert isinstance(context.workspace, Desk)
            self.opened.append(context.workspace.opened)
            self.desk.texts[path] = text
            return "written"

        made = tool(name="write", title=lambda a: f"Write {a['path']}", **facts)(write)
        return msgspec.structs.replace(made, look=self._look)

    async def _look(self, context: ToolContext, arguments: dict[str, Any]) -> Look:
        self.looked += 1
        if self.fails is not None:
            raise self.fails
        path = arguments["path"]
        try:
            before = (await context.workspace.read(path)).hash
        except ToolError:
            before = ABSENT
        return Look(
            parts=(Part(subject=path, kind="path", caution=self.caution, grants=self.grants),),
            preview=Preview(kind="diff", text=f"{path}: {before[:4]} -> {arguments['text']}"),
            bases={path: before},
        )


def run_plan(pen: Pen, path: str = "a.txt", text: str = "new", **facts: Any) -> Plan:
    script = ScriptedProvider(call("write", path=path, text=text), "Done.")
    return scripted_plan(script, pen.tool(), workspace=pen.desk, **{"mode": "ask", **facts})


def end_of(events: list[Event]) -> tuple[str, str]:
    (end,) = [event for event in events if isinstance(event, ToolEnded)]
    return end.status, block_text(end.content)


def answer(option: str, meanwhile: Callable[[], object] = lambda: None) -> Any:
    async def decide(_: PermissionRequested) -> str:
        meanwhile()
        return option

    return decide


async def run(plan: Plan, decide: Any = None) -> tuple[ScriptedHost, tuple[str, str]]:
    host = ScriptedHost(answer=decide)
    await host.run(plan)
    return host, end_of(host.events)


@pytest.mark.rules("A5.42", "A5.69")
@pytest.mark.parametrize("mode", ["ask", "accept_edits", "auto"])
async def test_what_nothing_brings_back_asks_in_every_mode(mode: str) -> None:
    pen = Pen(Desk(a_txt="old"))
    script = ScriptedProvider(call("write", path="a.txt", text="new"), "Done.")
    plan = scripted_plan(script, pen.tool(irreversible=True), workspace=pen.desk, mode=mode)
    host, (status, _) = await run(plan, answer(DENY))
    (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
    assert request.reason == "It cannot be undone."
    assert status == "denied"
    assert pen.bases == []


@pytest.mark.rules("A5.59")
async def test_a_person_sees_what_the_look_found() -> None:
    pen = Pen(Desk(a_txt="old"))
    host, (status, _) = await run(run_plan(pen), answer("allow_once"))
    (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
    assert request.preview.kind == "diff"
    assert request.preview.text == f"a.txt: {hash_bytes(b'old')[:4]} -> new"
    assert status == "completed"
    assert pen.bases == [{"a.txt": hash_bytes(b"old")}]


async def test_the_look_comes_before_the_question_and_after_the_proposal() -> None:
    pen = Pen(Desk())
    seen: list[tuple[int, set[type]]] = []
    host = ScriptedHost()

    async def decide(_: PermissionRequested) -> str:
        seen.append((pen.looked, {type(event) for event in host.events}))
        return "deny"

    host = ScriptedHost(answer=decide)
    await host.run(run_plan(pen))
    ((looked, kinds),) = seen
    assert looked == 1
    assert ToolProposed in kinds
    assert ToolStarted not in kinds


@pytest.mark.rules("A5.60", "A5.62")
async def test_the_digest_is_over_the_files_as_they_were_seen() -> None:
    digests: list[str] = []
    for text in ("one", "one", "two"):
        pen = Pen(Desk(a_txt=text))
        host, _ = await run(run_plan(pen), answer("deny"))
        (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
        assert request.digest == permission_digest(
            permission=request.permission,
            tool="write",
            arguments='{"path": "a.txt", "text": "new"}',
            cwd=pen.desk.root,
            base_hashes=(hash_bytes(text.encode()),),
            options=tuple(option.id for option in request.options),
        )
        digests.append(request.digest)
    assert digests[0] == digests[1] != digests[2]


@pytest.mark.rules("A5.63", "C5.11")
@pytest.mark.parametrize("change", ["edit", "delete", "make"])
async def test_a_file_that_changed_while_a_person_thought_is_not_touched(change: str) -> None:
    pen = Pen(Desk() if change == "make" else Desk(a_txt="old"))

    def meanwhile() -> None:
        if change == "delete":
            del pen.desk.texts["a.txt"]
        else:
            pen.desk.texts["a.txt"] = "theirs"

    host, (status, words) = await run(run_plan(pen), answer("allow_once", meanwhile))
    assert status == "failed"
    assert "changed since you looked" in words
    assert pen.bases == []
    assert pen.desk.texts == ({} if change == "delete" else {"a.txt": "theirs"})
    assert not any(isinstance(event, ToolStarted) for event in host.events)


@pytest.mark.rules("A4.16", "A4.18")
@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ToolError("There is no such folder."), "There is no such folder."),
        (ValueError("secret"), "write failed with ValueError."),
        (asyncio.CancelledError(), "write was cancelled by its own code."),
    ],
)
async def test_what_a_look_raises_ends_the_call_and_nobody_is_asked(
    error: BaseException, words: str
) -> None:
    pen = Pen(Desk())
    pen.fails = error
    host, (status, told) = await run(run_plan(pen), answer("allow_once"))
    assert (status, told) == ("failed", words)
    assert not any(isinstance(event, PermissionRequested) for event in host.events)
    assert host.loose_ids() == set()


@pytest.mark.rules("A4.59")
async def test_a_look_may_end_the_turn() -> None:
    pen = Pen(Desk())
    pen.fails = AbortTurn("Enough.")
    host = ScriptedHost(answer=answer("allow_once"))
    end = await host.run(run_plan(pen))
    assert isinstance(end.error, AbortTurn)
    assert end.error.message == "Enough."


@pytest.mark.rules("A4.23", "R41")
async def test_a_cancel_during_a_look_ends_the_call() -> None:
    pen, looking = Pen(Desk()), asyncio.Event()

    async def look(_: ToolContext, __: dict[str, Any]) -> Look:
        looking.set()
        await asyncio.Event().wait()
        raise AssertionError

    script = ScriptedProvider(call("write", path="a", text="b"), "Done.")
    slow = msgspec.structs.replace(pen.tool(), look=look)
    host = ScriptedHost()
    task = asyncio.create_task(host.run(scripted_plan(script, slow)))
    async with asyncio.timeout(5):
        await looking.wait()
        host.stop()
        await task
    assert end_of(host.events)[0] == "cancelled"
    assert host.loose_ids() == set()


@pytest.mark.rules("R41", "C1.23")
async def test_a_cancel_while_a_question_is_open_resolves_it_and_ends_the_turn() -> None:
    pen, asked = Pen(Desk(a_txt="old")), asyncio.Event()

    async def never(_: PermissionRequested) -> str:
        asked.set()
        await asyncio.Event().wait()
        return "allow_once"

    host = ScriptedHost(answer=never)
    task = asyncio.create_task(host.run(run_plan(pen)))
    async with asyncio.timeout(5):
        await asked.wait()
        host.stop()
        await task
    (resolved,) = [event for event in host.events if isinstance(event, PermissionResolved)]
    assert (resolved.option, resolved.by) == ("deny", "cancel")
    assert end_of(host.events)[0] == "cancelled"
    assert host.loose_ids() == set()
    assert pen.desk.texts == {"a.txt": "old"}


@pytest.mark.rules("A5.3")
async def test_a_place_outside_is_opened_only_for_the_call_that_was_allowed() -> None:
    pen = Pen(Desk())
    pen.caution, pen.grants = "It lies outside.", ("/out/a",)
    desk = pen.desk
    host, (status, _) = await run(run_plan(pen, "/out/a", mode="auto"), answer("allow_once"))
    (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
    assert (status, request.reason) == ("completed", "It lies outside.")
    assert pen.opened == [frozenset({"/out/a"})]
    assert desk.opened == frozenset()


@pytest.mark.rules("A5.3")
async def test_a_rule_opens_a_place_outside_without_asking() -> None:
    pen = Pen(Desk())
    pen.caution, pen.grants = "It lies outside.", ("/out/a",)
    rules = [parse_rule("allow write(/out/**)")]
    _, (status, _) = await run(run_plan(pen, "/out/a", rules=rules))
    assert status == "completed"
    assert pen.opened == [frozenset({"/out/a"})]


async def test_a_rule_that_came_while_a_person_thought_still_denies() -> None:
    pen = Pen(Desk())
    policies = [Policy()]
    plan = run_plan(pen, policy=lambda: policies[-1])
    late = Policy(user=(parse_rule("deny write(a.txt)"),))
    _, (status, words) = await run(plan, answer("allow_once", lambda: policies.append(late)))
    assert status == "denied"
    assert "rule 'deny write(a.txt)'" in words


@pytest.mark.rules("A5.46")
async def test_the_mode_is_the_one_of_the_moment() -> None:
    pen = Pen(Desk())
    plan = run_plan(pen, policy=lambda: Policy(mode="plan"), mode="auto")
    _, (status, words) = await run(plan)
    assert status == "denied"
    assert "describe what you would do" in words


@pytest.mark.rules("A5.56")
async def test_always_is_offered_only_where_somebody_keeps_the_rule() -> None:
    for stores in (True, False):
        plan = run_plan(Pen(Desk()), policy=lambda stores=stores: Policy(stores=stores))
        host, _ = await run(plan, answer("deny"))
        (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
        assert ("allow_always" in [option.id for option in request.options]) is stores


# the judge


def judging(verdict: str | Exception | None) -> Callable[[Allowed], Coroutine[Any, Any, Any]]:
    async def judge(allowed: Allowed) -> str | None:
        assert allowed.tool == "write"
        assert allowed.parts[0].subject == "a.txt"
        if isinstance(verdict, Exception):
            raise verdict
        return verdict

    return judge


@pytest.mark.rules("A5.70")
async def test_a_judge_may_turn_an_allowance_into_a_question() -> None:
    plan = run_plan(Pen(Desk()), mode="auto", judge=judging("It looks odd."))
    host, (status, _) = await run(plan, answer("deny"))
    (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
    assert request.reason == "It looks odd."
    assert status == "denied"


@pytest.mark.rules("A5.70")
async def test_a_judge_that_says_nothing_lets_pass_and_one_that_fails_asks() -> None:
    _, (status, _) = await run(run_plan(Pen(Desk()), mode="auto", judge=judging(None)))
    assert status == "completed"
    failing = run_plan(Pen(Desk()), mode="auto", judge=judging(ValueError("secret")))
    host, (status, _) = await run(failing, answer("deny"))
    (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
    assert "secret" not in (request.reason or "")
    assert status == "denied"


@pytest.mark.rules("A5.70")
async def test_a_judge_never_sees_what_asks_or_is_denied() -> None:
    async def judge(_: Allowed) -> str | None:
        raise AssertionError

    host, _ = await run(run_plan(Pen(Desk()), judge=judge), answer("allow_once"))
    assert any(isinstance(event, PermissionRequested) for event in host.events)
    rules = [parse_rule("deny write")]
    _, (status, words) = await run(run_plan(Pen(Desk()), judge=judge, mode="auto", rules=rules))
    assert (status, "rule 'deny write'" in words) == ("denied", True)


# after a crash


async def resume(pen: Pen, record: CallRecord, decide: Any = None, **facts: Any) -> list[Event]:
    """Go on with a turn whose log ends with the call as the record tells it."""
    host = ScriptedHost(answer=decide)
    host.emit(TurnStarted(prompt=host.prompt, model="scripted/scripted", limits=Limits()))
    host.emit(PromptDelivered(prompt=host.prompt, turn=host.turn, how="started"))
    host.emit(StepStarted(model="scripted/scripted"))
    asked = ToolCall(id=ONE, name="write", arguments='{"path": "a.txt", "text": "new"}')
    host.emit(MessageEnded(message=MessageId("msg_0"), content=(asked,)))
    host.emit(StepEnded(stop_reason="tool_calls", usage=Usage(input=3)))
    before = len(host.events)
    plan = scripted_plan(
        ScriptedProvider("Done."),
        pen.tool(idempotent=facts.pop("idempotent", False)),
        workspace=pen.desk,
        **{"mode": "ask", **facts},
    )
    start = Start(turn=host.turn, prompt=host.prompt, attempt=1, journal={ONE: record})
    await host.run(plan, start)
    return host.events[before:]


async def cut(pen: Pen, option: str | None, **record: Any) -> CallRecord:
    """What the log holds when a crash comes after the question, or after its answer."""
    host = ScriptedHost(answer=answer("deny"))
    await host.run(run_plan(pen))
    (request,) = [event for event in host.events if isinstance(event, PermissionRequested)]
    request = msgspec.structs.replace(request, call=ONE)
    decision = None
    if option is not None:
        decision = PermissionResolved(permission=request.permission, option=option, by="ann")
    return CallRecord(call=ONE, proposed=True, request=request, decision=decision, **record)


@pytest.mark.rules("C5.5", "R43")
async def test_what_was_allowed_before_a_crash_runs_without_another_question() -> None:
    pen = Pen(Desk(a_txt="old"))
    events = await resume(pen, await cut(pen, "allow_once"))
    assert not any(isinstance(event, PermissionRequested) for event in events)
    assert end_of(events) == ("completed", "written")
    assert pen.bases == [{"a.txt": hash_bytes(b"old")}]


@pytest.mark.rules("A5.63", "C5.11")
@pytest.mark.parametrize("option", ["allow_once", None])
async def test_what_was_allowed_before_a_crash_does_not_hold_for_a_changed_file(
    option: str | None,
) -> None:
    pen = Pen(Desk(a_txt="old"))
    record = await cut(pen, option)
    pen.desk.texts["a.txt"] = "theirs"
    events = await resume(pen, record, answer("allow_once"))
    status, words = end_of(events)
    assert status == "failed"
    assert "changed since you looked" in words
    assert pen.desk.texts == {"a.txt": "theirs"}


@pytest.mark.rules("C5.8")
async def test_an_open_question_is_asked_again_with_its_id_and_digest() -> None:
    pen = Pen(Desk(a_txt="old"))
    record = await cut(pen, None)
    asked: list[PermissionRequested] = []

    async def decide(request: PermissionRequested) -> str:
        asked.append(request)
        return "allow_once"

    events = await resume(pen, record, decide)
    assert asked == [record.request]
    assert end_of(events)[0] == "completed"


@pytest.mark.rules("A5.3", "C5.5")
async def test_what_was_allowed_before_a_crash_does_not_open_another_place() -> None:
    pen = Pen(Desk(a_txt="old"))
    record = await cut(pen, "allow_once")
    pen.caution, pen.grants = "It lies outside.", ("/etc/shadow",)  # a link was swapped
    status, words = end_of(await resume(pen, record))
    assert status == "failed"
    assert "changed since you looked" in words
    assert pen.opened == []


@pytest.mark.rules("C5.5")
async def test_what_runs_again_after_a_crash_asks_if_it_calls_for_caution_now() -> None:
    pen = Pen(Desk(a_txt="old"))
    record = CallRecord(call=ONE, proposed=True, started=True)
    events = await resume(pen, record, idempotent=True)
    assert end_of(events)[0] == "completed"
    pen.caution = "It lies outside."
    events = await resume(pen, record, answer("deny"), idempotent=True)
    assert end_of(events)[0] == "denied"
