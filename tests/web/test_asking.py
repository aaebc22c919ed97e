"""A person is asked, stops what runs, and is told of it."""

import asyncio

import pytest
from playwright.async_api import Page, expect
from web.conftest import Open
from web.house import composer, runner, session_of

from towline_agent.providers.base import TextPiece
from towline_agent.testing import ScriptedProvider, call
from towline_protocol import PermissionResolved, QuestionResolved, TurnCancelled

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]

LONG = f"echo {'so long that nobody reads it in one go ' * 100}; rm -rf /home/ada"


async def _ask(page: Page, prompt: str = "Do it") -> None:
    await composer(page).fill(prompt)
    await page.get_by_role("button", name="Send").click()


@pytest.mark.rules("W06")
async def test_a_request_is_answered_once_and_the_other_device_sees_by_whom(
    open_home: Open,
) -> None:
    ran: list[str] = []
    provider = ScriptedProvider(call("run", command="make all"), "Done.")
    async with open_home(provider, tools=[runner(ran)], mode="ask") as (house, _):
        one = await house.phone()
        await _ask(one)
        await expect(one.get_by_role("region", name="Allow this?")).to_contain_text("make all")
        other = await house.phone(session_of(one))
        await expect(other).to_have_title("(1) Do it · towline")
        card = other.get_by_role("region", name="Allow this?")
        await card.get_by_role("button", name="Review").click()
        await other.get_by_role("button", name="Allow once").click()
        await expect(
            one.get_by_role("region", name="Allow this?").get_by_text("Allowed by you")
        ).to_be_visible()
        for page in (one, other):
            await expect(page.locator("article.agent").last).to_contain_text("Done.")
            await page.locator(".tool summary").click()
            await expect(page.locator(".tool")).to_contain_text("Allowed by you")
            await expect(page).to_have_title("Do it · towline")
        assert ran == ["make all"]


@pytest.mark.rules("W07")
async def test_a_long_command_can_be_read_to_its_end_before_it_is_allowed(open_home: Open) -> None:
    ran: list[str] = []
    provider = ScriptedProvider(call("run", command=LONG), "Done.")
    async with open_home(provider, tools=[runner(ran)], mode="ask") as (house, _):
        page = await house.phone()
        await _ask(page)
        await page.get_by_role("button", name="Review").click()
        sheet = page.get_by_role("dialog")
        whole = sheet.locator("pre.whole")
        await expect(whole).to_have_text(LONG)
        allow = sheet.get_by_role("button", name="Allow once")
        await expect(allow).to_be_in_viewport(ratio=1)
        await expect(allow).to_be_enabled()
        fits = await whole.evaluate("(one) => one.scrollWidth <= one.clientWidth")
        assert fits, "a part of the command lies beside the screen"
        below = await whole.evaluate(
            """(one) => {
              one.scrollIntoView({ block: "end" });
              const frame = one.closest(".sheet-scroll").getBoundingClientRect();
              return one.getBoundingClientRect().bottom - frame.bottom;
            }"""
        )
        assert below <= 1, "the end of the command cannot be scrolled into sight"
        await expect(allow).to_be_in_viewport(ratio=1)
        await allow.dblclick()
        await expect(page.locator("article.agent").last).to_contain_text("Done.")
        assert ran == [LONG]
        log = await house.client.log(session_of(page))
        assert sum(isinstance(one.event, PermissionResolved) for one in log) == 1


@pytest.mark.rules("W07")
async def test_a_command_of_which_a_part_is_missing_can_only_be_denied(open_home: Open) -> None:
    ran: list[str] = []
    provider = ScriptedProvider(call("run", command=LONG), "Then not.")
    cut = runner(ran, text=lambda command: command[:200], cut=True)
    async with open_home(provider, tools=[cut], mode="ask") as (house, _):
        page = await house.phone()
        await _ask(page)
        await page.get_by_role("button", name="Review").click()
        sheet = page.get_by_role("dialog")
        await expect(sheet.get_by_role("button", name="Deny")).to_be_enabled()
        for name in ("Allow once", "Allow for this session"):
            await expect(sheet.get_by_role("button", name=name)).to_be_disabled()
        await sheet.get_by_role("button", name="Deny").click()
        await expect(page.locator("article.agent").last).to_contain_text("Then not.")
        assert ran == []


