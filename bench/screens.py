"""Pictures of every state of every screen, on a phone and a desk, light and dark.

`bench/screens.py FOLDER` fills a folder with all of them and with sheets of many at once, to be
looked at by eye; `--docs` renews the few that the docs show.
"""

import argparse
import asyncio
import mimetypes
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, Page, Route, async_playwright

ROOT: Final = Path(__file__).parents[1]
IMAGES: Final = ROOT / "docs" / "images"
PHONE: Final[Any] = {"width": 390, "height": 844}
DESK: Final[Any] = {"width": 1280, "height": 800}
SHOWN: Final = {
    "answer": ("chat", "light", PHONE),
    "approval": ("asking", "dark", PHONE),
    "changes": ("changes", "light", PHONE),
    "plan": ("plan", "dark", PHONE),
    "usage": ("settings_usage", "light", PHONE),
    "desk": ("asking", "light", DESK),
}
"""What the docs show: the picture's name to state, theme and size."""
LATE_MS: Final = 2_300
"""A few states are told only once they have held on for two seconds."""
SOON_MS: Final = 700
"""The buttons of a request take a tap 400 ms after they appear, and look so until then."""
SHEET: Final = 16
BUILD: Final = "node_modules/vite/bin/vite.js build --mode fixtures --logLevel error --outDir"


def _build(place: Path) -> None:
    subprocess.run(
        ["node", *BUILD.split(), str(place)],
        cwd=ROOT / "web",
        env={**os.environ, "PATH": f"{ROOT / '.venv' / 'bin'}:{os.environ['PATH']}"},
        check=True,
    )


async def _open(browser: Browser, states: Path) -> Page:
    async def answer(route: Route) -> None:
        path = route.request.url.split("/", 3)[3].partition("?")[0].partition("#")[0]
        # A kept picture; the page's own icon will do.
        path = "icon-512.png" if path.startswith("api/files/") else path
        file = states / (path or "index.html")
        if not file.is_file():
            await route.fulfill(status=404, body="")
            return
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        await route.fulfill(body=file.read_bytes(), content_type=kind)

    context = await browser.new_context(
        bypass_csp=True, service_workers="block", reduced_motion="reduce", color_scheme="light"
    )
    await context.route("http://localhost/**", answer)
    return await context.new_page()


async def _show(page: Page, state: str, theme: str, size: Any, file: Path) -> None:
    await page.set_viewport_size(size)
    await page.goto("about:blank")
    await page.goto(f"http://localhost/?fixture={state}")
    await page.wait_for_function("globalThis.fixtureDone")
    await page.evaluate(f"document.documentElement.dataset.theme = '{theme}'")
    await page.evaluate("document.activeElement?.blur()")
    await page.wait_for_timeout(LATE_MS if state in {"crowded", "reconnecting"} else SOON_MS)
    await page.screenshot(path=file)


async def _show_all(page: Page, folder: Path) -> None:
    await page.goto("http://localhost/?fixture=chat")
    await page.wait_for_function("globalThis.fixtureNames")
    names: list[str] = await page.evaluate("fixtureNames")
    for size in (PHONE, DESK):
        for theme in ("light", "dark"):
            files = [folder / f"{name}.{theme}.{size['width']}.png" for name in names]
            for name, file in zip(names, files, strict=True):
                await _show(page, name, theme, size, file)
            for start in range(0, len(files), SHEET):
                sheet = folder / f"sheet.{theme}.{size['width']}.{start // SHEET}.png"
                await _put_together(page, files[start : start + SHEET], sheet)


async def _put_together(page: Page, files: list[Path], sheet: Path) -> None:
    figures = "".join(
        f"<figure style='display:inline-block;margin:2px'>{file.name}<br>"
        f"<img width=240 src='{file.as_uri()}'></figure>"
        for file in files
    )
    list_file = sheet.with_suffix(".html")
    list_file.write_text(f"<body style='margin:0;font:12px sans-serif'>{figures}")
    await page.set_viewport_size({"width": 1984, "height": 600})
    await page.goto(list_file.as_uri())
    await page.screenshot(path=sheet, full_page=True)


async def _run(folder: Path, *, docs: bool) -> None:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    with tempfile.TemporaryDirectory() as name:
        _build(Path(name))
        async with async_playwright() as playwright:
            browser = await playwright.chromium.launch(
                executable_path=found, args=["--no-sandbox", "--disable-gpu"]
            )
            page = await _open(browser, Path(name))
            if docs:
                for picture, (state, theme, size) in SHOWN.items():
                    await _show(page, state, theme, size, folder / f"phone-{picture}.png")
            else:
                await _show_all(page, folder)
            await browser.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Pictures of every state of every screen.")
    parser.add_argument("folder", nargs="?", type=Path, help="where they go")
    parser.add_argument("--docs", action="store_true", help="renew those that the docs show")
    options = parser.parse_args()
    if (options.folder is None) != options.docs:
        parser.error("Name a folder, or --docs.")
    place = (options.folder or IMAGES).resolve()
    place.mkdir(parents=True, exist_ok=True)
    asyncio.run(_run(place, docs=options.docs))
