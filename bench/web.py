"""The figures of the page: the built one, from a real server, in a real browser.

CPU is what the page's own thread has used, which a busy machine does not spoil; what is measured by
the clock it does. Shown are medians. A phone's processor is a throttle of 4.
"""

import asyncio
import gzip
import re
import shutil
import statistics
import tempfile
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

from figure import Goal, Part, report, show
from playwright.async_api import Page, async_playwright

from towline_agent.providers.base import Model, Piece, Request, StepAnswer, StepResult, TextPiece
from towline_agent.testing import say
from towline_protocol import SessionView, block_text
from towline_server import BuiltApp
from towline_server.testing import AppClient, open_test_server
from towline_server.web.serve import DIST

KIB: Final = 1024
MIB: Final = 1024 * KIB
PHONE: Final[Any] = {"width": 390, "height": 844}
FLAGS: Final = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]
SLOW_4G: Final = {
    "offline": False,
    "latency": 150,
    "downloadThroughput": 1_600_000 / 8,
    "uploadThroughput": 750_000 / 8,
}
"""150 ms there and back, 1.6 Mbit/s down."""
THROTTLE: Final = 4
TURNS: Final = 250
INBOX: Final = 10
"""Prompts that may wait at once."""
EVENTS: Final = 2_000
EVERY_S: Final = 0.01

_CODE = (
    "def tow(line: str, length_m: float) -> None:\n    '''Pull.'''\n    print(line, length_m)\n\n"
)
_ANSWER = (
    "Here is **what matters**, with `code` and a [link](https://example.org).\n\n"
    "- the first point\n- the second, which is longer than the first one\n\n"
    "| file | lines |\n|:--|--:|\n| app.py | 212 |\n| store.py | 148 |\n\n"
)
LONG_ANSWER: Final = (_ANSWER + f"```python\n{_CODE * 15}```\n\n" + _ANSWER * 3) * 3
"""Some 8,000 characters with tables, lists and three long code blocks."""

PREPARE: Final = """
globalThis.longTasks = [];
globalThis.keyTimes = [];
new PerformanceObserver((list) => {
  for (const { duration } of list.getEntries()) longTasks.push(duration);
}).observe({ type: "longtask", buffered: true });
new PerformanceObserver((list) => {
  for (const { name, duration } of list.getEntries()) {
    if (name === "keydown") keyTimes.push(duration);
  }
}).observe({ type: "event", durationThreshold: 16 });
new MutationObserver((_, observer) => {
  if (!document.getElementById("composer")) return;
  observer.disconnect();
  globalThis.filesBefore = performance.getEntriesByType("resource")
    .filter(({ name }) => !name.includes("/api/")).length;
  requestAnimationFrame(() => { globalThis.usableMs = performance.now(); });
}).observe(document, { childList: true, subtree: true });
new MutationObserver((_, observer) => {
  if (!document.querySelector("article.agent:last-of-type")) return;
  observer.disconnect();
  requestAnimationFrame(() => setTimeout(() => { globalThis.readyMs = performance.now(); }));
}).observe(document, { childList: true, subtree: true });
"""


