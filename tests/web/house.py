"""A real server, a line to it, and a phone in front: what the tests of this folder look at."""

import contextlib
import re
from collections.abc import AsyncGenerator, Callable, Sequence
from pathlib import Path
from typing import Any, Final

from playwright.async_api import Browser, BrowserContext, Locator, Page, expect
from web.line import Line, open_line

from towline_agent import Provider, Tool, mint_now, tool
from towline_protocol import Preview, SessionId, SessionView
from towline_server import BuiltApp
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, open_test_server, ran

__all__ = [
    "PHONE",
    "SEEN",
    "House",
    "Served",
    "composer",
    "open_house",
    "runner",
    "session_of",
    "tools_of",
]

PHONE: Final[Any] = {"width": 390, "height": 844}
"""The screen of a phone, in CSS pixels."""

SEEN: Final = """
let ahead = 0;
const now = Date.now.bind(Date);
Date.now = () => now() + ahead;
let seen = "visible";
Object.defineProperty(Document.prototype, "visibilityState", { get: () => seen });
Object.defineProperty(Document.prototype, "hidden", { get: () => seen === "hidden" });
window.beSeen = (state, laterMs = 0) => {
  ahead += laterMs;
  seen = state;
  document.dispatchEvent(new Event("visibilitychange"));
};
"""
"""Headless tabs are always visible: this lets a test hide one, and say that time has passed."""


def runner(
    noted: list[str],
    *,
    text: Callable[[str], str] = str,
    cut: bool = False,
    preview: Preview | None = None,
) -> Tool:
    """A tool that asks first, shows its command, and notes what it ran.

    Args:
        noted: Where it notes its commands.
        text: What is shown of a command.
        cut: Whether that is said to be a part only.
        preview: What is shown instead.
    """

    def show(arguments: dict[str, Any]) -> Preview:
        return preview or Preview(kind="command", text=text(arguments["command"]), truncated=cut)

    @tool(name="run", effect="exec", preview=show)
    async def run(command: str) -> str:
        """Run a command."""
        noted.append(command)
        return f"ran {command}"

    return run


def composer(page: Page) -> Locator:
    """Where one writes."""
    return page.get_by_role("textbox", name="Message")


class House:
    """One server at the end of one line, and the browser contexts that were opened for it."""

    def __init__(self, browser: Browser, line: Line) -> None:
        self.browser = browser
        """The browser that all devices are contexts of."""
        self.line = line
        """Between them and the server."""
        self.built: BuiltApp
        """The server that runs now."""
        self.faults: list[str] = []
        """What went wrong in a page without being caught."""
        self.contexts: list[BrowserContext] = []
        """The devices."""

    @property
    def client(self) -> AppClient:
        """Asks the server beside the line."""
        return AppClient(self.built)

    async def device(self, *, signed_in: bool = True, **options: Any) -> Page:
        """A page on a device of its own."""
        context = await self.browser.new_context(**{"viewport": PHONE, **options})
        context.set_default_timeout(20_000)
        self.contexts.append(context)
        if signed_in:
            await self.give_cookie(context)
        return await self.window(context)

    async def window(self, context: BrowserContext) -> Page:
        """Another window of a device, that shows nothing yet."""
        page = await context.new_page()
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        await page.add_init_script(SEEN)
        return page

    async def give_cookie(self, context: BrowserContext) -> None:
        """Sign a device in as its gate does, without showing it."""
        code, _ = self.built.access.new_code()
        answer = await context.request.post(
            f"{self.line.url}/api/auth/claim",
            data={"code": code, "cookie": True},
            headers={"origin": self.line.url},
        )
        assert answer.ok, await answer.text()

    async def phone(self, session: str | None = None, **options: Any) -> Page:
        """A page that shows a session, or a new one, and is ready to be typed in."""
        page = await self.device(**options)
        await self.show(page, session)
        return page

    async def show(self, page: Page, session: str | None = None) -> None:
        """Have a page show a session, or a new one."""
        await page.goto(f"{self.line.url}/#/{f's/{session}' if session else ''}")
        await expect(composer(page)).to_be_visible()

    async def ended(self, session: str, turns: int = 1) -> SessionView:
        """The view once so many prompts are answered and none waits."""
        await self.client.until(session, ran(turns))
        return await self.client.view(session)


async def tools_of(page: Page) -> Any:
    """The developer tools of a page; the library's own types say nothing of their answers."""
    return await page.context.new_cdp_session(page)


def session_of(page: Page) -> SessionId:
    """The session that a page shows."""
    found = re.search(r"ses_\w+", page.url)
    assert found is not None, page.url
    return SessionId(found[0])


class Served:
    """A server that can be ended and begun again on the same store and the same line."""

    def __init__(self, house: House, store: SqliteStore, options: dict[str, Any]) -> None:
        self._house = house
        self._options: dict[str, Any] = {**options, "store": store}
        self._stack = contextlib.AsyncExitStack()

    async def start(self, provider: Provider) -> None:
        """Begin."""
        made = open_test_server(provider, **self._options)
        self._house.built = await self._stack.enter_async_context(made)
        self._house.line.target = int(self._house.built.url.rpartition(":")[2])

    async def stop(self) -> None:
        """End; the line then leads nowhere."""
        self._house.line.target = 0
        self._house.line.cut()
        await self._stack.aclose()


@contextlib.asynccontextmanager
async def open_house(
    browser: Browser,
    provider: Provider,
    root: Path,
    *,
    tools: Sequence[Tool] = (),
    **options: Any,
) -> AsyncGenerator[tuple[House, Served]]:
    """A house whose server runs; at its end no page may have stumbled."""
    root = root / "root"
    root.mkdir()
    store = await open_memory_store(mint=mint_now)
    try:
        async with open_line() as line:
            house = House(browser, line)
            served = Served(house, store, {"root": root, "tools": tools, **options})
            await served.start(provider)
            try:
                yield house, served
            finally:
                for context in house.contexts:
                    await context.close()
                await served.stop()
            assert house.faults == []
    finally:
        await store.close()
