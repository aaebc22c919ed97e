"""Who is called, for what, and what a device then reads (C7.1)."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from towline_agent import RequestRejected, StepFailed, mint_now, tool
from towline_agent.testing import FakeClock, ScriptedProvider, call
from towline_protocol import (
    NotePresence,
    PermissionRequested,
    PushOffer,
    PushOutcome,
    PushSubscriptionList,
    SessionId,
    SessionView,
    parse_time,
)
from towline_server.build import BuiltApp
from towline_server.push.presence import VISIBLE_S
from towline_server.push.sender import PushSender
from towline_server.push.wake_ups import MAX_TRIES
from towline_server.store.sqlite_store import SqliteStore, open_memory_store
from towline_server.testing import AppClient, FakePushService, open_test_app, sign_in
from towline_server.testing.browser import Browser, check_signature

ASK = call("change", what="the secret plan")
WINDOW_S, AWAY_S = 120.0, 1800.0


@tool(name="change")
async def _change(what: str) -> str:
    """Change something."""
    return f"changed {what}"


class House:
    """A server whose one user has a phone."""

    def __init__(
        self, built: BuiltApp, clock: FakeClock, phone: Browser, service: FakePushService
    ) -> None:
        self.built = built
        self.clock = clock
        self.phone = phone
        self.service = service
        self.client = AppClient(built)

    async def beacon(self, *, visible: bool = True, client: str = "phone") -> None:
        reply = await self.client.ask(
            "POST", "/api/presence", NotePresence(client=client, visible=visible)
        )
        assert reply.status == 204, reply.body

    async def begin(self) -> SessionId:
        session = await self.client.create()
        await self.client.prompt(session, "go on with the secret plan")
        return session

    async def asked(self) -> SessionId:
        session = await self.begin()
        await self.client.until(session, lambda view: bool(view.permissions))
        return session

    async def ended(self, session: SessionId) -> SessionView:
        return await self.client.until(session, lambda view: view.last_turn is not None)

    async def listed(self) -> PushSubscriptionList:
        reply = await self.client.ask("GET", "/api/push/subscriptions")
        return reply.read(PushSubscriptionList)

    async def take(self, count: int = 1) -> list[dict[str, Any]]:
        return [self.phone.read(posted) for posted in await self.service.take(count)]

    async def outcome(self, *, after: str = "") -> PushOutcome:
        """The last outcome of the phone, once there is a newer one."""
        async with asyncio.timeout(20):
            while True:
                (row,) = (await self.listed()).subscriptions
                if row.last is not None and row.last.time != after:
                    return row.last
                await asyncio.sleep(0)

    async def until_slept(self, delay_s: float) -> None:
        """Wait until somebody waits for so long."""
        async with asyncio.timeout(20):
            while delay_s not in self.clock.sleeps:
                await self.listed()

    async def nothing_more(self, count: int) -> None:
        """Hold that no more is sent: a test message comes right after what was sent before."""
        (row,) = (await self.listed()).subscriptions
        reply = await self.client.ask("POST", f"/api/push/subscriptions/{row.id}/test")
        assert reply.read(PushOutcome).outcome == "delivered"
        assert [told["kind"] for told in await self.take(count + 1)][count:] == ["test"]


@asynccontextmanager
async def _up(
    tmp_path: Path,
    service: FakePushService,
    phone: Browser,
    *script: Any,
    store: SqliteStore | None = None,
    clock: FakeClock | None = None,
    sender: PushSender | None = None,
    push_text: bool = False,
) -> AsyncGenerator[House]:
    clock = clock or FakeClock(held=True)
    root = tmp_path / "root"
    root.mkdir(exist_ok=True)
    async with open_test_app(
        ScriptedProvider(*script),
        root=root,
        tools=[_change],
        mode="ask",
        clock=clock,
        store=store,
        permission_window_s=WINDOW_S,
        push=sender or service.sender(tmp_path),
        push_text=push_text,
    ) as built:
        yield House(built, clock, phone, service)


@pytest.mark.rules("C7.1", "W29", "W06")
async def test_a_permission_that_nobody_sees_reaches_the_phone_encrypted_and_signed(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        key = (await house.client.ask("GET", "/api/push/key")).read(PushOffer).key
        await phone.subscribe(house.client)
        session = await house.asked()
        (posted,) = await service.take(1)
        (told,) = await house.take()
        view = await house.client.view(session)
    claims = check_signature(posted, key)
    assert claims["sub"] == "mailto:owner@example.org"
    assert claims["aud"] == service.endpoint().removesuffix("/push/phone")
    assert 0 < claims["exp"] - house.clock.now_ms() / 1000 <= 24 * 3600
    assert (posted.headers["ttl"], posted.headers["urgency"]) == ("1800", "high")
    request = view.permissions[0].permission
    assert view.turn is not None
    assert told == {
        "web_push": 8030,
        "notification": {
            "title": "The agent asks for permission",
            "lang": "en",
            "navigate": f"http://127.0.0.1/#/s/{session}?request={request}",
            "tag": f"{session}:permission",
            "actions": [
                {"action": action, "title": title, "navigate": f"http://127.0.0.1/#/s/{session}?request={request}"}
                for action, title in (("allow", "Allow…"), ("deny", "Deny…"))
            ],
        },
        "session": session,
        "user": "owner",
        "turn": view.turn.id,
        "status": "waiting",
        "last_seq": told["last_seq"],
        "time": told["time"],
        "kind": "permission",
        "request": request,
        "title": "The agent asks for permission",
    }  # fmt: skip
    assert 0 < told["last_seq"] <= view.seq
    assert "secret" not in str(told)


@pytest.mark.rules("C5.8", "C5.9", "C7.1")
async def test_who_was_called_has_the_longer_time_and_is_called_once_though_it_is_asked_again(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        await phone.subscribe(house.client)
        session = await house.asked()
        await service.take(1)
        log = await _until_asked(house, session, 2)
        first, second = (
            (parse_time(event.expires_at) - house.clock.now_ms()) / 1000 for event in log
        )
        assert (first, second) == (WINDOW_S, AWAY_S)
        assert len({event.permission for event in log}) == 1
        await house.nothing_more(1)


async def _until_asked(house: House, session: SessionId, count: int) -> list[PermissionRequested]:
    async with asyncio.timeout(20):
        while True:
            log = await house.client.log(session)
            found = [e.event for e in log if isinstance(e.event, PermissionRequested)]
            if len(found) >= count:
                return found
            await asyncio.sleep(0)


@pytest.mark.rules("C5.16", "C7.1", "W29")
async def test_a_client_that_is_seen_holds_the_call_back_until_it_is_hidden(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        await phone.subscribe(house.client)
        await house.beacon(client="desk")
        await house.beacon(client="phone")
        session = await house.asked()
        await house.beacon(client="phone", visible=False)
        await house.nothing_more(0)
        await house.beacon(client="desk", visible=False)
        *_, told = await house.take(2)
        assert (told["kind"], told["session"]) == ("permission", session)


@pytest.mark.rules("C5.16", "C7.1", "W29")
async def test_a_client_that_falls_silent_counts_as_seen_for_45_seconds(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        await phone.subscribe(house.client)
        await house.beacon()
        await house.asked()
        house.clock.advance(VISIBLE_S - 1)
        await house.nothing_more(0)
        house.clock.advance(1)
        *_, told = await house.take(2)
        assert told["kind"] == "permission"


@pytest.mark.rules("C5.16", "C7.1")
async def test_a_stream_alone_holds_no_call_back(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        await phone.subscribe(house.client)
        session = await house.client.create()
        async with house.client.follow(session):
            await house.client.prompt(session, "go")
            (told,) = await house.take()
        assert told["kind"] == "permission"


@pytest.mark.rules("C5.8", "C5.9", "C5.16")
async def test_who_comes_to_look_has_the_usual_time_from_then_on(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        session = await house.asked()
        house.clock.advance(100)
        await house.beacon()
        _, again = await _until_asked(house, session, 2)
        assert parse_time(again.expires_at) - house.clock.now_ms() == WINDOW_S * 1000
        house.clock.advance(10)
        await house.beacon()
        assert len(await _until_asked(house, session, 2)) == 2  # still looking moves nothing


@pytest.mark.rules("C7.1", "W29")
async def test_a_question_and_a_turn_that_failed_are_told_of(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    question = call("ask_user", items=[{"prompt": "Which secret?", "options": ["this", "that"]}])
    broken = StepFailed(error=RequestRejected("the secret model says no"))
    async with _up(tmp_path, service, phone, question, broken) as house:
        await phone.subscribe(house.client)
        session = await house.begin()
        (asked,) = await house.take()
        view = await house.client.until(session, lambda view: bool(view.questions))
        question_id = view.questions[0].question
        answers = {"item_1": ["option_1"]}
        reply = await house.client.answer_question(session, question_id, answers)
        assert reply.status == 200
        await house.ended(session)
        _, failed = await house.take(2)
    assert (asked["kind"], asked["request"]) == ("question", view.questions[0].question)
    assert asked["status"] == "waiting"
    assert (failed["kind"], failed["status"]) == ("turn_failed", "failed")
    assert failed["reason"] == "provider_request_rejected"
    assert failed["notification"]["navigate"] == f"http://127.0.0.1/#/s/{session}"
    assert "actions" not in failed["notification"]
    assert "secret" not in str((asked, failed))
    assert {posted.headers["urgency"] for posted in service.posted} == {"normal"}
    assert len({posted.headers["topic"] for posted in service.posted}) == 2


@pytest.mark.rules("C7.1", "W29")
@pytest.mark.parametrize(("seconds", "called"), [(30.0, False), (31.0, True)])
async def test_the_end_of_a_turn_is_told_of_when_it_took_more_than_30_seconds(
    tmp_path: Path, service: FakePushService, phone: Browser, seconds: float, *, called: bool
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done with the secret") as house:
        await phone.subscribe(house.client)
        session = await house.asked()
        await service.take(1)
        house.clock.advance(seconds)
        view = await house.client.view(session)
        await house.client.answer(session, view.permissions[0], "allow_once")
        await house.ended(session)
        if not called:
            await house.nothing_more(1)
            return
        _, told = await house.take(2)
        assert (told["kind"], told["status"]) == ("turn_ended", "completed")
        assert told["reason"] == "end_turn"
        assert "secret" not in str(told)
        await house.nothing_more(2)


@pytest.mark.rules("C7.1")
async def test_what_a_person_stops_or_watches_to_its_end_is_no_news(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, ASK, "done") as house:
        await phone.subscribe(house.client)
        session = await house.asked()
        await service.take(1)
        house.clock.advance(60)
        await house.client.interrupt(session)
        await house.ended(session)
        await house.nothing_more(1)
        second = await house.asked()
        await service.take(3)
        house.clock.advance(60)
        await house.beacon()
        view = await house.client.view(second)
        await house.client.answer(second, view.permissions[0], "allow_once")
        await house.ended(second)
        await house.beacon(visible=False)
        await house.nothing_more(3)


@pytest.mark.rules("C7.1")
async def test_the_session_s_own_words_stand_in_a_message_only_if_the_settings_say_so(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done", push_text=True) as house:
        await phone.subscribe(house.client)
        session = await house.asked()
        (told,) = await house.take()
        view = await house.client.view(session)
    assert told["notification"]["body"] == view.permissions[0].title


@pytest.mark.rules("C7.1", "W29")
@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
async def test_a_subscription_that_the_service_knows_no_more_is_removed(
    tmp_path: Path, service: FakePushService, phone: Browser, status: str
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        made = await phone.subscribe(house.client)
        service.answers.append(status)
        path = f"/api/push/subscriptions/{made.id}/test"
        outcome = (await house.client.ask("POST", path)).read(PushOutcome)
        assert (outcome.outcome, outcome.status) == ("gone", int(status[:3]))
        assert (await house.listed()).subscriptions == ()
        assert (await house.client.ask("POST", path)).status == 404
        await house.asked()
        assert len(service.posted) == 1


@pytest.mark.rules("C7.1")
async def test_a_busy_service_is_asked_again_after_as_long_as_it_wants(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        await phone.subscribe(house.client)
        service.answers.append("503 Busy\r\nretry-after: 70")
        await house.asked()
        failed = await house.outcome()
        assert (failed.outcome, failed.status) == ("failed", 503)
        await house.until_slept(70.0)
        house.clock.advance(69)
        await house.nothing_more(1)
        house.clock.advance(1)
        *_, told = await house.take(3)
        assert told["kind"] == "permission"
        await house.nothing_more(3)


@pytest.mark.rules("C7.1")
async def test_a_service_that_stays_broken_is_given_up_after_four_tries(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    broken = StepFailed(error=RequestRejected("no"))
    async with _up(tmp_path, service, phone, broken) as house:
        await phone.subscribe(house.client)
        service.answers += ["500 Broken"] * MAX_TRIES
        await house.begin()
        for tries, delay_s in enumerate((5.0, 30.0, 120.0), start=1):
            await service.take(tries)
            await house.until_slept(delay_s)
            house.clock.advance(delay_s)
        await service.take(MAX_TRIES)
        house.clock.advance(3600)
        await house.nothing_more(MAX_TRIES)


@pytest.mark.rules("C7.1")
async def test_after_a_restart_only_what_was_not_delivered_is_sent(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    store = await open_memory_store(mint=mint_now)
    clock = FakeClock(held=True)
    try:
        async with _up(tmp_path, service, phone, ASK, store=store, clock=clock) as house:
            await phone.subscribe(house.client)
            service.answers.append("400 Bad Request")
            session = await house.asked()
            failed = await house.outcome()
            assert (failed.outcome, failed.status) == ("failed", 400)
        clock.advance(1)
        async with _up(tmp_path, service, phone, "done", store=store, clock=clock) as house:
            *_, told = await house.take(2)
            assert (told["kind"], told["session"]) == ("permission", session)
            assert (await house.outcome(after=failed.time)).outcome == "delivered"
        async with _up(tmp_path, service, phone, "done", store=store, clock=clock) as house:
            await house.client.until(session, lambda view: bool(view.permissions))
            await house.nothing_more(2)
    finally:
        await store.close()


@pytest.mark.rules("C7.1", "C2.9")
async def test_users_are_called_for_their_own_sessions_alone(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    other = Browser(service, "other")
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        eve = await sign_in(house.built, "eve")
        made = await phone.subscribe(house.client)
        await other.subscribe(eve)
        await house.asked()
        (told,) = await house.take()
        assert told["user"] == "owner"
        path = f"/api/push/subscriptions/{made.id}"
        assert (await eve.ask("DELETE", path)).status == 404
        assert (await eve.ask("POST", f"{path}/test")).status == 404
        reply = await eve.ask("GET", "/api/push/subscriptions")
        (own,) = reply.read(PushSubscriptionList).subscriptions
        assert (own.name, own.last) == ("other", None)


@pytest.mark.rules("C7.1")
async def test_a_browser_that_changes_hands_is_called_for_its_new_user_alone(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        eve = await sign_in(house.built, "eve")
        first = await phone.subscribe(house.client)
        assert (await phone.subscribe(house.client)).id == first.id  # the same again
        assert (await phone.subscribe(eve)).id != first.id
        assert (await house.listed()).subscriptions == ()
        await house.asked()
        reply = await eve.ask("GET", "/api/push/subscriptions")
        (row,) = reply.read(PushSubscriptionList).subscriptions
        await eve.ask("POST", f"/api/push/subscriptions/{row.id}/test")
        (told,) = await house.take()
        assert (told["kind"], told["user"]) == ("test", "eve")


@pytest.mark.rules("C7.1")
async def test_a_device_whose_token_is_revoked_is_called_no_more(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        eve = await sign_in(house.built, "eve")
        await phone.subscribe(eve)
        await eve.ask("POST", "/api/auth/logout")
        eve = await sign_in(house.built, "eve")
        reply = await eve.ask("GET", "/api/push/subscriptions")
        assert reply.read(PushSubscriptionList).subscriptions == ()


@pytest.mark.rules("C7.1")
async def test_a_service_that_does_not_answer_holds_no_turn_up(
    tmp_path: Path, service: FakePushService, phone: Browser
) -> None:
    service.hold.clear()
    async with _up(tmp_path, service, phone, ASK, "done") as house:
        await phone.subscribe(house.client)
        session = await house.asked()
        await service.take(1)
        view = await house.client.view(session)
        await house.client.answer(session, view.permissions[0], "allow_once")
        ended = (await house.ended(session)).last_turn
        assert ended is not None
        assert ended.outcome == "completed"