class Pacer:
    """A model that writes the long answer evenly, or a short one at once."""

    def __init__(self) -> None:
        self.model = Model(provider="paced", id="paced")
        self.is_long = False

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        """Answer."""
        del request
        if not self.is_long:
            on_piece(TextPiece(0, _ANSWER))
            return say(_ANSWER)
        size = -(-len(LONG_ANSWER) // EVENTS)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        for at in range(EVENTS):
            on_piece(TextPiece(0, LONG_ANSWER[at * size : (at + 1) * size]))
            await asyncio.sleep(max(0.0, begun + (at + 1) * EVERY_S - loop.time()))
        return StepAnswer(content=say(LONG_ANSWER).content, stop_reason="end_turn")

    async def models(self) -> tuple[str, ...]:
        """Its one model."""
        return (self.model.id,)

    async def aclose(self) -> None:
        """Nothing is open."""


class Desk:
    """A server, and a browser before it."""

    def __init__(self, built: BuiltApp, pacer: Pacer, browser: Any) -> None:
        self.built = built
        self.pacer = pacer
        self.client = AppClient(built)
        self._browser = browser

    async def page(self, *, throttle: int = 1, network: dict[str, Any] | None = None) -> Any:
        """A page that is signed in and shows nothing yet, and its tools."""
        context = await self._browser.new_context(
            viewport=PHONE, service_workers="block", bypass_csp=True
        )
        code, _ = self.built.access.new_code()
        await context.request.post(
            f"{self.built.url}/api/auth/claim",
            data={"code": code, "cookie": True},
            headers={"origin": self.built.url},
        )
        page = await context.new_page()
        await page.add_init_script(PREPARE)
        tools = await context.new_cdp_session(page)
        await tools.send("Performance.enable", {"timeDomain": "threadTicks"})
        await tools.send("Emulation.setCPUThrottlingRate", {"rate": throttle})
        if network:
            await tools.send("Network.enable")
            await tools.send("Network.emulateNetworkConditions", network)
        return page, tools

    async def opened(self, session: str = "", **options: Any) -> Any:
        """The same, once it shows a session or a new one."""
        page, tools = await self.page(**options)
        await page.goto(f"{self.built.url}/#/{f's/{session}' if session else ''}")
        await page.wait_for_function("globalThis.usableMs")
        return page, tools


@asynccontextmanager
async def _desk() -> AsyncGenerator[Desk]:
    pacer = Pacer()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name) / "root"
        root.mkdir()
        async with open_test_server(pacer, root=root) as built, async_playwright() as playwright:
            browser = await playwright.chromium.launch(args=FLAGS, executable_path=_chromium())
            yield Desk(built, pacer, browser)
            await browser.close()


def _chromium() -> str:
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise SystemExit("There is no Chromium on the path: apt-get install chromium.")
    return found


async def _metrics(tools: Any) -> dict[str, float]:
    answer = await tools.send("Performance.getMetrics")
    return {one["name"]: one["value"] for one in answer["metrics"]}


def _on_desk(measure: Callable[[Desk, bool], Coroutine[Any, Any, None]]) -> Part:
    async def run(quick: bool) -> None:
        async with _desk() as desk:
            await measure(desk, quick)

    def part(*, quick: bool) -> None:
        asyncio.run(run(quick))

    return part


def show_bytes(*, quick: bool) -> None:
    """Print what the server sends, packed as it packs."""
    del quick
    document = (DIST / "index.html").read_text()
    first = re.findall(r'(?:src|href)="/([^"]+)"', document)
    packed = {
        path.relative_to(DIST).as_posix(): len(gzip.compress(path.read_bytes(), 9))
        for path in DIST.rglob("*")
        if path.suffix in {".js", ".css"}
    }

    def total(names: Any) -> float:
        return sum(packed[name] for name in names) / KIB

    scripts = [name for name in packed if name.endswith(".js")]
    show("scripts of the chat route", "KiB packed", total(set(first) & set(scripts)), goal=Goal(45))
    show("all scripts", "KiB packed", total(scripts), goal=Goal(120))
    styles = [name for name in packed if name.endswith(".css")]
    show("styles", "KiB packed", total(styles), goal=Goal(12))


async def _show_load(desk: Desk, quick: bool) -> None:
    paints: list[float] = []
    usable: list[float] = []
    requests = 0
    for _ in range(3 if quick else 9):
        page, _ = await desk.page(network=SLOW_4G)
        await page.goto(f"{desk.built.url}/")
        await page.wait_for_function("globalThis.usableMs")
        requests = 1 + await page.evaluate("filesBefore")  # and the document itself
        usable.append(await page.evaluate("usableMs") / 1000)
        entry = "performance.getEntriesByName('first-contentful-paint')[0]"
        await page.wait_for_function(entry)
        paints.append(await page.evaluate(f"{entry}.startTime") / 1000)
        await page.context.close()
    show("files before the composer, API calls apart", "requests", requests, goal=Goal(8))
    show("first paint on Slow 4G", "s", statistics.median(paints), goal=Goal(1.0))
    show("composer usable on Slow 4G", "s", statistics.median(usable), goal=Goal(1.5))


