"""What a turn does between its words: one line, for who has a keyboard as well."""

import asyncio
import re

import pytest
from playwright.async_api import Locator, Page, expect
from web.conftest import Open
from web.house import composer

from towline_agent import Tool, tool
from towline_agent.testing import ScriptedProvider, call

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]

CALLS = 12
"""More than a phone's screen holds cards."""
LINE = ".doings-head"


def _looker(gate: asyncio.Event) -> Tool:
    """A tool that looks at once, or waits where it is told to."""

    @tool(effect="read")
    async def look(place: str) -> str:
        """Look somewhere."""
        if place == "far":
            await gate.wait()
        return f"nothing at {place}"

    return look


async def _send(page: Page, text: str) -> None:
    await composer(page).fill(text)
    await page.get_by_role("button", name="Send").click()


async def _top(one: Locator) -> float:
    box = await one.bounding_box()
    assert box is not None
    return box["y"]


@pytest.mark.rules("W24")
async def test_the_line_of_a_turn_is_opened_by_key_and_keeps_the_focus_to_its_end(
    open_home: Open,
) -> None:
    gate = asyncio.Event()
    script = [call("look", place=place) for place in ("here", "there", "far")]
    async with open_home(ScriptedProvider(*script, "All seen."), tools=[_looker(gate)]) as (
        house,
        _,
    ):
        page = await house.phone()
        await _send(page, "Look")
        line = page.get_by_role("button", name="Working")
        await expect(line).to_have_attribute("aria-expanded", "false")
        await expect(page.locator(".tool")).to_have_count(0)
        box = await line.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        await line.focus()
        await page.keyboard.press("Enter")
        await expect(line).to_have_attribute("aria-expanded", "true")
        await expect(page.locator(".tool")).to_have_count(3)
        gate.set()
        await expect(page.locator("article.agent").last).to_contain_text("All seen.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        done = page.get_by_role("button", name=re.compile(r"^Read 3\b"))
        await expect(done).to_be_focused()
        await expect(done).to_have_attribute("aria-expanded", "true")
        await page.keyboard.press("Enter")
        await expect(page.locator(".tool")).to_have_count(0)
        await expect(done).to_be_focused()


@pytest.mark.rules("W01")
async def test_who_opens_what_was_done_reads_it_from_its_head(open_home: Open) -> None:
    script = [call("look", place=str(place)) for place in range(CALLS)]
    async with open_home(
        ScriptedProvider("Words. " * 300, *script, "All seen."), tools=[_looker(asyncio.Event())]
    ) as (house, _):
        page = await house.phone()
        last = page.get_by_role("button", name="Retry")  # what comes last
        await _send(page, "Say much")
        await expect(last).to_be_visible()
        await _send(page, "Look")
        line = page.locator(LINE)
        await expect(line).to_contain_text(f"Read {CALLS}")
        await expect(last).to_be_visible()
        await expect(page.get_by_role("button", name="Latest messages")).to_be_hidden()
        before = await _top(line)
        await line.click()
        await expect(page.locator(".tool")).to_have_count(CALLS)
        await expect(page.get_by_role("button", name="Latest messages")).to_be_visible()
        assert abs(await _top(line) - before) <= 1
        await line.click()
        await expect(page.locator(".tool")).to_have_count(0)
