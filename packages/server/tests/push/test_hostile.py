"""Subscriptions and services that mean no good, and calls in any order."""

import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import msgspec
import pytest
from aiohttp.abc import AbstractResolver, ResolveResult
from hypothesis import given
from hypothesis import strategies as st

from towline_agent import WebClient
from towline_agent.testing import ScriptedProvider
from towline_protocol import NotePresence, Problem, PushKeys, SubscribePush
from towline_server.build import BuiltApp
from towline_server.errors import AccessDenied, PushUnavailable
from towline_server.push.message import Call, make_payload
from towline_server.push.presence import MAX_CLIENTS, VISIBLE_S, Presence
from towline_server.push.seal import KEY_FILE, load_key
from towline_server.push.sender import MAX_ENDPOINT, PushSender
from towline_server.store.push import MAX_SUBSCRIPTIONS, Device
from towline_server.testing import AppClient, FakePushService, open_test_app

KEYS = PushKeys(
    p256dh="BCVxsr7N_eNgVRqvHtD0zTZsEc6-VV-JvLexhqUzORcxaOzi6-AYWXvTBHm4bjyPjs7Vd8pZGH6SRpkNtoIAiw4",
    auth="BTBZMqHH6r4Tts7J_aSIgg",
)
GOOD = SubscribePush(endpoint="https://push.example.org/send/abc", keys=KEYS)


@pytest.fixture
async def built(tmp_path: Path) -> AsyncGenerator[BuiltApp]:
    """A server as people run it: nothing private is reached."""
    async with open_test_app(ScriptedProvider(), root=tmp_path) as built:
        yield built


async def _refusal(built: BuiltApp, asked: SubscribePush) -> Problem:
    reply = await AppClient(built).ask("POST", "/api/push/subscriptions", asked)
    assert reply.status == 400, reply.body
    problem = reply.read(Problem)
    assert len(problem.detail) < 400
    return problem


@pytest.mark.rules("C7.1", "C7.2")
@pytest.mark.parametrize(
    ("endpoint", "why"),
    [
        ("http://push.example.org/a", "https"),
        ("https://127.0.0.1/a", "private"),
        ("https://localhost/a", "private"),
        ("https://desk.local/a", "private"),
        ("https://192.168.1.2/a", "private"),
        ("https://169.254.169.254/latest/meta-data", "private"),
        ("https://[::1]/a", "private"),
        ("https://[::ffff:127.0.0.1]/a", "cannot be used"),
        ("https://2130706433/a", "cannot be used"),
        ("https://0x7f.1/a", "cannot be used"),
        ("https://user:word@push.example.org/a", "cannot be used"),
        ("https://push.example.org\\@evil/a", "cannot be used"),
        ("https://push.example.org/a\r\nx-more: 1", "cannot be used"),
        ("ftp://push.example.org/a", "cannot be used"),
        ("javascript:alert(1)", "cannot be used"),
        ("", "cannot be used"),
        ("https://push.example.org/" + "a" * MAX_ENDPOINT, "characters"),
    ],
)
async def test_an_endpoint_that_is_no_push_service_in_the_internet_is_refused(
    built: BuiltApp, endpoint: str, why: str
) -> None:
    asked = msgspec.structs.replace(GOOD, endpoint=endpoint)
    assert why in (await _refusal(built, asked)).detail


@pytest.mark.rules("C7.1")
@pytest.mark.parametrize(
    "keys",
    [
        PushKeys(p256dh="", auth=KEYS.auth),
        PushKeys(p256dh=KEYS.p256dh, auth=""),
        PushKeys(p256dh="AAAA", auth=KEYS.auth),
        PushKeys(p256dh="B" + "A" * 86, auth=KEYS.auth),  # no point of the curve
        PushKeys(p256dh="é" * 87, auth=KEYS.auth),
        PushKeys(p256dh="%" * 87, auth=KEYS.auth),
        PushKeys(p256dh=KEYS.p256dh * 100, auth=KEYS.auth),
        PushKeys(p256dh=KEYS.p256dh, auth="AAAA"),
        PushKeys(p256dh=KEYS.p256dh, auth="A" * 65),
    ],
)
async def test_keys_that_are_none_are_refused(built: BuiltApp, keys: PushKeys) -> None:
    problem = await _refusal(built, msgspec.structs.replace(GOOD, keys=keys))
    assert keys.auth not in problem.detail or len(keys.auth) < 5


