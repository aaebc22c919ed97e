"""Every screen in every state, looked at by axe: both themes, three widths."""

import mimetypes
import subprocess
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, Route

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.node,
    pytest.mark.slow,
]

ROOT = Path(__file__).parents[2]
WEB = ROOT / "web"
NODE = ROOT / ".venv" / "bin"
PARTS = 4
"""The states are shared out, so that two processes can look at once."""
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
COLOURS = ["color-contrast"]
LOOKS = [
    ("light", 390, 844, TAGS),
    ("dark", 390, 844, COLOURS),
    ("light", 320, 640, TAGS),
    ("light", 1280, 800, TAGS),
    ("dark", 1280, 800, COLOURS),
]
"""Theme, size and what is looked for: a theme changes colours and nothing else. Each change of the
size costs a layout, so those of one size stand together."""
LATE = {"crowded", "reconnecting"}
"""States that are told only once they have held on for two seconds."""

_LOOK = """async ([theme, tags]) => {
  document.documentElement.dataset.theme = theme;
  const { violations } = await axe.run({ runOnly: tags, resultTypes: ["violations"] });
  const faults = violations.map(({ id, nodes }) => `${id}: ${nodes[0].html.slice(0, 200)}`);
  if (document.documentElement.scrollWidth > innerWidth) faults.push("it scrolls sideways");
  return faults;
}"""

_SETTLED = """async () => {
  let changes = 0;
  const watch = new MutationObserver(() => { changes += 1; });
  watch.observe(document, { subtree: true, childList: true, attributes: true });
  const end = performance.now() + 400;
  for (let seen = -1; seen !== changes && performance.now() < end; ) {
    seen = changes;
    await new Promise((resolve) => setTimeout(resolve, 40));
    await new Promise((resolve) => requestAnimationFrame(resolve));
  }
  watch.disconnect();
}"""
"""Waits until nothing more comes or goes: between two sizes a page is neither the one nor the
other, and its buttons overlap. One that writes an answer never rests."""

_SPEAKS = """() => [...document.querySelectorAll("button, [role=button]")]
  .map((one) => one.getAttribute("aria-label") ?? one.textContent)
  .filter((name) => /\\b(voice|mic|microphone|dictate|speak|read aloud)\\b/i.test(name))"""


@pytest.fixture(scope="module")
def states(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, built with all its states."""
    place = tmp_path_factory.mktemp("states")
    build = "node_modules/vite/bin/vite.js build --mode fixtures --logLevel error --outDir"
    done = subprocess.run(
        [NODE / "node", *build.split(), place],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return place


@pytest_asyncio.fixture(loop_scope="session")
async def page(browser: Browser, states: Path) -> AsyncGenerator[Page]:
    """A page that reads the built files from the folder."""

    async def answer(route: Route) -> None:
        path = route.request.url.split("/", 3)[3].partition("?")[0].partition("#")[0]
        file = states / (path or "index.html")
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        if file.is_file():
            await route.fulfill(body=file.read_bytes(), content_type=kind)
        else:
            await route.fulfill(status=404, body="")

    context = await browser.new_context(
        bypass_csp=True, service_workers="block", reduced_motion="reduce", color_scheme="light"
    )
    await context.route("**/*", answer)
    await context.add_init_script(path=WEB / "node_modules" / "axe-core" / "axe.min.js")
    yield await context.new_page()
    await context.close()


async def _show(page: Page, state: str) -> None:
    await page.set_viewport_size({"width": 390, "height": 844})
    await page.goto(f"http://localhost/?fixture={state}")
    await page.wait_for_function("globalThis.fixtureDone")
    await page.wait_for_selector("main", state="attached")  # a screen is a chunk of its own
    if state in LATE:
        await page.wait_for_timeout(2_200)


async def _names(page: Page) -> list[str]:
    await _show(page, "chat")
    return await page.evaluate("fixtureNames")


async def _look(page: Page) -> dict[str, list[str]]:
    """What is wrong with what is shown, by theme and width."""
    found: dict[str, list[str]] = {}
    size: tuple[int, int] | None = None
    for theme, width, height, tags in LOOKS:
        if size != (width, height):
            size = (width, height)
            await page.set_viewport_size({"width": width, "height": height})
            await page.evaluate(_SETTLED)
        faults: list[str] = await page.evaluate(_LOOK, [theme, tags])
        if faults:
            found[f"{theme} {width}"] = faults
    return found


@pytest.mark.rules("W28")
@pytest.mark.parametrize("part", range(PARTS))
async def test_no_state_of_any_screen_has_a_fault_of_access(page: Page, part: int) -> None:
    found: dict[str, Any] = {}
    for state in (await _names(page))[part::PARTS]:
        await _show(page, state)
        found |= {f"{state} {look}": faults for look, faults in (await _look(page)).items()}
        assert await page.evaluate(_SPEAKS) == [], "there is no voice yet"
    assert found == {}
