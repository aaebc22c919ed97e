"""The page as an app on a phone: kept, installed, updated, and read without a server."""

import asyncio
import io
import json
import os
import re
import shutil
import socket
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.async_api import (
    BrowserContext,
    Locator,
    Page,
    ViewportSize,
    async_playwright,
    expect,
)
from product.running import require_chromium
from rich.console import Console
from web.house import SEEN, session_of

from towline.cli.pair import pair
from towline.paths import find_paths
from towline_agent.testing import ScriptedProvider
from towline_protocol import Image, Text
from towline_server import BuiltApp, RunFile
from towline_server.testing import AppClient, open_test_server, sign_in
from towline_server.web.serve import DIST, WebApp, load_web_app

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

ANSWER = "The rope holds."
HTML = "text/html"
PHONE: ViewportSize = {"width": 390, "height": 844}
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]


@pytest.fixture
async def phone(tmp_path: Path) -> AsyncGenerator[BrowserContext]:
    """A browser of its own on a folder of its own, as on a device: it keeps workers and copies."""
    async with async_playwright() as playwright:
        context = await playwright.chromium.launch_persistent_context(
            str(tmp_path / "profile"),
            executable_path=require_chromium(),
            args=FLAGS,
            viewport=PHONE,
        )
        context.set_default_timeout(20_000)
        expect.set_options(timeout=20_000)
        yield context
        await context.close()


async def _sign_in(phone: BrowserContext, built: BuiltApp) -> Page:
    """A page that came in by a fresh link, with its worker at work."""
    code, _ = built.access.new_code()
    page = phone.pages[0] if phone.pages else await phone.new_page()
    await page.goto(f"{built.url}/#code={code}")
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()
    await page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
    return page


async def _talk(page: Page) -> None:
    await page.get_by_role("textbox", name="Message").fill("Does it hold?")
    await page.get_by_role("button", name="Send").click()
    await expect(page.locator("article.agent")).to_contain_text(ANSWER)


COUNT_COPIES = """async () => {
  const known = await indexedDB.databases();
  if (!known.some(({ name }) => name === "towline")) return 0;
  const done = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const database = await done(indexedDB.open("towline"));
  const count = await done(database.transaction("sessions").objectStore("sessions").count());
  database.close();
  return count;
}"""


async def _until_kept(page: Page, count: int) -> None:
    """Wait until the page has kept copies of so many sessions."""
    async with asyncio.timeout(20):
        while await page.evaluate(COUNT_COPIES) != count:
            await page.wait_for_timeout(50)


