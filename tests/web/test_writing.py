"""What somebody writes: on which keys it goes, and that it is never lost and never doubled."""

import re
from typing import Any

import pytest
from playwright.async_api import Page, Route, expect
from web.conftest import Open
from web.house import composer, session_of, tools_of

from towline_agent.testing import ScriptedProvider
from towline_protocol import Image, Text

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]

TOUCH: dict[str, Any] = {"has_touch": True, "is_mobile": True}


async def _send(page: Page, text: str) -> None:
    await composer(page).fill(text)
    await page.get_by_role("button", name="Send").click()


@pytest.mark.rules("W08", "W09")
async def test_with_a_keyboard_up_the_composer_is_seen_and_no_field_makes_the_page_zoom(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider("word " * 2_000)) as (house, _):
        page = await house.phone(**TOUCH)
        await _send(page, "Tell me much")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await page.set_viewport_size({"width": 390, "height": 480})
        await composer(page).fill("line\n" * 40)
        await expect(composer(page)).to_be_in_viewport(ratio=1)
        await expect(page.get_by_role("button", name="Send")).to_be_in_viewport(ratio=1)
        sideways = "document.documentElement.scrollWidth <= innerWidth"
        assert await page.evaluate(sideways)
        content = await page.locator("meta[name=viewport]").get_attribute("content")
        assert content is not None
        assert "interactive-widget=resizes-content" in content
        assert not re.search("user-scalable|maximum-scale", content)
        for place in ("", "settings/models", "settings/look", "settings/account"):
            await page.goto(f"{house.line.url}/#/{place}")
            await expect(page.get_by_role("heading", level=1)).to_be_visible()
            small = await page.evaluate(
                "[...document.querySelectorAll('input,textarea,select')].filter((one) =>"
                " !/radio|checkbox|file/.test(one.type)"
                " && parseFloat(getComputedStyle(one).fontSize) < 16).map((one) => one.outerHTML)"
            )
            assert small == []


@pytest.mark.rules("W10")
@pytest.mark.parametrize("finger", [False, True])
async def test_enter_sends_where_there_is_a_keyboard_and_breaks_the_line_on_a_phone(
    open_home: Open, *, finger: bool
) -> None:
    async with open_home(ScriptedProvider("One.", "Two.")) as (house, _):
        page = await house.phone(**(TOUCH if finger else {}))
        field = composer(page)
        await field.press_sequentially("one")
        await field.press("Enter" if finger else "Shift+Enter")
        await field.press_sequentially("two")
        await expect(field).to_have_value("one\ntwo")
        await field.press("Control+Enter" if finger else "Enter")
        await expect(page.locator("article.agent")).to_contain_text("One.")
        await expect(page.locator("article.user")).to_have_text(re.compile("one\\s*two"))


