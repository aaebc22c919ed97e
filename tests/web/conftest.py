"""The browser, and how a house is opened before it."""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from playwright.async_api import Browser, async_playwright, expect
from product.running import require_chromium
from web.house import FLAGS, House, Served, open_house

Open = Callable[..., AbstractAsyncContextManager[tuple[House, Served]]]


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncGenerator[Browser]:
    """One browser for all tests of a process; each test has contexts of its own."""
    expect.set_options(timeout=20_000)
    async with async_playwright() as playwright:
        made = await playwright.chromium.launch(executable_path=require_chromium(), args=FLAGS)
        yield made
        await made.close()


@pytest.fixture
def open_home(browser: Browser, tmp_path: Path) -> Open:
    """Opens a house before the browser: `open_home(provider, tools=..., mode=...)`."""

    def opened(provider: Any, **options: Any) -> AbstractAsyncContextManager[tuple[House, Served]]:
        return partial(open_house, browser)(provider, tmp_path, **options)

    return opened