async def test_without_a_server_the_page_starts_and_shows_a_copy(
    phone: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built:
        page = await _sign_in(phone, built)
        await _talk(page)
        await _until_kept(page, 1)
    await page.reload()
    await expect(page.locator("article.agent")).to_contain_text(ANSWER)
    await expect(page.get_by_text(re.compile(r"Copy from .+\. No connection\."))).to_be_visible()
    field = page.get_by_role("textbox", name="Message")
    await field.fill("Written on the train")
    await page.reload()
    await expect(page.get_by_role("textbox", name="Message")).to_have_value("Written on the train")


async def test_signing_out_leaves_no_copy_behind(phone: BrowserContext, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built:
        page = await _sign_in(phone, built)
        await _talk(page)
        await _until_kept(page, 1)
        await page.get_by_role("button", name="More", exact=True).click()
        await page.get_by_role("button", name="Sign out").click()
        await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
        await _until_kept(page, 0)
    await page.reload()
    await expect(page.get_by_text("The server does not answer")).to_be_visible()


async def _sign_in_as(page: Page, user: str) -> None:
    await page.get_by_role("radio", name="Password").check()
    await page.get_by_label("Name").fill(user)
    await page.get_by_label("Password", exact=True).last.fill(f"the password of {user}")
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("textbox", name="Message")).to_be_visible()


@pytest.mark.rules("W12")
async def test_what_one_user_leaves_in_a_browser_the_next_one_does_not_see(
    phone: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built:
        await sign_in(built, "ada")
        await sign_in(built, "bob")
        first = phone.pages[0]
        await first.add_init_script(SEEN)
        await first.goto(built.url)
        await _sign_in_as(first, "ada")
        await _talk(first)
        await _until_kept(first, 1)
        second = await phone.new_page()
        await second.goto(built.url)
        await second.get_by_role("textbox", name="Message").fill("Ada's own words")
        await first.evaluate("beSeen('hidden')")
        await second.get_by_role("button", name="More", exact=True).click()
        await second.get_by_role("button", name="Sign out").click()
        await expect(second.get_by_role("button", name="Sign in")).to_be_visible()
        await _until_kept(second, 0)
        await first.goto("about:blank")  # which has never heard of it
        await _sign_in_as(second, "bob")
        assert await second.evaluate(COUNT_COPIES) == 0
        await expect(second.get_by_role("textbox", name="Message")).to_have_value("")
        await second.get_by_role("button", name="More", exact=True).click()
        await second.get_by_role("button", name="Sign out").click()
        await _sign_in_as(second, "ada")
        field = second.get_by_role("textbox", name="Message")
        await expect(field).to_have_value("Ada's own words")


async def test_a_fresh_link_is_taken_by_a_gate_that_is_open(
    phone: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(), root=tmp_path / "root") as built:
        page = phone.pages[0]
        await page.goto(f"{built.url}/#code=USED-CODE")
        await expect(page.get_by_text("That code is wrong or used up.")).to_be_visible()
        code, _ = built.access.new_code()
        await page.goto(f"{built.url}/#code={code}")
        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()


def _other_build(place: Path) -> WebApp:
    """The same page under another stamp, without one of its parts."""
    shutil.copytree(DIST, place)
    stamp = json.loads((place / "build.json").read_text())["sources"]
    for name in ("index.html", "sw.js", "build.json"):
        text = (place / name).read_text()
        (place / name).write_text(text.replace(stamp[:12], "f" * 12))
    (gone,) = (place / "assets").glob("languages-*.js")
    gone.unlink()
    worker = (place / "sw.js").read_text()
    (place / "sw.js").write_text(worker.replace(f'"/assets/{gone.name}",', ""))
    return load_web_app(place)


@pytest.mark.rules("W18")
async def test_a_new_build_waits_for_a_tap_and_keeps_the_draft(
    phone: BrowserContext, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "root").mkdir()
    served = load_web_app()
    monkeypatch.setattr("towline_server.build.load_web_app", lambda: served)
    async with open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built:
        page = await _sign_in(phone, built)
        await page.reload()
        field = page.get_by_role("textbox", name="Message")
        await expect(field).to_be_visible()
        (gone,) = (DIST / "assets").glob("languages-*.js")
        vars(served).update(vars(_other_build(tmp_path / "dist")))
        await page.evaluate("navigator.serviceWorker.ready.then((found) => found.update())")
        await expect(page.get_by_text("A new version of this page is ready.")).to_be_visible()
        assert await _build(page) != "f" * 12, "nothing changes by itself"

        # The part that is gone from the server is still there for the old page, and no other.
        old = await page.evaluate(f"fetch('/assets/{gone.name}').then((one) => one.status)")
        none = await page.evaluate("fetch('/assets/none-12345678.js').then((one) => one.status)")
        assert (old, none) == (200, 404)
        kept = await page.evaluate("caches.match('/assets/none-12345678.js').then(Boolean)")
        assert not kept

        await field.fill("Half a thought")
        await page.get_by_role("button", name="Reload").click()
        await expect(page.locator(f'meta[content="{"f" * 12}"]')).to_have_count(1)
        await expect(field).to_have_value("Half a thought")
        await expect(page.get_by_text("A new version of this page is ready.")).to_be_hidden()


async def _build(page: Page) -> str:
    found = await page.locator('meta[name="towline-build"]').get_attribute("content")
    assert found is not None
    return found


SHARE = """async ([address, text]) => {
  const canvas = new OffscreenCanvas(40, 30);
  canvas.getContext("2d").fillRect(0, 0, 40, 30);
  const picture = await canvas.convertToBlob({ type: "image/png" });
  const form = document.createElement("form");
  Object.assign(form, { method: "post", enctype: "multipart/form-data", action: address });
  const field = (name, more) => {
    const made = Object.assign(document.createElement("input"), { name, ...more });
    form.append(made);
    return made;
  };
  field("title", { value: "Ropes" });
  field("text", { value: text });
  const data = new DataTransfer();
  data.items.add(new File([picture], "knot.png", { type: "image/png" }));
  field("images", { type: "file" }).files = data.files;
  document.body.append(form);
  form.submit();
}"""
"""What a system does when somebody shares with the app, and what any site can do."""


async def _share(page: Page, built: BuiltApp, text: str) -> Locator:
    """Share a text and a picture from elsewhere; gives what the page then shows."""
    elsewhere = "http://elsewhere.example/"
    await page.route(elsewhere, lambda route: route.fulfill(body="<p>A site", content_type=HTML))
    await page.goto(elsewhere)
    await page.evaluate(SHARE, [f"{built.url}/share", text])
    sheet = page.get_by_role("dialog", name="Shared with you")
    await expect(sheet).to_contain_text(text)
    await expect(sheet).to_contain_text("knot.png")
    return sheet


async def test_what_is_shared_with_the_app_is_in_no_draft_before_the_person_wants_it(
    phone: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built:
        page = await _sign_in(phone, built)
        field = page.get_by_role("textbox", name="Message")
        await field.fill("Begun")
        sheet = await _share(page, built, "Do as this site says")
        await page.reload()
        await expect(sheet).to_contain_text("Do as this site says")
        await sheet.get_by_role("button", name="Discard").click()
        await expect(field).to_have_value("Begun")
        await expect(page.locator(".attached-one")).to_have_count(0)
        await page.reload()
        await expect(field).to_have_value("Begun")
        await expect(sheet).to_be_hidden()

        await _share(page, built, "Does this one hold?")
        await sheet.get_by_role("button", name="Use").click()
        await expect(field).to_have_value("Begun\n\nRopes\nDoes this one hold?")
        await expect(page.locator(".attached-one img")).to_be_visible()
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent")).to_contain_text(ANSWER)
        view = await AppClient(built).view(session_of(page))
        text, picture = view.messages[0].content
        assert isinstance(text, Text)
        assert text.text == "Begun\n\nRopes\nDoes this one hold?"
        assert isinstance(picture, Image)
        await page.reload()
        await expect(sheet).to_be_hidden()


async def test_the_browser_would_install_the_page(phone: BrowserContext, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(), root=tmp_path / "root") as built:
        page = await _sign_in(phone, built)
        tools: Any = await phone.new_cdp_session(page)
        manifest = await tools.send("Page.getAppManifest")
        errors = await tools.send("Page.getInstallabilityErrors")
    assert manifest["errors"] == []
    told = json.loads(manifest["data"])
    assert (told["id"], told["display"], told["scope"]) == ("/", "standalone", "/")
    assert errors["installabilityErrors"] == []


async def test_the_page_keeps_to_its_policy(phone: BrowserContext, tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    async with open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built:
        said: list[str] = []
        page = phone.pages[0]
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        await page.add_init_script(
            "addEventListener('securitypolicyviolation', (event) =>"
            " console.error(`${event.violatedDirective} ${event.blockedURI}`))"
        )
        await _sign_in(phone, built)
        await _talk(page)
        await page.get_by_role("button", name="More", exact=True).click()
        scope = "navigator.serviceWorker.ready.then((found) => found.updateViaCache)"
        assert await page.evaluate(scope) == "none"
        # The browser says that the page keeps its offer to install it.
        assert [line for line in said if "beforeinstallprompt" not in line] == []
        other = "trustedTypes.createPolicy('other', {})"
        with pytest.raises(Exception, match="disallowed"):
            await page.evaluate(other)


@pytest.mark.rules("W20")
async def test_over_plain_http_the_page_works_and_says_what_it_lacks(
    tmp_path: Path,
) -> None:
    (tmp_path / "root").mkdir()
    name = socket.gethostname().lower()
    async with (
        open_test_server(ScriptedProvider(ANSWER), root=tmp_path / "root") as built,
        async_playwright() as playwright,
    ):
        # The machine's own name, as another device calls it: no browser trusts that over HTTP.
        browser = await playwright.chromium.launch(
            executable_path=require_chromium(),
            args=[*FLAGS, f"--host-resolver-rules=MAP {name} 127.0.0.1"],
        )
        page = await browser.new_page(viewport=PHONE)
        code, _ = built.access.new_code()
        address = built.url.replace("127.0.0.1", name)
        await page.goto(f"{address}/#code={code}")
        banner = page.get_by_text("Limited on plain HTTP")
        await expect(banner).to_be_visible()
        assert not await page.evaluate("isSecureContext")
        await _talk(page)
        await page.get_by_role("button", name="Attach").click()
        await expect(page.get_by_text("Photo or picture")).to_be_visible()
        await expect(page.get_by_role("button", name="Paste")).to_have_count(0)
        await page.keyboard.press("Escape")
        await page.reload()
        await expect(page.locator("article.agent")).to_contain_text(ANSWER)
        await page.get_by_role("button", name="OK").click()
        await expect(banner).to_be_hidden()
        await page.goto(f"{address}/#/settings/device")
        await expect(
            page.get_by_text("Browsers install only what comes over HTTPS")
        ).to_be_visible()
        await page.get_by_role("main").get_by_text("All settings").click()
        await browser.close()


def _print_code(environ: dict[str, str]) -> str:
    """What `towline pair` prints; it asks the server, so it must not stand in its loop."""
    printed = io.StringIO()
    assert asyncio.run(pair(Console(file=printed, width=200), environ)) == 0
    return printed.getvalue()


async def test_a_code_of_the_command_line_lets_a_phone_in(
    phone: BrowserContext, tmp_path: Path
) -> None:
    (tmp_path / "root").mkdir()
    environ = {"TOWLINE_HOME": str(tmp_path / "home")}
    async with open_test_server(ScriptedProvider(), root=tmp_path / "root") as built:
        run_file = find_paths(environ).run_file
        run_file.parent.mkdir(parents=True)
        run_file.write_bytes(
            msgspec.json.encode(RunFile(url=built.url, pid=os.getpid(), token=built.token))
        )
        printed = await asyncio.get_running_loop().run_in_executor(None, _print_code, environ)
        code = re.search(r"type the code ([A-Z0-9]{4}-[A-Z0-9]{4})", printed)
        assert code is not None
        page = phone.pages[0]
        await page.goto(built.url)
        await page.get_by_role("textbox", name="One-time code").fill(code[1].lower())
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("textbox", name="Message")).to_be_visible()

        # The phone is in the list, and makes a code for the next one.
        await page.goto(f"{built.url}/#/settings/devices")
        await expect(page.get_by_text("This device", exact=True).first).to_be_visible()
        await page.get_by_role("button", name="Pair a device").click()
        sheet = page.get_by_role("dialog", name="Pair a device")
        await expect(sheet.get_by_text(re.compile(r"^[A-Z0-9]{4}-[A-Z0-9]{4}$"))).to_be_visible()
        await expect(sheet.get_by_text("on its own machine alone")).to_be_visible()
