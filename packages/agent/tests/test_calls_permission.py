"""Calls that a person, or a rule, must allow."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest

from towline_agent.local_host import Answerer
from towline_agent.permissions.rules import Rule, parse_rule
from towline_agent.plan import Plan
from towline_agent.providers.base import StepAnswer
from towline_agent.testing import ScriptedHost, ScriptedProvider, scripted_plan
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Look, Part, ToolContext
from towline_protocol import (
    CallId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    ToolCall,
    ToolEnded,
    ToolProposed,
    ToolStarted,
    Usage,
    block_text,
    parse_time,
    permission_digest,
)


class Shop:
    """A model that sends letters, a tool that sends them, a person who is asked."""

    def __init__(self, *letters: str, **facts: Any) -> None:
        self.sent: list[str] = []
        self.provider = ScriptedProvider(wants(*letters), "Done.")
        self.plan = self._plan(**facts)

    async def run(self, answer: Answerer | None = None) -> ScriptedHost:
        host = ScriptedHost(answer=answer)
        await host.run(self.plan)
        return host

    def _plan(self, **facts: Any) -> Plan:
        @tool(
            subject=lambda arguments: arguments["to"],
            preview=lambda arguments: Preview(kind="text", text=f"Letter to {arguments['to']}"),
            title=lambda arguments: f"Send to {arguments['to']}",
        )
        async def send(to: str) -> str:
            """Send a letter."""
            self.sent.append(to)
            return f"sent to {to}"

        return scripted_plan(self.provider, send, **{"mode": "ask", **facts})


def wants(*letters: str) -> StepAnswer:
    content = tuple(
        ToolCall(id=CallId(""), name="send", arguments=f'{{"to": "{to}"}}') for to in letters
    )
    return StepAnswer(content=content, stop_reason="tool_calls", usage=Usage(input=1))


def always(option: str) -> Callable[[PermissionRequested], Awaitable[str]]:
    async def answer(_: PermissionRequested) -> str:
        return option

    return answer


def requests(host: ScriptedHost) -> list[PermissionRequested]:
    return [event for event in host.events if isinstance(event, PermissionRequested)]


def ends(host: ScriptedHost) -> list[tuple[str, str]]:
    return [
        (event.status, block_text(event.content))
        for event in host.events
        if isinstance(event, ToolEnded)
    ]


@pytest.mark.rules("A5.56", "A5.59")
async def test_a_request_shows_what_would_happen_and_what_each_answer_stores() -> None:
    shop = Shop("ann")
    host = await shop.run(always("allow_once"))
    (request,) = requests(host)
    assert (request.tool, request.title) == ("send", "Send to ann")
    assert request.preview == Preview(kind="text", text="Letter to ann")
    assert [(option.id, option.rule) for option in request.options] == [
        ("allow_once", None),
        ("allow_session", "allow send(=ann)"),
        ("deny", None),
    ]
    assert request.reason is not None
    assert parse_time(request.expires_at) == shop.plan.clock.now_ms()
    assert shop.sent == ["ann"]


async def test_nothing_starts_before_the_answer() -> None:
    async def answer(_: PermissionRequested) -> str:
        kinds = {type(event) for event in host.events}
        assert ToolProposed in kinds
        assert ToolStarted not in kinds
        return "allow_once"

    shop = Shop("ann")
    host = ScriptedHost(answer=answer)
    await host.run(shop.plan)
    assert shop.sent == ["ann"]


@pytest.mark.rules("A5.60", "C5.11")
async def test_the_digest_binds_an_answer_to_exactly_this_call() -> None:
    found: list[str] = []
    for letters in (("ann",), ("ann",), ("bob",)):
        shop = Shop(*letters)
        (request,) = requests(await shop.run(always("deny")))
        assert request.digest == permission_digest(
            permission=request.permission,
            tool="send",
            arguments=f'{{"to": "{letters[0]}"}}',
            cwd=shop.plan.workspace.root,
            options=("allow_once", "allow_session", "deny"),
        )
        found.append(request.digest)
    assert found[0] == found[1] != found[2]


async def test_each_request_has_an_id_and_a_digest_of_its_own() -> None:
    host = await Shop("ann", "ann").run(always("allow_once"))
    one, two = requests(host)
    assert one.permission != two.permission
    assert one.digest != two.digest


@pytest.mark.rules("A5.55")
async def test_what_is_allowed_once_is_asked_for_again() -> None:
    shop = Shop("ann", "ann")
    host = await shop.run(always("allow_once"))
    assert len(requests(host)) == 2
    assert shop.plan.rules == []


@pytest.mark.rules("A5.55", "R39")
async def test_what_is_allowed_for_the_session_adds_the_shown_rule_and_is_not_asked_again() -> None:
    shop = Shop("ann (home)", "ann (home)", "bob")
    host = await shop.run(always("allow_session"))
    assert [request.title for request in requests(host)] == ["Send to ann (home)", "Send to bob"]
    shown = [option.rule for option in requests(host)[0].options if option.rule is not None]
    assert [rule.text for rule in shop.plan.rules] == [*shown, "allow send(=bob)"]
    assert shop.sent == ["ann (home)", "ann (home)", "bob"]


@pytest.mark.rules("R39")
async def test_an_allowed_command_allows_no_part_of_it_and_nothing_longer() -> None:
    first = "git status && rm -rf ./tmp"
    shop = Shop(first, "rm -rf ./tmp", f"{first} ./other", first)
    host = await shop.run(always("allow_session"))
    assert [request.preview.text.removeprefix("Letter to ") for request in requests(host)] == [
        first,
        "rm -rf ./tmp",
        f"{first} ./other",
    ]


@pytest.mark.rules("A5.55")
async def test_a_denial_tells_the_model_with_the_persons_note() -> None:
    class Noting(ScriptedHost):
        async def ask(self, request: PermissionRequested) -> PermissionResolved:
            resolved = PermissionResolved(
                permission=request.permission, option="deny", by="ann", note="Write to bob."
            )
            self.emit(request)
            self.emit(resolved)
            return resolved

    shop = Shop("ann")
    host = Noting()
    await host.run(shop.plan)
    ((status, words),) = ends(host)
    assert (status, shop.sent) == ("denied", [])
    assert words.startswith("A person denied it. They say: Write to bob.")
    assert "Write to bob." in str(shop.provider.requests[1].messages[-1])


@pytest.mark.rules("A5.68")
async def test_where_nobody_is_there_to_ask_it_is_denied() -> None:
    shop = Shop("ann")
    host = await shop.run()
    ((status, words),) = ends(host)
    assert (status, shop.sent) == ("denied", [])
    assert words.startswith("Nobody is there to allow it")


@pytest.mark.parametrize(("by", "words"), [("deadline", "Nobody answered"), ("bob", "A person")])
async def test_the_model_is_told_who_denied(by: str, words: str) -> None:
    class Denying(ScriptedHost):
        async def ask(self, request: PermissionRequested) -> PermissionResolved:
            return PermissionResolved(permission=request.permission, option="deny", by=by)

    host = Denying()
    await host.run(Shop("ann").plan)
    assert ends(host)[0][1].startswith(words)


@pytest.mark.parametrize("option", ["", "allow", "ALLOW_ONCE", "allow_always"])
async def test_an_answer_that_was_not_offered_denies(option: str) -> None:
    class Wrong(ScriptedHost):
        async def ask(self, request: PermissionRequested) -> PermissionResolved:
            return PermissionResolved(permission=request.permission, option=option, by="ann")

    shop = Shop("ann")
    host = Wrong()
    await host.run(shop.plan)
    assert ends(host)[0][0] == "denied"
    assert shop.sent == []


async def test_a_rule_denies_without_asking_and_says_which() -> None:
    shop = Shop("ann", mode="auto", rules=[parse_rule("deny send(ann)")])
    host = await shop.run(always("allow_once"))
    assert requests(host) == []
    ((status, words),) = ends(host)
    assert status == "denied"
    assert "rule 'deny send(ann)'" in words


async def test_a_rule_makes_a_read_ask() -> None:
    @tool(effect="read")
    async def peek() -> str:
        """Peek."""
        return "peeked"

    calls = tuple(ToolCall(id=CallId(""), name="peek", arguments="{}") for _ in range(3))
    provider = ScriptedProvider(StepAnswer(content=calls, stop_reason="tool_calls"), "Done.")
    host = ScriptedHost(answer=always("allow_once"))
    await host.run(
        scripted_plan(provider, peek, mode="auto", rules=[Rule(action="ask", tool="peek")])
    )
    assert len(requests(host)) == 3
    assert [status for status, _ in ends(host)] == ["completed"] * 3
    assert host.loose_ids() == set()


@pytest.mark.rules("A4.13")
async def test_nobody_is_asked_about_a_call_that_cannot_run() -> None:
    shop = Shop("ann")
    shop.provider = ScriptedProvider(
        StepAnswer(
            content=(ToolCall(id=CallId(""), name="send", arguments="{}"),),
            stop_reason="tool_calls",
        ),
        "Done.",
    )
    shop.plan = scripted_plan(shop.provider, *shop.plan.tools.values(), mode="ask")
    host = await shop.run(always("allow_once"))
    assert requests(host) == []
    assert ends(host)[0][0] == "failed"


@pytest.mark.rules("W07")
async def test_a_preview_that_is_too_long_says_that_it_is_cut() -> None:
    host = await Shop("a" * 100_000).run(always("deny"))
    (request,) = requests(host)
    (proposed,) = [event for event in host.events if isinstance(event, ToolProposed)]
    assert request.preview.truncated
    assert len(request.preview.text) == 65_536
    assert proposed.preview == request.preview
    assert len(request.title) == 200


async def test_without_a_preview_of_its_own_a_tool_shows_the_arguments() -> None:
    @tool
    async def write(at: str) -> str:
        """Write."""
        return at

    content = (ToolCall(id=CallId(""), name="write", arguments='{"at":  "a"}'),)
    provider = ScriptedProvider(StepAnswer(content=content, stop_reason="tool_calls"), "Done.")
    host = ScriptedHost(answer=always("allow_session"))
    plan = scripted_plan(provider, write, mode="ask")
    await host.run(plan)
    (request,) = requests(host)
    assert request.preview == Preview(kind="text", text='{"at":  "a"}')
    assert [rule.text for rule in plan.rules] == ['allow write(={"at":  "a"})']


@pytest.mark.rules("A4.23", "A4.28")
async def test_who_swallows_a_cancel_and_allows_the_call_makes_nothing_run() -> None:
    asked = asyncio.Event()

    async def answer(_: PermissionRequested) -> str:
        asked.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "allow_once"

    shop = Shop("Ada", "Ben")
    host = ScriptedHost(answer=answer)
    running = asyncio.create_task(host.run(shop.plan))
    await asked.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert shop.sent == []
    assert ends(host) == [("cancelled", "Cancelled before it began.")] * 2


@pytest.mark.rules("A4.23", "A4.28")
async def test_after_a_look_that_swallows_a_cancel_nobody_is_asked() -> None:
    """The turn would wait for an answer that nobody is there to give any more."""
    looking = asyncio.Event()

    async def look(_: ToolContext, __: dict[str, Any]) -> Look:
        looking.set()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return Look(parts=(Part(subject="a letter"),))

    @tool(look=look)
    async def send(to: str) -> str:
        """Send a letter."""
        return f"sent to {to}"

    plan = scripted_plan(ScriptedProvider(wants("Ada"), "Done."), send, mode="ask")
    host = ScriptedHost(answer=always("allow_once"))
    running = asyncio.create_task(host.run(plan))
    await looking.wait()
    running.cancel()
    await asyncio.wait({running})
    assert running.cancelled()
    assert requests(host) == []
    assert ends(host) == [("cancelled", "Cancelled before it began.")]


async def test_who_cancels_the_own_task_and_swallows_it_may_allow_the_call() -> None:
    """As libraries do that know no `uncancel`: their limits of time leave the task so."""

    async def answer(_: PermissionRequested) -> str:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        with suppress(asyncio.CancelledError):
            await asyncio.Event().wait()
        return "allow_once"

    shop = Shop("Ada")
    await shop.run(answer)
    assert shop.sent == ["Ada"]
