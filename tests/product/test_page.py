"""The page in a real browser against the real local model: the main job of the product."""

import json
import re
import urllib.request
from collections.abc import Generator
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright
from product.running import LONG_S, POEM, Product, require_chromium
from web.chromium import FLAGS

pytestmark = [pytest.mark.model, pytest.mark.chromium, pytest.mark.slow]

PROMPTS = {
    "Read the file notes.txt and tell me what it says.": "Read notes.txt",
    "List the files in this folder.": "List",
    "What time is it now?": "Look at the clock",
}
"""The three fixed prompts, each with what its tool card says."""

COMPOSER = "Message"


@pytest.fixture(scope="module")
def browser() -> Generator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=require_chromium(), args=FLAGS)
        yield found
        found.close()


@pytest.fixture
def page(browser: Browser, product: Product) -> Generator[Page]:
    """A phone that is signed in by a fresh one-time link."""
    context = browser.new_context(viewport={"width": 390, "height": 844})
    made = context.new_page()
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.goto(_fresh_link(product))
    expect(made.get_by_role("textbox", name=COMPOSER)).to_be_visible()
    assert "code=" not in made.url, "the code must not stay in the address"
    yield made
    context.close()
    assert not faults


def _ask(product: Product, method: str, path: str) -> dict[str, Any]:
    request = urllib.request.Request(
        product.url + path,
        method=method,
        headers={"authorization": f"Bearer {product.token}", "content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.loads(answer.read())


def _fresh_link(product: Product) -> str:
    return _ask(product, "POST", "/api/auth/pair")["url"]


def _send(page: Page, prompt: str) -> None:
    page.get_by_role("textbox", name=COMPOSER).fill(prompt)
    page.get_by_role("button", name="Send").click()


def _session(page: Page) -> str:
    found = re.search(r"ses_\w+", page.url)
    assert found is not None, page.url
    return found[0]


@pytest.mark.parametrize("prompt", PROMPTS)
def test_a_prompt_gives_streamed_text_and_a_tool_card(
    page: Page, product: Product, prompt: str
) -> None:
    _send(page, prompt)
    expect(page.locator(".doings").first).to_be_visible(timeout=LONG_S * 1000)
    expect(page.get_by_role("button", name="Stop")).to_be_hidden(timeout=LONG_S * 1000)
    for line in page.locator(".doings-head").all():
        line.click()
    card = page.locator(".tool").filter(has_text=PROMPTS[prompt]).first
    expect(card).to_be_visible()
    view = _ask(product, "GET", f"/api/sessions/{_session(page)}/view")["view"]
    assert view["last_turn"]["outcome"] == "completed"
    said = view["messages"][-1]["content"][-1]["text"]
    shown = page.locator("article.agent .md").last.inner_text()
    assert _words(said)[:8] == _words(shown)[:8]


@pytest.mark.rules("W05", "W14")
def test_a_reload_in_mid_stream_shows_the_same_view(page: Page, product: Product) -> None:
    _send(page, "What does the file poem.txt say? Write out all its lines.")
    stream = page.locator("article.agent").last
    expect(stream).to_contain_text(_words(POEM)[0], timeout=LONG_S * 1000)
    expect(page.get_by_role("button", name="Stop")).to_be_visible()
    seen = _words(stream.inner_text())
    page.reload()
    expect(page.get_by_role("button", name="Stop")).to_be_visible(timeout=30_000)
    after = page.locator("article.agent").last
    expect(after).to_contain_text(_words(POEM)[0], timeout=30_000)
    assert _words(after.inner_text())[: len(seen) - 1] == seen[:-1], "the text so far is lost"
    expect(page.get_by_role("button", name="Stop")).to_be_hidden(timeout=LONG_S * 1000)

    view = _ask(product, "GET", f"/api/sessions/{_session(page)}/view")["view"]
    said = _words(view["messages"][-1]["content"][-1]["text"])
    assert _words(page.locator("article.agent").last.inner_text())[: len(said)] == said
    expect(page.get_by_role("button", name="Retry")).to_be_visible()  # what comes last
    _until_read(page, product)
    before = page.get_by_role("log").inner_text()
    page.reload()
    expect(page.get_by_role("log")).to_have_text(before, use_inner_text=True, timeout=30_000)


def _until_read(page: Page, product: Product) -> None:
    """Wait until the page has told that its reader has seen all: until then it is marked as new."""
    for _ in range(100):
        if not _ask(product, "GET", f"/api/sessions/{_session(page)}").get("unread"):
            return
        page.wait_for_timeout(100)
    raise AssertionError("the page did not tell that what it showed was read")


def _words(text: str) -> list[str]:
    """The bare words: Markdown's signs and numbers are not on the screen."""
    return re.findall(r"[A-Za-z]+", text)