@pytest.mark.rules("C7.1")
@pytest.mark.parametrize("more", [{"name": "a" * 201}, {"language": "a" * 36}])
async def test_words_that_are_too_long_are_refused(built: BuiltApp, more: dict[str, str]) -> None:
    problem = await _refusal(built, msgspec.structs.replace(GOOD, **more))
    (words,) = more.values()
    assert words not in problem.detail


@pytest.mark.rules("C7.1")
async def test_a_user_has_so_many_devices_at_the_most_and_the_oldest_go(built: BuiltApp) -> None:
    client = AppClient(built)
    for number in range(MAX_SUBSCRIPTIONS + 2):
        asked = msgspec.structs.replace(GOOD, endpoint=f"{GOOD.endpoint}{number}", name=f"{number}")
        assert (await client.ask("POST", "/api/push/subscriptions", asked)).status == 201
    reply = await client.ask("GET", "/api/push/subscriptions")
    rows = msgspec.json.decode(reply.body)["subscriptions"]
    assert len(rows) == MAX_SUBSCRIPTIONS
    assert str(MAX_SUBSCRIPTIONS + 1) in {row["name"] for row in rows}
    assert KEYS.auth.encode() not in reply.body
    assert b"/send/" not in reply.body  # who knows an endpoint may try to send to it


@pytest.mark.rules("C7.1", "C2.9")
async def test_a_device_that_is_revoked_while_its_keys_are_tried_is_not_kept(
    built: BuiltApp,
) -> None:
    devices = built.wake_ups.devices
    with pytest.raises(AccessDenied):
        await devices.subscribe("owner", GOOD, origin="https://desk.example.org", token="0" * 64)
    assert (await devices.list_devices("owner")).subscriptions == ()
    await devices.subscribe("owner", GOOD, origin="https://desk.example.org", token=None)
    assert len((await devices.list_devices("owner")).subscriptions) == 1


@pytest.mark.rules("C5.16")
@pytest.mark.parametrize("client", ["", "a" * 65])
async def test_a_beacon_without_a_usable_name_is_refused(built: BuiltApp, client: str) -> None:
    body = NotePresence(client=client)
    assert (await AppClient(built).ask("POST", "/api/presence", body)).status == 400


def _device(endpoint: str) -> Device:
    return Device(
        id="psh_1", user="owner", endpoint=endpoint, p256dh=KEYS.p256dh, auth=KEYS.auth,
        subject="mailto:a@example.org", origin="https://desk.example.org", language="en",
        name="", created_ms=0,
    )  # fmt: skip


CALL = Call(user="owner", kind="permission", session="ses_1", request="prm_1", about="prm_1")


class _Names(AbstractResolver):
    """Leads every name to this machine."""

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host, host="127.0.0.1", port=port, family=family, proto=0, flags=0
            )
        ]

    async def close(self) -> None:
        """Nothing is open."""


@pytest.mark.rules("C7.1", "C7.2")
async def test_a_public_name_that_leads_to_this_machine_is_not_connected_to(
    tmp_path: Path, service: FakePushService
) -> None:
    port = service.endpoint().split(":")[2].split("/")[0]
    sender = PushSender(tmp_path, web=WebClient(resolver=_Names, environ_proxies=dict))
    device = _device(f"https://push.example.org:{port}/a")
    reply = await sender.send(device, CALL, ttl_s=60, now_ms=0)
    sender.close()
    assert (reply.outcome, reply.status, reply.again) == ("failed", None, False)
    assert "private" in reply.message
    assert service.posted == []


@pytest.mark.rules("C7.1", "C7.2")
async def test_a_redirect_is_not_followed(tmp_path: Path, service: FakePushService) -> None:
    service.answers.append(f"307 Elsewhere\r\nlocation: {service.endpoint('elsewhere')}")
    sender = service.sender(tmp_path)
    reply = await sender.send(_device(service.endpoint()), CALL, ttl_s=60, now_ms=0)
    sender.close()
    assert (reply.outcome, reply.status, reply.again) == ("failed", 307, False)
    assert [posted.path for posted in service.posted] == ["/push/phone"]