async def _stream(desk: Desk, page: Page) -> None:
    desk.pacer.is_long = True
    await page.get_by_role("textbox", name="Message").fill("Tell me all")
    await page.get_by_role("button", name="Send").click()
    await page.get_by_role("button", name="Stop").wait_for()


async def _show_stream(desk: Desk, quick: bool) -> None:
    used: list[float] = []
    longest: list[float] = []
    for _ in range(1 if quick else 3):
        page, tools = await desk.opened()
        await page.wait_for_timeout(1_000)
        before = await _metrics(tools)
        await page.evaluate("longTasks.length = 0")
        await _stream(desk, page)
        # Nobody looks meanwhile: who waits for an element asks the page at each frame.
        await asyncio.sleep(EVENTS * EVERY_S)
        await page.get_by_role("button", name="Stop").wait_for(state="hidden", timeout=60_000)
        after = await _metrics(tools)
        used.append(after["TaskDuration"] - before["TaskDuration"])
        longest.append(await page.evaluate("Math.max(0, ...longTasks)"))
        await page.context.close()
    show(f"a stream of {EVENTS:,} events in 20 s", "s CPU", statistics.median(used), goal=Goal(2.5))
    show("  its longest task", "ms", statistics.median(longest), goal=Goal(50))


def _answered(prompt: str) -> Callable[[SessionView], bool]:
    def met(view: SessionView) -> bool:
        said = [block_text(one.content) for one in view.messages]
        return view.turn is None and not view.queue and prompt in said

    return met


async def _show_long(desk: Desk, quick: bool) -> None:
    session = await desk.client.create()
    for count in range(TURNS):
        await desk.client.prompt(session, f"Question {count}")
        if count % INBOX == INBOX - 1 or count == TURNS - 1:
            await desk.client.until(session, _answered(f"Question {count}"))
    ready: list[float] = []
    heap: list[float] = []
    nodes = 0.0
    for _ in range(3 if quick else 7):
        page, tools = await desk.opened(session, throttle=THROTTLE)
        await page.wait_for_function("globalThis.readyMs")
        ready.append(await page.evaluate("readyMs") / 1000)
        await tools.send("Emulation.setCPUThrottlingRate", {"rate": 1})
        await page.wait_for_timeout(1_500)
        await tools.send("HeapProfiler.collectGarbage")
        heap.append((await _metrics(tools))["JSHeapUsedSize"] / MIB)
        nodes = await page.evaluate("document.querySelectorAll('*').length")
        await page.context.close()
    show(
        f"{TURNS * 2} messages, ready at {THROTTLE} times",
        "s",
        statistics.median(ready),
        goal=Goal(1.5),
    )
    show("  heap", "MiB", statistics.median(heap), goal=Goal(20))
    show("  elements", "", nodes, goal=Goal(6_000))


async def _show_keys(desk: Desk, quick: bool) -> None:
    page, _ = await desk.opened(throttle=THROTTLE)
    await page.wait_for_timeout(1_000)
    await _stream(desk, page)
    await page.get_by_role("textbox", name="Message").focus()
    await page.evaluate("keyTimes.length = 0")
    for at in range(30 if quick else 100):
        await page.keyboard.press("abcdefgh "[at % 9])
        await page.wait_for_timeout(120)
    await page.wait_for_timeout(500)
    times = sorted(await page.evaluate("keyTimes"))
    asked = 30 if quick else 100
    times = [0.0] * (asked - len(times)) + times  # those below 16 ms are not told
    show(
        f"key to paint while it streams at {THROTTLE} times, p75",
        "ms",
        times[int(len(times) * 0.75)],
        goal=Goal(100),
    )
    await page.context.close()


PARTS: Final[dict[str, Part]] = {
    "bytes": show_bytes,
    "load": _on_desk(_show_load),
    "stream": _on_desk(_show_stream),
    "long": _on_desk(_show_long),
    "keys": _on_desk(_show_keys),
}


if __name__ == "__main__":
    report("The figures of the page.", PARTS)
