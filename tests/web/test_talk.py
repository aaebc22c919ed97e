"""A talk that is changed, stopped and gone back in, and the list of all talks."""

import asyncio
import re
from collections.abc import Callable

import pytest
from playwright.async_api import Page, expect
from web.conftest import Open
from web.house import composer, session_of

from towline_agent.providers.base import TextPiece
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import SessionView, block_text

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]

TURNS = 104
"""More than a view holds."""
INBOX = 8
"""Prompts that may wait at once."""
WORDS = "Some words of an answer. " * 30
DESK = {"width": 1280, "height": 800}

_AT_TOP = """() => {
  const frame = document.querySelector("[role=log]").getBoundingClientRect();
  const one = [...document.querySelectorAll("article")]
    .find((each) => each.getBoundingClientRect().bottom > frame.top + 1);
  return [one.textContent.slice(0, 30), one.getBoundingClientRect().top];
}"""


def _answered(prompt: str) -> Callable[[SessionView], bool]:
    def met(view: SessionView) -> bool:
        said = [block_text(one.content) for one in view.messages]
        return view.turn is None and not view.queue and prompt in said

    return met


async def _send(page: Page, text: str) -> None:
    await composer(page).fill(text)
    await page.get_by_role("button", name="Send").click()


@pytest.mark.rules("W01")
async def test_what_is_older_comes_in_above_by_itself_and_moves_nothing(open_home: Open) -> None:
    async with open_home(ScriptedProvider(*[WORDS] * TURNS)) as (house, _):
        session = await house.client.create()
        for count in range(TURNS):
            await house.client.prompt(session, f"Question {count}")
            if count % INBOX == INBOX - 1:
                await house.client.until(session, _answered(f"Question {count}"))
        page = await house.phone(session)
        log = page.get_by_role("log")
        await expect(page.get_by_text(f"Question {TURNS - 1}", exact=True)).to_be_visible()
        await log.hover()
        first = page.get_by_text("Question 0", exact=True)
        for _ in range(80):
            if await first.count():
                break
            before = await page.evaluate("document.querySelectorAll('article').length")
            await page.mouse.wheel(0, -1_500)
            await page.wait_for_timeout(60)
            held, top = await page.evaluate(_AT_TOP)
            await page.wait_for_timeout(120)
            later, now = await page.evaluate(_AT_TOP)
            if await page.evaluate("document.querySelectorAll('article').length") == before:
                assert (later, round(now)) == (held, round(top))
        await expect(first).to_be_attached()
        assert await page.evaluate("document.querySelector('[role=log]').scrollTop") > 0


async def test_a_message_is_said_otherwise_and_all_after_it_goes(open_home: Open) -> None:
    async with open_home(ScriptedProvider("One.", "Two.", "Other.")) as (house, _):
        page = await house.phone()
        await _send(page, "First")
        await expect(page.locator("article.agent")).to_have_text(re.compile("One\\."))
        await _send(page, "Second")
        await expect(page.locator("article.agent").last).to_contain_text("Two.")
        await page.get_by_role("button", name="Edit").first.click()
        await expect(composer(page)).to_have_value("First")
        await _send(page, "Another first")
        await expect(page.locator("article.agent").last).to_contain_text("Other.")
        await expect(page.locator("article.undone")).to_have_count(4)
        view = await house.ended(session_of(page), 3)
        assert [one.undone for one in view.messages if one.role == "user"] == [True, True, False]


@pytest.mark.rules("W15")
async def test_what_waits_is_taken_back_or_goes_on_after_a_stop(open_home: Open) -> None:
    gate = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "Begun"), gate], "Third is done.")
    async with open_home(provider) as (house, _):
        page = await house.phone()
        await _send(page, "First")
        await expect(page.locator("article.agent")).to_contain_text("Begun")
        for words in ("Second", "Third"):
            await composer(page).fill(words)
            await page.get_by_role("button", name="Queue").click()
        waiting = page.get_by_role("region", name="Waiting messages")
        await expect(waiting.get_by_role("listitem")).to_have_count(2)
        await waiting.get_by_role("button", name="Remove Second").click()
        await expect(waiting.get_by_role("listitem")).to_have_count(1)
        await page.get_by_role("button", name="Stop").click()
        await expect(waiting).to_contain_text("Held back after the stop.")
        await page.reload()
        await expect(waiting).to_contain_text("Held back after the stop.")
        await waiting.get_by_role("button", name="Resume queue").click()
        await expect(page.locator("article.agent").last).to_contain_text("Third is done.")
        await expect(waiting).to_be_hidden()