@pytest.mark.rules("C7.1")
@pytest.mark.parametrize(
    ("answer", "after_s"),
    [
        ("503 Busy\r\nretry-after: 7", 7.0),
        ("429 Slow\r\nretry-after: 99999999", 600.0),
        ("429 Slow\r\nretry-after: -1", 0.0),
        ("429 Slow\r\nretry-after: soon", 0.0),
        ("503 Busy\r\nretry-after: Thu, 01 Jan 1970 00:00:30 GMT", 20.0),
        ("503 Busy\r\nretry-after: Thu, 01 Jan 1970 00:00:01 GMT", 0.0),
    ],
)
async def test_retry_after_is_read_in_both_forms_and_bounded(
    tmp_path: Path, service: FakePushService, answer: str, after_s: float
) -> None:
    service.answers.append(answer)
    sender = service.sender(tmp_path)
    reply = await sender.send(_device(service.endpoint()), CALL, ttl_s=60, now_ms=10_000)
    sender.close()
    assert (reply.again, reply.after_s) == (True, after_s)


@pytest.mark.rules("C7.1")
def test_what_is_sent_stays_below_the_4096_bytes_of_push_services() -> None:
    long = msgspec.structs.replace(CALL, text="许" * 200, user="u" * 200, reason="r" * 100)
    assert len(make_payload(long, language="zh-CN", origin="https://" + "a" * 253)) < 3900


@pytest.mark.rules("C7.1")
def test_titles_are_in_the_language_of_the_device_or_in_english() -> None:
    titles = [
        msgspec.json.decode(make_payload(CALL, language=language, origin="https://a"))["title"]
        for language in ("zh", "zh-Hans-CN", "ZH", "en-GB", "fr", "")
    ]
    assert len(set(titles)) == 2
    assert titles[:3] == [titles[0]] * 3
    assert titles[3:] == ["The agent asks for permission"] * 3


@pytest.mark.rules("C7.1")
def test_a_key_that_is_damaged_or_cannot_be_made_is_told_with_its_file(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_text("no key")
    with pytest.raises(PushUnavailable, match="move it away"):
        load_key(tmp_path)
    assert (tmp_path / KEY_FILE).read_text() == "no key"
    (tmp_path / "file").write_text("")
    with pytest.raises(PushUnavailable, match="cannot be used"):
        load_key(tmp_path / "file")


@pytest.mark.rules("C7.1")
def test_without_the_library_it_is_said_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pywebpush", None)
    with pytest.raises(PushUnavailable, match=r"towline-server\[push\]"):
        load_key(tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.rules("C5.16")
def test_of_many_clients_the_newest_are_remembered() -> None:
    presence = Presence()
    for number in range(MAX_CLIENTS + 5):
        presence.note("ann", f"client {number}", float(number) / 100, visible=True)
    for number in range(5, MAX_CLIENTS + 5):
        assert presence.visible("ann", 1.0)
        presence.note("ann", f"client {number}", 1.0, visible=False)
    assert not presence.visible("ann", 1.0)


_BEACON = st.tuples(st.sampled_from("ab"), st.booleans(), st.floats(0, 60))


@pytest.mark.rules("C5.16")
@given(st.lists(_BEACON, max_size=30))
def test_somebody_looks_exactly_if_the_last_beacon_of_a_client_is_young_and_visible(
    beacons: list[tuple[str, bool, float]],
) -> None:
    presence = Presence()
    now_s = 0.0
    last: dict[str, tuple[bool, float]] = {}
    for client, visible, wait_s in beacons:
        now_s += wait_s
        looked = any(seen and now_s - at_s < VISIBLE_S for seen, at_s in last.values())
        assert presence.visible("ann", now_s) is looked
        assert presence.note("ann", client, now_s, visible=visible) is (visible and not looked)
        last[client] = (visible, now_s)
    assert not presence.visible("eve", now_s)


@pytest.mark.rules("C7.1")
async def test_two_servers_sign_with_keys_of_their_own_that_they_keep(
    tmp_path: Path, service: FakePushService
) -> None:
    keys: list[str] = []
    for name in ("one", "two", "one"):
        (tmp_path / name).mkdir(exist_ok=True)
        sender = service.sender(tmp_path / name)
        keys.append((await sender.key()).public)
        sender.close()
        (file,) = (tmp_path / name).iterdir()
        assert file.stat().st_mode & 0o777 == 0o600
    assert keys[0] == keys[2] != keys[1]
