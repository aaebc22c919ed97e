"""The line between page and server, as bad as it gets."""

import asyncio
from collections.abc import Iterable

import msgspec
import pytest
from playwright.async_api import Page, expect
from web.conftest import Open
from web.house import composer, runner, session_of, tools_of

from towline_agent import StepAnswer, SystemClock, tool
from towline_agent.providers.base import TextPiece
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import Block, Text

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]


@tool(effect="read")
async def look(place: str) -> str:
    """Look."""
    return f"seen {place}"


def _speak_and_look(text: str) -> StepAnswer:
    step = call("look", place=text)
    return msgspec.structs.replace(step, content=(Text(text=text), *step.content))


def _words(content: Iterable[Block]) -> str:
    return "".join(block.text for block in content if isinstance(block, Text))


async def _sleep(page: Page, *, ms: int = 90_000) -> None:
    """Hide and freeze a page for so long."""
    tools = await tools_of(page)
    await page.evaluate("beSeen('hidden')")
    await tools.send("Page.setWebLifecycleState", {"state": "frozen"})
    await tools.send("Page.setWebLifecycleState", {"state": "active"})
    await page.evaluate(f"beSeen('hidden', {ms})")


@pytest.mark.rules("W03", "W14")
async def test_a_turn_that_ended_while_the_page_slept_is_there_on_return(open_home: Open) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "Half "), gate, TextPiece(0, "and whole.")])
    async with open_home(provider) as (house, _):
        page = await house.phone()
        await composer(page).fill("Go")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent")).to_contain_text("Half")
        await _sleep(page)
        house.line.cut()
        gate.set()
        view = await house.ended(session_of(page))
        assert _words(view.messages[-1].content) == "Half and whole."
        await page.evaluate("beSeen('visible')")
        await expect(page.locator("article.agent")).to_contain_text("Half and whole.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await expect(page.locator(".banner.warn")).to_have_count(0)


@pytest.mark.rules("W04", "W05")
async def test_a_line_that_is_cut_in_each_step_loses_and_doubles_nothing(open_home: Open) -> None:
    steps = 3
    gates = [asyncio.Event() for _ in range(2 * steps)]
    script: list[list[TextPiece | asyncio.Event | StepAnswer]] = [
        [
            TextPiece(0, f"begun{at} "),
            gates[2 * at],
            TextPiece(0, f"ended{at}"),
            gates[2 * at + 1],
            _speak_and_look(f"begun{at} ended{at}"),
        ]
        for at in range(steps)
    ]
    async with open_home(ScriptedProvider(*script, "All seen."), tools=[look]) as (house, _):
        page = await house.phone()
        await composer(page).fill("Go")
        await page.get_by_role("button", name="Send").click()
        shown = page.get_by_role("log")
        for at in range(steps):
            await expect(shown).to_contain_text(f"begun{at}")
            house.line.cut()  # between two deltas
            gates[2 * at].set()
            await expect(shown).to_contain_text(f"ended{at}")
            gates[2 * at + 1].set()
            house.line.cut()  # while stored events come
        await expect(shown).to_contain_text("All seen.")
        view = await house.ended(session_of(page))
        said = [_words(one.content) for one in view.messages if one.role == "assistant"]
        assert said == [*(f"begun{at} ended{at}" for at in range(steps)), "All seen."]
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await expect(page.locator("article.agent .md")).to_have_text(said)
        await expect(page.locator("article.user")).to_have_count(1)
        assert house.line.opened > 2 * steps


@pytest.mark.rules("W03", "W06", "W14", "W26")
async def test_asleep_cut_off_and_restarted_the_page_comes_back_to_what_the_store_holds(
    open_home: Open,
) -> None:
    ran: list[str] = []
    gate = asyncio.Event()
    first = ScriptedProvider([TextPiece(0, "I will "), gate, call("run", command="make all")])
    async with open_home(first, tools=[runner(ran)], mode="ask") as (house, served):
        page = await house.phone()
        await composer(page).fill("Build it")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent")).to_contain_text("I will")
        session = session_of(page)
        await _sleep(page)
        await page.context.set_offline(True)
        house.line.cut()
        gate.set()
        await house.client.until(session, lambda view: bool(view.permissions))
        await served.stop()
        await served.start(ScriptedProvider("All is built."))
        held = await house.client.until(session, lambda view: bool(view.permissions))
        assert [one.preview.text for one in held.permissions] == ["make all"]

        await page.evaluate("beSeen('visible')")
        await page.context.set_offline(False)
        card = page.get_by_role("region", name="Allow this?")
        await expect(card).to_contain_text("make all")
        await expect(page.locator("article.user")).to_have_count(1)
        await expect(page.locator(".banner.warn")).to_have_count(0)
        await card.get_by_role("button", name="Review").click()
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.locator("article.agent").last).to_contain_text("All is built.")
        assert ran == ["make all"]
        view = await house.ended(session)
        said = [_words(one.content) for one in view.messages if one.role == "assistant"]
        await expect(page.locator("article.agent .md")).to_have_text(
            [text for text in said if text]
        )