@pytest.mark.rules("W07")
async def test_what_lasts_stands_behind_the_dots_and_takes_a_second_tap(open_home: Open) -> None:
    ran: list[str] = []
    provider = ScriptedProvider(call("run", command="make all"), "Done.")
    async with open_home(provider, tools=[runner(ran)], mode="ask") as (house, _):
        page = await house.phone()
        await _ask(page)
        await page.get_by_role("button", name="Review").click()
        sheet = page.get_by_role("dialog")
        deny = sheet.get_by_role("button", name="Deny")
        await expect(deny).to_be_focused()
        order = await sheet.locator(".answers > button:not(.icon-button)").all_inner_texts()
        assert [one.partition("\n")[0] for one in order] == [
            "Deny",
            "Allow for this session",
            "Allow once",
        ]
        always = sheet.get_by_role("button", name="Always allow")
        await expect(always).to_be_hidden()
        await sheet.get_by_role("button", name="More").click()
        await always.dblclick()
        await expect(always).to_contain_text("Makes the rule: allow run")
        await expect(always).to_be_in_viewport(ratio=1)
        await expect(always).to_be_focused()
        assert ran == []
        await page.keyboard.press("Escape")  # closes the menu and no more
        await expect(always).to_be_hidden()
        await expect(deny).to_be_visible()
        await sheet.get_by_role("button", name="More").click()
        await always.click()
        await page.wait_for_timeout(450)  # sooner it is taken for the same tap
        await always.click()
        await expect(page.locator("article.agent").last).to_contain_text("Done.")
        assert ran == ["make all"]
        log = await house.client.log(session_of(page))
        options = [one.event.option for one in log if isinstance(one.event, PermissionResolved)]
        assert options == ["allow_always"]


async def test_a_question_is_answered_with_the_keys_of_any_form(open_home: Open) -> None:
    items = [
        {"prompt": "Which colour?", "options": ["red", "blue", "green"]},
        {"prompt": "Which sizes?", "options": ["small", "large"], "multiple": True},
    ]
    provider = ScriptedProvider(call("ask_user", items=items), "Thanks.")
    async with open_home(provider) as (house, _):
        page = await house.phone()
        await _ask(page)
        card = page.get_by_role("form", name="Questions for you")
        colours = card.get_by_role("group", name="Which colour?")
        sizes = card.get_by_role("group", name="Which sizes?")
        await expect(colours.get_by_role("radio")).to_have_count(3)
        rows = await card.locator("label").evaluate_all(
            "(all) => all.map((one) => one.getBoundingClientRect().height)"
        )
        assert min(rows) >= 44
        await colours.get_by_role("radio").first.focus()
        await page.keyboard.press("Space")
        await page.keyboard.press("ArrowDown")
        await expect(colours.get_by_role("radio", name="blue")).to_be_checked()
        await page.keyboard.press("ArrowUp")
        await page.keyboard.press("ArrowUp")
        await expect(colours.get_by_role("radio", name="green")).to_be_checked()
        answer = card.get_by_role("button", name="Answer")
        await expect(answer).to_be_disabled()
        await page.keyboard.press("Tab")  # its own words
        await page.keyboard.press("Tab")
        await expect(sizes.get_by_role("checkbox", name="small")).to_be_focused()
        await page.keyboard.press("Space")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Space")
        for name in ("small", "large"):
            await expect(sizes.get_by_role("checkbox", name=name)).to_be_checked()
        await answer.press("Enter")
        await expect(page.locator("article.agent").last).to_contain_text("Thanks.")
        log = await house.client.log(session_of(page))
        (given,) = [one.event.answers for one in log if isinstance(one.event, QuestionResolved)]
        assert [len(values) for values in given.values()] == [1, 2]


@pytest.mark.rules("W15")
async def test_stop_stops_the_agent_and_nothing_comes_after(open_home: Open) -> None:
    never = asyncio.Event()
    provider = ScriptedProvider([TextPiece(0, "So far"), never, TextPiece(0, " and further")])
    async with open_home(provider) as (house, _):
        page = await house.phone()
        await _ask(page)
        await expect(page.locator("article.agent")).to_contain_text("So far")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_role("log").get_by_text("Stopped", exact=True)).to_be_visible()
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        view = await house.ended(session_of(page))
        assert view.last_turn is not None
        assert view.last_turn.outcome == "cancelled"
        log = await house.client.log(session_of(page))
        assert isinstance(log[-1].event, TurnCancelled)
        never.set()
        await expect(page.locator("article.agent")).not_to_contain_text("further")


@pytest.mark.rules("W24")
async def test_a_screen_reader_hears_three_words_of_a_turn_and_no_token(open_home: Open) -> None:
    provider = ScriptedProvider("Before.", call("run", command="make all"), "A long answer.")
    async with open_home(provider, tools=[runner([])], mode="ask") as (house, _):
        page = await house.phone()
        await _ask(page, "First")
        await expect(page.locator("article.agent")).to_contain_text("Before.")
        await expect(page.get_by_role("log")).to_have_attribute("aria-live", "off")
        await page.evaluate(
            "() => { window.heard = []; new MutationObserver((found) => {"
            " for (const { target } of found) {"
            " const live = (target.closest ? target : target.parentElement)"
            ".closest('[aria-live=polite]');"
            " const text = live?.textContent.trim();"
            " if (text && text !== heard.at(-1)) heard.push(text); } })"
            ".observe(document.body, { subtree: true, childList: true, characterData: true }) }"
        )
        await _ask(page, "Second")
        card = page.get_by_role("region", name="Allow this?")
        await card.get_by_role("button", name="Review").click()
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.locator("article.agent").last).to_contain_text("A long answer.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        heard = await page.evaluate("heard")
        assert [one for one in heard if one != "Working"] == ["Approval needed", "Answer complete"]
