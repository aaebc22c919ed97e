"""Notifications: sealed by the server, into the browser's worker, and by a tap to the request.

A headless browser reaches no push service of its maker. So its `PushManager` is replaced: what it
subscribes to is a push service of this test, whose messages are then handed to the browser. The
page, the server, the worker and what the browser shows are real.
"""

import asyncio
import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import pytest
from playwright.async_api import BrowserContext, Page, Worker, async_playwright, expect
from product.running import require_chromium
from web.chromium import FLAGS
from web.house import PHONE, SEEN, runner, tools_of

from towline_agent.testing import ScriptedProvider, call
from towline_protocol import PushOffer, PushSubscriptionList, SessionId, SessionView
from towline_server import BuiltApp
from towline_server.testing import AppClient, FakePushService, open_test_server
from towline_server.testing.browser import Browser as Device

pytestmark = [pytest.mark.chromium, pytest.mark.slow]

LIMIT_S = 20

FAKE_MANAGER: Final = """
const KEY = "test.key";
const place = %s;
const toText = (bytes) => btoa(String.fromCharCode(...new Uint8Array(bytes)));
const toBytes = (text) => Uint8Array.from(atob(text), (one) => one.charCodeAt(0)).buffer;
const made = () => {
  const key = localStorage.getItem(KEY);
  return key === null ? null : {
    endpoint: place.endpoint,
    options: { applicationServerKey: toBytes(key) },
    toJSON: () => place,
    unsubscribe: async () => (localStorage.removeItem(KEY), true),
  };
};
PushManager.prototype.getSubscription = async () => made();
PushManager.prototype.subscribe = async ({ applicationServerKey }) => {
  localStorage.setItem(KEY, toText(applicationServerKey));
  return made();
};
"""
"""A browser's subscription, kept over reloads as a real one is."""

SHOWN: Final = """async () => {
  const shown = await registration.getNotifications();
  return shown.map(({ title, tag, actions }) => [title, tag, actions.map((one) => one.action)]);
}"""

WARM_UP: Final = """async () => {
  self.told = 0;
  const show = registration.showNotification.bind(registration);
  registration.showNotification = (...all) => show(...all).then(() => { told += 1; });
  await show("", { tag: "first" });
  await new Promise((resolve) => setTimeout(resolve, 500));
  for (const one of await registration.getNotifications()) one.close();
}"""
"""Counts what the worker has shown, and has the browser show its first one.

Chromium forgets a notification that it is to show when it is asked at that moment which it shows,
and it takes a while to find out how to show the first.
"""

TAP: Final = """async (tag) => {
  const [notification] = await registration.getNotifications({ tag });
  dispatchEvent(new NotificationEvent("notificationclick", { notification, action: "allow" }));
}"""


class Desk:
    """A server, a phone that it can call, and the push service between them."""

    def __init__(self, built: BuiltApp, page: Page, service: FakePushService) -> None:
        self.built = built
        self.page = page
        self.service = service
        self.device = Device(service)
        self.client = AppClient(built)
        self._tools: Any = None
        self._registration = ""

    async def turn_on(self) -> None:
        """Sign in and turn notifications on, as a person does."""
        await self.page.context.grant_permissions(["notifications"])
        keys = {"p256dh": self.device.asked.keys.p256dh, "auth": self.device.asked.keys.auth}
        place = json.dumps({"endpoint": self.device.asked.endpoint, "keys": keys})
        await self.page.add_init_script(SEEN + FAKE_MANAGER % place)
        code, _ = self.built.access.new_code()
        await self.page.goto(f"{self.built.url}/#code={code}")
        await expect(self.page.get_by_role("textbox", name="Message")).to_be_visible()
        await self.page.evaluate("navigator.serviceWorker.ready.then(() => undefined)")
        await self.show_settings()
        await self.page.get_by_role("button", name="Turn on").click()
        await expect(self.page.get_by_text("Notifications are on for this device.")).to_be_visible()
        await self.worker.evaluate(WARM_UP)

    async def show_settings(self) -> None:
        """Show how notifications stand."""
        await self.page.goto(f"{self.built.url}/#/settings/notifications")

    async def listed(self) -> PushSubscriptionList:
        """The devices that the server knows."""
        reply = await self.client.ask("GET", "/api/push/subscriptions")
        return reply.read(PushSubscriptionList)

    async def ask(self) -> tuple[SessionId, str]:
        """A session whose agent waits for permission; and the name of that request."""
        session = await self.client.create()
        await self.client.prompt(session, "Do it")
        view: SessionView = await self.client.until(session, lambda one: bool(one.permissions))
        return session, view.permissions[0].permission

    @property
    def worker(self) -> Worker:
        """The page's worker."""
        (found,) = self.page.context.service_workers
        return found

    async def shown(self) -> list[tuple[str, str, tuple[str, ...]]]:
        """Title, tag and actions of what the browser shows, by its own word."""
        rows: list[tuple[str, str, list[str]]] = await self.worker.evaluate(SHOWN)
        return sorted(
            ((title, tag, tuple(actions)) for title, tag, actions in rows),
            key=lambda row: row[1] != "server:test",
        )

    async def hand_over(self, count: int) -> dict[str, Any]:
        """Bring the newest of so many messages to the browser, as a push service does.

        It returns when the worker has shown it.
        """
        told = self.device.read((await self.service.take(count))[count - 1])
        if self._tools is None:
            self._tools, self._registration = await self._find_registration()
        before: int = await self.worker.evaluate("told")
        await self._tools.send(
            "ServiceWorker.deliverPushMessage",
            {
                "origin": self.built.url,
                "registrationId": self._registration,
                "data": json.dumps(told),
            },
        )
        async with asyncio.timeout(LIMIT_S):
            while await self.worker.evaluate("told") == before:
                await self.page.wait_for_timeout(20)
        return told

    async def _find_registration(self) -> tuple[Any, str]:
        """The browser's tools, and the name by which they know the page's worker."""
        tools = await tools_of(self.page)
        known: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
        tools.on("ServiceWorker.workerRegistrationUpdated", known.put_nowait)
        await tools.send("ServiceWorker.enable")
        async with asyncio.timeout(LIMIT_S):
            while not (rows := (await known.get())["registrations"]):
                pass
        return tools, rows[0]["registrationId"]