@pytest.mark.rules("W11")
async def test_enter_that_takes_a_candidate_of_an_input_method_does_not_send(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider("好。")) as (house, _):
        page = await house.phone()
        tools = await tools_of(page)
        await composer(page).focus()
        await tools.send(
            "Input.imeSetComposition", {"text": "nihao", "selectionStart": 5, "selectionEnd": 5}
        )
        key = {"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 229}
        await tools.send("Input.dispatchKeyEvent", key)
        await tools.send("Input.insertText", {"text": "你好"})
        await expect(composer(page)).to_have_value("你好")
        await expect(page.locator("article.user")).to_have_count(0)
        await page.wait_for_timeout(50)  # the page passes over an Enter within 30 ms of it
        await composer(page).press("Enter")
        await expect(page.locator("article.user")).to_contain_text("你好")


@pytest.mark.rules("W12")
async def test_a_draft_outlives_a_switch_a_reload_and_a_failed_send(open_home: Open) -> None:
    async with open_home(ScriptedProvider("One.", "Two.")) as (house, _):
        page = await house.phone()
        await _send(page, "First")
        await expect(page.locator("article.agent")).to_contain_text("One.")
        session = session_of(page)
        field = composer(page)
        await field.fill("Of the session")
        await page.goto(f"{house.line.url}/#/")
        await expect(field).to_have_value("")
        await field.fill("Of a new one")
        await page.goto(f"{house.line.url}/#/s/{session}")
        await expect(field).to_have_value("Of the session")
        await page.reload()
        await expect(field).to_have_value("Of the session")
        await page.goto(f"{house.line.url}/#/")
        await expect(field).to_have_value("Of a new one")

        await page.goto(f"{house.line.url}/#/s/{session}")
        await expect(field).to_have_value("Of the session")
        await page.route("**/prompts", _refuse)
        await page.get_by_role("button", name="Send").click()
        failed = page.get_by_text("Not sent:")
        await expect(failed).to_be_visible()
        await page.unroute_all()
        await page.reload()
        await expect(field).to_have_value("Of the session")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent").last).to_contain_text("Two.")
        await page.reload()
        await expect(field).to_have_value("")


async def _refuse(route: Route) -> None:
    await route.fulfill(
        status=413,
        headers={"towline-contract": "1", "content-type": "application/problem+json"},
        body='{"title":"","status":413,"detail":"","code":"payload_too_large","retry":"none"}',
    )


@pytest.mark.rules("W13")
async def test_a_prompt_whose_answer_was_lost_is_one_message(open_home: Open) -> None:
    async with open_home(ScriptedProvider("One.", "Two.")) as (house, _):
        page = await house.phone()
        await _send(page, "First")
        await expect(page.locator("article.agent")).to_contain_text("One.")
        keys: list[str] = []

        async def lose(route: Route) -> None:
            keys.append(route.request.headers["idempotency-key"])
            if len(keys) > 1:
                await route.continue_()
                return
            answer = await route.fetch()
            assert answer.ok
            await route.abort("connectionreset")

        await page.route("**/prompts", lose)
        await _send(page, "Second")
        await expect(page.locator("article.agent").last).to_contain_text("Two.")
        await expect(page.locator("article.user")).to_have_count(2)
        view = await house.ended(session_of(page), 2)
        said = [block.text for one in view.messages if one.role == "user" for block in one.content
                if isinstance(block, Text)]  # fmt: skip
        assert said == ["First", "Second"]
        assert len(set(keys)) == 1


@pytest.mark.rules("W12", "W13")
async def test_what_could_not_be_sent_for_two_minutes_waits_for_a_tap(open_home: Open) -> None:
    async with open_home(ScriptedProvider("One.", "Two.")) as (house, _):
        page = await house.phone()
        await _send(page, "First")
        await expect(page.locator("article.agent")).to_contain_text("One.")
        await page.route("**/prompts", lambda route: route.abort("internetdisconnected"))
        await _send(page, "Second")
        await expect(page.get_by_text("Sending…")).to_be_visible()
        await page.evaluate("beSeen('visible', 130_000)")
        retry = page.locator(".delivery").get_by_role("button", name="Retry")
        await expect(retry).to_be_visible()
        await page.unroute_all()
        view = await house.client.view(session_of(page))
        assert len([one for one in view.messages if one.role == "user"]) == 1
        await retry.click()
        await expect(page.locator("article.agent").last).to_contain_text("Two.")
        await expect(page.locator("article.user")).to_have_count(2)


_COPY = """async (text) => {
  const kinds = { "text/plain": new Blob([text], { type: "text/plain" }) };
  if (!text) {
    delete kinds["text/plain"];
    const canvas = new OffscreenCanvas(40, 30);
    canvas.getContext("2d").fillRect(0, 0, 40, 30);
    kinds["image/png"] = await canvas.convertToBlob({ type: "image/png" });
  }
  await navigator.clipboard.write([new ClipboardItem(kinds)]);
}"""


async def _paste(page: Page) -> None:
    await page.get_by_role("button", name="Attach").click()
    await page.get_by_role("button", name="Paste").click()


async def test_the_menu_pastes_a_text_at_the_caret_and_a_picture_beside_it(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider("Seen.")) as (house, _):
        page = await house.phone(permissions=["clipboard-read", "clipboard-write"])
        field = composer(page)
        await field.fill("Say  aloud")
        for _ in range(len(" aloud")):
            await field.press("ArrowLeft")
        await page.evaluate(_COPY, "it\ntwice")
        await _paste(page)
        await expect(field).to_have_value("Say it\ntwice aloud")
        await expect(field).to_be_focused()
        await page.keyboard.press("Control+z")
        await expect(field).to_have_value("Say  aloud")
        await page.evaluate(_COPY, "")
        await _paste(page)
        await expect(page.locator(".attached-one img")).to_be_visible()
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent")).to_contain_text("Seen.")
        view = await house.ended(session_of(page))
        text, picture = view.messages[0].content
        assert isinstance(text, Text)
        assert isinstance(picture, Image)


async def test_where_the_clipboard_is_not_for_the_page_it_says_how_else(open_home: Open) -> None:
    async with open_home(ScriptedProvider()) as (house, _):
        page = await house.phone()
        tools = await tools_of(page)
        await tools.send(
            "Browser.setPermission",
            {"permission": {"name": "clipboard-read"}, "setting": "denied"},
        )
        await _paste(page)
        await expect(page.get_by_text("Paste it into the field")).to_be_visible()
        await expect(composer(page)).to_be_focused()
