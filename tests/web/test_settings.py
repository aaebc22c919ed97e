"""Settings and gate of the page in a real browser, against a real server."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, async_playwright, expect
from product.running import require_chromium
from web.chromium import FLAGS

from towline_agent.testing import ScriptedProvider
from towline_server.build import BuiltApp
from towline_server.models.testing import FakeProviders
from towline_server.testing import open_test_server

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

PASSWORD = "correct horse battery"
LIMIT_S = 90


@pytest.fixture
def providers() -> FakeProviders:
    return FakeProviders("acme", "other")


@pytest.fixture
async def server(tmp_path: Path, providers: FakeProviders) -> AsyncGenerator[BuiltApp]:
    async with open_test_server(ScriptedProvider(), root=tmp_path, providers=providers) as built:
        yield built


@pytest.fixture
async def browser() -> AsyncGenerator[Browser]:
    async with async_playwright() as playwright:
        found = await playwright.chromium.launch(executable_path=require_chromium(), args=FLAGS)
        yield found
        await found.close()


@pytest.fixture
async def page(browser: Browser, server: BuiltApp) -> AsyncGenerator[Page]:
    """A phone that came by a one-time link; what the page's policy refuses is a failure."""
    context = await browser.new_context(
        viewport={"width": 390, "height": 844}, locale="en-GB", reduced_motion="reduce"
    )
    made = await context.new_page()
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    made.on("console", lambda line: faults.append(line.text) if "Policy" in line.text else None)
    code, _ = server.access.new_code()
    await made.goto(f"{server.url}/#code={code}")
    await expect(made.get_by_role("textbox", name="Message")).to_be_visible()
    yield made
    await context.close()
    assert not faults


async def open_section(page: Page, name: str) -> None:
    """By the tabs, as a person does."""
    await page.get_by_role("navigation", name="Pages").get_by_role("link", name="Settings").click()
    await page.get_by_role("link", name=name).click()
    await expect(page.get_by_role("heading", name=name, level=2)).to_be_visible()


async def test_a_key_is_added_tested_and_removed(page: Page, providers: FakeProviders) -> None:
    async with asyncio.timeout(LIMIT_S):
        await open_section(page, "Models and keys")
        await page.locator("summary", has_text="Acme").click()
        await page.get_by_label("Key", exact=True).fill("sk-secret-1234")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("…1234").first).to_be_visible()
        assert providers.keys["acme"] == ["sk-secret-1234"]
        assert "secret-1234" not in await page.content()
        await page.get_by_role("button", name="Test").click()
        await expect(page.get_by_text("It offers 1 models.")).to_be_visible()
        await page.get_by_role("button", name="Remove all keys").click()
        await page.get_by_role("button", name="Remove all keys").click()
        await expect(page.get_by_text("…1234")).to_have_count(0)
        assert providers.keys["acme"] == []


async def test_look_and_size_of_the_text_are_there_before_the_page_is_after_a_reload(
    page: Page,
) -> None:
    async with asyncio.timeout(LIMIT_S):
        await open_section(page, "Look and typing")
        await page.get_by_role("radio", name="Dark").check()
        await page.get_by_label("Text size").press("End")
        await page.reload(wait_until="domcontentloaded")
        shown = await page.evaluate(
            "[document.documentElement.dataset.theme, document.documentElement.style.fontSize]"
        )
        assert shown == ["dark", "130%"]
        await expect(page.get_by_role("heading", name="Look and typing")).to_be_visible()


async def test_usage_and_versions_come_from_the_server(page: Page) -> None:
    async with asyncio.timeout(LIMIT_S):
        await open_section(page, "Usage and cost")
        await expect(page.get_by_text("Nothing was used in these days.")).to_be_visible()
        await page.get_by_role("link", name="All settings").click()
        await page.get_by_role("link", name="About").click()
        await expect(page.get_by_text("Server version")).to_be_visible()


@pytest.mark.rules("W30")
async def test_who_is_signed_out_elsewhere_reads_why_and_comes_back_to_the_place_by_a_password(
    page: Page, server: BuiltApp
) -> None:
    async with asyncio.timeout(LIMIT_S):
        await open_section(page, "Password")
        await page.get_by_label("New password").fill(PASSWORD)
        await page.get_by_role("button", name="Set the password").click()
        await expect(page.get_by_text("The password is set.")).to_be_visible()
        accounts = server.access.accounts
        for token in (await accounts.list_tokens("owner", current="")).tokens:
            await accounts.revoke_token("owner", token.id)
        await page.reload()
        await expect(page.get_by_text("Signed out on another device.")).to_be_visible()
        await page.get_by_role("radio", name="Password").check()
        await page.get_by_label("Password").last.fill("a wrong one")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_have_text("The name or the password is wrong.")
        await page.get_by_label("Password").last.fill(PASSWORD)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Password", level=2)).to_be_visible()
        assert page.url.endswith("#/settings/account")


async def test_the_model_of_new_chats_is_chosen_for_the_server(
    page: Page, providers: FakeProviders
) -> None:
    async with asyncio.timeout(LIMIT_S):
        await open_section(page, "Models and keys")
        await page.get_by_label("Model of new chats").select_option("acme/one")
        await expect(page.get_by_label("Model of new chats")).to_have_value("acme/one")
        while providers.default is None:  # the server hears of it a moment later
            await page.wait_for_timeout(20)
        assert providers.default == "acme/one"