@asynccontextmanager
async def _open_desk(tmp_path: Path, *script: Any) -> AsyncGenerator[Desk]:
    (tmp_path / "root").mkdir()
    async with (
        FakePushService() as service,
        open_test_server(
            ScriptedProvider(*script),
            root=tmp_path / "root",
            tools=[runner([])],
            mode="ask",
            push=service.sender(tmp_path),
        ) as built,
        async_playwright() as playwright,
    ):
        context: BrowserContext = await playwright.chromium.launch_persistent_context(
            str(tmp_path / "profile"),
            executable_path=require_chromium(),
            args=FLAGS,
            viewport=PHONE,
        )
        context.set_default_timeout(20_000)
        expect.set_options(timeout=20_000)
        yield Desk(built, context.pages[0], service)
        await context.close()


@pytest.mark.rules("W29", "C7.1")
async def test_a_notification_of_a_request_leads_to_just_that_request(tmp_path: Path) -> None:
    commands = ["make one", "make two"]
    async with _open_desk(tmp_path, *(call("run", command=one) for one in commands)) as desk:
        await desk.turn_on()
        await desk.page.get_by_role("button", name="Send a test").click()
        await expect(desk.page.get_by_text("Last message: delivered")).to_be_visible()
        await desk.hand_over(1)
        assert await desk.shown() == [("Notifications work", "server:test", ())]

        await desk.page.evaluate("beSeen('hidden')")
        sessions: list[SessionId] = []
        for count, command in enumerate(commands, 2):
            session, request = await desk.ask()
            told = await desk.hand_over(count)
            await desk.hand_over(count)  # what comes twice is shown once
            assert (told["session"], told["request"]) == (session, request)
            assert command not in json.dumps(told)
            sessions.append(session)
        asks = [("The agent asks for permission", f"{one}:permission", ("allow", "deny"))
                for one in sessions]  # fmt: skip
        assert sorted((await desk.shown())[1:]) == sorted(asks)

        await desk.page.evaluate("beSeen('visible')")
        for session, command in zip(sessions, commands, strict=True):
            await desk.worker.evaluate(TAP, f"{session}:permission")
            await expect(desk.page.get_by_role("dialog")).to_contain_text(command)
            assert session in desk.page.url
        assert [tag for _, tag, _ in await desk.shown()] == ["server:test"]


@pytest.mark.rules("W29")
async def test_a_device_that_is_gone_is_removed_and_says_so(tmp_path: Path) -> None:
    async with _open_desk(tmp_path) as desk:
        await desk.turn_on()
        desk.service.answers.append("410 Gone")
        await desk.page.get_by_role("button", name="Send a test").click()
        await expect(desk.page.get_by_text("knows this device no more")).to_be_visible()
        assert (await desk.listed()).subscriptions == ()
        await desk.page.get_by_role("button", name="Turn on").click()
        await expect(desk.page.get_by_text("Notifications are on for this device.")).to_be_visible()
        assert len((await desk.listed()).subscriptions) == 1


@pytest.mark.rules("W29")
async def test_a_subscription_to_another_key_is_made_anew_at_the_start(tmp_path: Path) -> None:
    async with _open_desk(tmp_path) as desk:
        await desk.turn_on()
        key = (await desk.client.ask("GET", "/api/push/key")).read(PushOffer).key
        kept = "localStorage.getItem('test.key')"
        right = await desk.page.evaluate(kept)
        assert base64.b64decode(right) == base64.urlsafe_b64decode(key + "=")
        old = base64.b64encode(b"\4" + b"\7" * 64).decode()
        await desk.page.evaluate(f"localStorage.setItem('test.key', '{old}')")
        async with desk.page.expect_response(
            lambda one: "/api/push/subscriptions" in one.url and one.request.method == "POST"
        ):
            await desk.page.reload()
        assert await desk.page.evaluate(kept) == right