@pytest.mark.rules("W26")
async def test_a_turn_that_a_restart_broke_goes_on_or_ends_and_never_works_for_ever(
    open_home: Open,
) -> None:
    never = asyncio.Event()
    async with open_home(ScriptedProvider([TextPiece(0, "Begun"), never])) as (house, served):
        page = await house.phone()
        await composer(page).fill("Go")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent")).to_contain_text("Begun")
        await served.stop()
        await served.start(ScriptedProvider("Begun again, and done."))
        await expect(page.locator("article.agent").last).to_contain_text("Begun again, and done.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        view = await house.ended(session_of(page))
        assert view.last_turn is not None
        assert view.last_turn.outcome == "completed"


class _AheadClock(SystemClock):
    """The machine's clock, that a test can move on."""

    def __init__(self) -> None:
        self.ahead_ms = 0

    def now_ms(self) -> int:
        return super().now_ms() + self.ahead_ms


TURN_MS = 3_500
"""Longer than what counts as sent in one go."""


@pytest.mark.rules("W22")
async def test_a_proxy_that_collects_the_stream_is_told_of_with_what_to_set(
    open_home: Open,
) -> None:
    gates = [asyncio.Event() for _ in range(2)]
    lumps = [[TextPiece(0, f"Lump {at} "), gate, TextPiece(0, "whole.")]
             for at, gate in enumerate(gates)]  # fmt: skip
    clock = _AheadClock()
    async with open_home(ScriptedProvider("Fluent.", *lumps), clock=clock) as (house, _):
        page = await house.phone()
        banner = page.get_by_text("Proxy holds the stream back")

        async def speak(turn: int) -> None:
            await composer(page).fill("Go on")
            await page.get_by_role("button", name="Send").click()
            await house.line.collects(b"Lump")
            clock.ahead_ms += TURN_MS
            gates[turn].set()
            await house.line.collects(b"turn_completed")
            await expect(page.get_by_role("log")).not_to_contain_text(f"Lump {turn}")

        async with asyncio.timeout(60):
            await composer(page).fill("Go")
            await page.get_by_role("button", name="Send").click()
            await expect(page.locator("article.agent")).to_contain_text("Fluent.")
            house.line.buffers = True
            await page.evaluate("beSeen('hidden')")
            await speak(0)
            await page.evaluate("beSeen('visible')")
            await house.line.hand_on()
            await expect(page.locator("article.agent").last).to_contain_text("Lump 0 whole.")
            await expect(banner).to_be_hidden()  # what a page reads that was away comes in a lump

            await page.wait_for_timeout(TURN_MS)  # it must have been awake while it waited
            await speak(1)
            await house.line.hand_on()
            await expect(page.locator("article.agent").last).to_contain_text("Lump 1 whole.")
            await expect(banner).to_be_visible()
            await page.get_by_role("button", name="What to do").click()
            await expect(page.get_by_role("dialog")).to_contain_text("proxy_buffering off;")


@pytest.mark.rules("W22")
@pytest.mark.parametrize("head", [False, True])
async def test_a_proxy_that_lets_no_word_of_a_stream_through_is_told_of_and_no_dead_line_is(
    open_home: Open, *, head: bool
) -> None:
    async with open_home(ScriptedProvider("One.", "Two.")) as (house, _), asyncio.timeout(90):
        first = await house.phone()
        await composer(first).fill("Go")
        await first.get_by_role("button", name="Send").click()
        await expect(first.locator("article.agent")).to_contain_text("One.")
        session = session_of(first)
        await first.close()

        house.line.buffers = True
        house.line.holds_heads = head
        page = await house.phone(session)
        await expect(page.locator("article.agent")).to_contain_text("One.")
        banner = page.get_by_text("Proxy holds the stream back")
        await expect(banner).to_be_visible(timeout=30_000)  # the stream has ten seconds
        await page.get_by_role("button", name="What to do").click()
        await expect(page.get_by_role("dialog")).to_contain_text("proxy_buffering off;")
        await page.get_by_role("button", name="Close").click()

        target, house.line.target = house.line.target, 0
        house.line.cut()
        await expect(page.get_by_text("Reconnecting…")).to_be_visible()
        await expect(banner).to_be_hidden()

        house.line.target, house.line.buffers = target, False
        # Nobody presses Retry: the page comes back by itself, and may be sooner than a press.
        await expect(page.locator(".banner.warn")).to_have_count(0, timeout=30_000)
        await composer(page).fill("On")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent").last).to_contain_text("Two.")
