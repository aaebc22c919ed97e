"""The rim of the page: what it loads, who is let in, how many windows, and which files go out."""

import struct
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect
from web.conftest import Open
from web.house import composer, session_of

from towline_agent.testing import ScriptedProvider
from towline_protocol import Image

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]

LONGEST_SIDE = 1568


async def _send(page: Page, text: str) -> None:
    await composer(page).fill(text)
    await page.get_by_role("button", name="Send").click()


@pytest.mark.rules("W19")
async def test_before_the_first_composer_few_files_come_and_all_from_the_server(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider()) as (house, _):
        page = await house.device(service_workers="block")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        await page.add_init_script(
            """new MutationObserver((_, observer) => {
              if (!document.getElementById("composer")) return;
              observer.disconnect();
              window.before = performance.getEntriesByType("resource").map(({ name }) => name);
            }).observe(document, { childList: true, subtree: true });"""
        )
        await page.goto(f"{house.line.url}/")
        await expect(composer(page)).to_be_visible()
        files = [url for url in await page.evaluate("before") if "/api/" not in url]
        assert len(files) + 1 <= 8, "\n".join(files)  # and the document itself
        assert {urlsplit(url).netloc for url in asked} == {urlsplit(house.line.url).netloc}
        sizes = await page.evaluate(
            "[...document.scripts].map(({ src }) => performance.getEntriesByName(src)[0])"
            ".map(({ encodedBodySize }) => encodedBodySize)"
        )
        assert 0 < sum(sizes) <= 45 * 1024


@pytest.mark.rules("W21")
async def test_eight_windows_of_which_one_is_seen_all_work(open_home: Open) -> None:
    async with open_home(ScriptedProvider("One.", "Two.")) as (house, _):
        first = await house.phone()
        await _send(first, "First")
        await expect(first.locator("article.agent")).to_contain_text("One.")
        session = session_of(first)
        page = first
        for _ in range(7):
            await page.evaluate("beSeen('hidden')")
            page = await house.window(first.context)
            await house.show(page, session)
            await expect(page.locator("article.agent")).to_contain_text("One.")
        await _send(page, "Second")
        await expect(page.locator("article.agent").last).to_contain_text("Two.")
        await first.evaluate("beSeen('visible')")
        await expect(first.locator("article.agent").last).to_contain_text("Two.")


@pytest.mark.rules("W21")
async def test_of_seven_windows_that_are_seen_the_last_give_way_and_all_can_send(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider("One.", "Two.", "Three.")) as (house, _):
        first = await house.phone()
        await _send(first, "First")
        await expect(first.locator("article.agent")).to_contain_text("One.")
        session = session_of(first)
        pages = [first]
        for _ in range(6):
            page = await house.window(first.context)
            await house.show(page, session)
            await expect(page.locator("article.agent")).to_contain_text("One.")
            pages.append(page)
        last = pages[-1]
        crowd = "Open in too many windows"
        for page in pages[5:]:
            await expect(page.get_by_text(crowd)).to_be_visible()
        await _send(first, "Second")
        await expect(first.locator("article.agent").last).to_contain_text("Two.")
        for page in pages[1:5]:
            await expect(page.locator("article.agent").last).to_contain_text("Two.")
            await expect(page.get_by_text(crowd)).to_be_hidden()
        await pages[1].close()
        await last.locator(".banner").get_by_role("button", name="Retry").click()
        await expect(last.locator("article.agent").last).to_contain_text("Two.")
        await expect(last.get_by_text(crowd)).to_be_hidden()
        await _send(last, "Third")
        await expect(last.locator("article.agent").last).to_contain_text("Three.")
        await expect(last.get_by_text(crowd)).to_be_hidden()


@pytest.mark.rules("W30")
@pytest.mark.parametrize("status", [401, 444])
async def test_a_token_that_has_died_leads_to_the_gate_once_and_keeps_path_and_draft(
    open_home: Open, status: int
) -> None:
    async with open_home(ScriptedProvider("One.")) as (house, _):
        page = await house.phone()
        await _send(page, "First")
        await expect(page.locator("article.agent")).to_contain_text("One.")
        session = session_of(page)
        await composer(page).fill("Half a thought")
        if status == 401:
            await page.context.clear_cookies()
            house.line.cut()
        else:
            await page.route("**/api/**", lambda route: route.fulfill(status=444, body=""))
            house.line.cut()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
        await expect(page.get_by_text("You were signed out. Sign in again")).to_be_visible()
        assert session in page.url
        await page.unroute_all()
        code, _ = house.built.access.new_code()
        await page.get_by_role("textbox", name="One-time code").fill(code)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.locator("article.agent")).to_contain_text("One.")
        await expect(composer(page)).to_have_value("Half a thought")


@pytest.mark.rules("W23")
async def test_a_photo_goes_out_upright_small_and_without_what_the_camera_noted(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider("A photo.")) as (house, _):
        page = await house.phone()
        plain = bytes(await page.evaluate(_PHOTO))
        photo = _with_camera_notes(plain)
        await page.locator(".attach").click()
        choice = page.locator("label", has_text="Photo or picture").locator("input")
        await choice.set_input_files(
            {"name": "IMG_2041.jpg", "mimeType": "image/jpeg", "buffer": photo}
        )
        await expect(page.locator(".attached-one img")).to_be_visible()
        await _send(page, "What is it?")
        await expect(page.locator("article.agent")).to_contain_text("A photo.")
        view = await house.client.view(session_of(page))
        (file,) = [block.file for block in view.messages[0].content if isinstance(block, Image)]
        kept = await house.client.ask("GET", f"/api/files/{file}")
        assert kept.status == 200
        assert b"Exif" in photo
        assert b"Exif" not in kept.body
        size = await page.evaluate(_SIZE, list(kept.body))
        assert size == [LONGEST_SIDE * 3 // 4, LONGEST_SIDE]


_SIZE = """async (bytes) => {
  const made = await createImageBitmap(new Blob([new Uint8Array(bytes)]), {
    imageOrientation: "none",
  });
  return [made.width, made.height];
}"""

_PHOTO = """async () => {
  const canvas = new OffscreenCanvas(4000, 3000);
  const pen = canvas.getContext("2d");
  pen.fillStyle = "#357";
  pen.fillRect(0, 0, 4000, 3000);
  const made = await canvas.convertToBlob({ type: "image/jpeg", quality: 0.5 });
  return [...new Uint8Array(await made.arrayBuffer())];
}"""


def _with_camera_notes(jpeg: bytes) -> bytes:
    """The same picture, said to lie on its side."""
    tiff = b"MM\0*" + struct.pack(">IHHHIHHI", 8, 1, 0x0112, 3, 1, 6, 0, 0)
    body = b"Exif\0\0" + tiff
    return jpeg[:2] + b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body + jpeg[2:]