@pytest.mark.rules("W12")
async def test_a_half_filled_question_survives_a_reload_and_can_be_left_to_the_agent(
    open_home: Open,
) -> None:
    items = [
        {"prompt": "Which colour?", "options": ["red", "blue"]},
        {"prompt": "What is it called?"},
    ]
    provider = ScriptedProvider(call("ask_user", items=items), "I chose.")
    async with open_home(provider) as (house, _):
        page = await house.phone()
        await _send(page, "Make one")
        card = page.get_by_role("form", name="Questions for you")
        await card.get_by_role("radio", name="blue").check()
        await card.get_by_role("textbox").last.fill("half a na")
        await page.reload()
        await expect(card.get_by_role("radio", name="blue")).to_be_checked()
        await expect(card.get_by_role("textbox").last).to_have_value("half a na")
        await card.get_by_role("button", name=re.compile("^Skip")).click()
        await expect(page.locator("article.agent").last).to_contain_text("I chose.")


async def test_sessions_are_found_named_put_away_and_deleted_with_a_way_back(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider("Sums.", "Poems.")) as (house, _):
        page = await house.phone(viewport=DESK)
        await _send(page, "Do sums")
        await expect(page.locator("article.agent")).to_contain_text("Sums.")
        await page.get_by_role("link", name="New chat").click()
        await _send(page, "Write poems")
        await expect(page.locator("article.agent")).to_contain_text("Poems.")
        listed = page.get_by_role("navigation", name="Sessions")
        await page.keyboard.press("Control+k")
        await page.keyboard.type("sums")
        await expect(listed.get_by_role("listitem")).to_have_count(1)

        await listed.get_by_role("button", name="More").click()
        sheet = page.get_by_role("dialog")
        await sheet.get_by_label("Title").fill("Numbers")
        await sheet.get_by_role("button", name="Rename").click()
        await expect(sheet).to_be_hidden()  # what is behind it takes no keys before
        await listed.get_by_role("searchbox").fill("")
        row = listed.get_by_role("listitem").filter(has_text="Numbers")
        await expect(row).to_be_visible()

        await row.get_by_role("button", name="More").click()
        await sheet.get_by_role("button", name="Archive").click()
        await expect(row).to_be_hidden()
        await listed.get_by_role("button", name="Archived").click()
        await expect(row).to_be_visible()
        await row.get_by_role("button", name="More").click()
        await sheet.get_by_role("button", name="Delete").click()
        await expect(row).to_be_hidden()
        await listed.get_by_role("button", name="Undo").click()
        await expect(row).to_be_visible()
        await row.get_by_role("button", name="More").click()
        await sheet.get_by_role("button", name="Delete").click()
        await expect(listed.get_by_text("Deleted.")).to_be_hidden(timeout=15_000)
        await expect(listed.get_by_text("Nothing is archived.")).to_be_visible()


@pytest.mark.parametrize("way", ["closed", "reloaded", "hidden"])
async def test_what_was_deleted_stays_so_when_nobody_waits_for_the_end_of_the_undo(
    open_home: Open, way: str
) -> None:
    async with open_home(ScriptedProvider("Sums.")) as (house, _):
        page = await house.phone(viewport=DESK)
        await _send(page, "Do sums")
        await expect(page.locator("article.agent")).to_contain_text("Sums.")
        session = session_of(page)
        sent: list[str] = []
        page.context.on(
            "request", lambda one: sent.append(one.url) if one.method == "DELETE" else None
        )
        listed = page.get_by_role("navigation", name="Sessions")
        row = listed.get_by_role("listitem").filter(has_text="Do sums")
        await row.get_by_role("button", name="More").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(listed.get_by_role("button", name="Undo")).to_be_visible()
        assert sent == []
        deleted = house.client.until(session, lambda view: view.closed == "deleted")
        told = asyncio.ensure_future(deleted)
        if way == "closed":
            await page.close()
        elif way == "reloaded":
            await page.reload()
        else:
            await page.evaluate("beSeen('hidden')")
        async with asyncio.timeout(5):  # the undo itself would take longer
            await told
        if way == "closed":
            return
        await page.evaluate("beSeen('visible')")
        await expect(listed.get_by_text("No sessions yet")).to_be_visible()
        await expect(listed.get_by_role("button", name="Undo")).to_be_hidden()
        await page.wait_for_timeout(6_500)
        assert len(sent) <= 1  # of a page that goes not all is told
