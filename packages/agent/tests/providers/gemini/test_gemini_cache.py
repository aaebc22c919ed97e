"""Beginnings of conversations that are kept at the provider (A2.56 to A2.59)."""

import asyncio
import json
from typing import Any

import pytest

from towline_agent.providers.base import Piece, Request, StepAnswer, StepFailed, StepResult
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.transport import HttpCall, TransportFailed
from towline_agent.testing import FakeClock, Scripted, ScriptedTransport, event_stream
from towline_protocol import Message, Text

_Json = dict[str, Any]
URL = "https://generativelanguage.googleapis.com/v1beta"
HELLO = event_stream(
    {"candidates": [{"content": {"parts": [{"text": "Hello"}]}, "finishReason": "STOP"}]},
    done=False,
)
LONG = "word " * 2000
"""About 2,500 tokens."""


def ignore(_: Piece) -> None:
    pass


def turns(count: int, long: str = LONG) -> tuple[Message, ...]:
    """A conversation of so many prompts, with answers between them."""
    history = [Message("user", (Text(text=long),))]
    for turn in range(1, count):
        history.append(Message("assistant", (Text(text=f"Answer {turn}."),)))
        history.append(Message("user", (Text(text=f"Prompt {turn}."),)))
    return tuple(history)


def asked(messages: tuple[Message, ...], key: str = "c1", **more: Any) -> Request:
    return Request(model="gemini-3.8-flash", messages=messages, cache_key=key, system="S", **more)


def made(name: str = "cachedContents/one") -> bytes:
    return json.dumps({"name": name, "expireTime": "2030-01-01T00:00:00Z"}).encode()


class World:
    """A provider, its script and its clock."""

    def __init__(self, *script: Scripted | bytes, **options: Any) -> None:
        self.clock = FakeClock()
        self.transport = ScriptedTransport(*script)
        given: _Json = {"api_key": "AIza-1", **options}
        self.provider = Gemini(
            "gemini-3.8-flash", transport=self.transport, clock=self.clock, **given
        )

    async def step(self, request: Request) -> StepResult:
        return await self.provider.step(request, ignore)

    async def steps(self, *counts: int, **more: Any) -> None:
        for count in counts:
            assert isinstance(await self.step(asked(turns(count), **more)), StepAnswer)

    @property
    def sent(self) -> list[str]:
        """Each request in short: what was asked, and how many contents went inline or by name."""
        return [_short(call) for call in self.transport.calls]

    def body(self, place: int) -> _Json:
        return json.loads(self.transport.calls[place].body or b"{}")


def _short(call: HttpCall) -> str:
    path = call.url.removeprefix(URL)
    if "cachedContents" in path:
        return f"{call.method} {path}"
    body = json.loads(call.body or b"{}")
    return f"ask {body.get('cachedContent', 'inline')} {len(body['contents'])}"


@pytest.mark.rules("A2.56", "A2.57")
async def test_from_the_second_long_request_on_the_beginning_is_kept_and_named() -> None:
    world = World(HELLO, made(), HELLO, HELLO)
    await world.steps(1, 2, 3)
    assert world.sent == [
        "ask inline 1",
        "POST /cachedContents",
        "ask cachedContents/one 1",
        "ask cachedContents/one 3",
    ]
    assert world.body(1) == {
        "model": "models/gemini-3.8-flash",
        "ttl": "3600s",
        "systemInstruction": {"parts": [{"text": "S"}]},
        "contents": [
            {"role": "user", "parts": [{"text": LONG}]},
            {"role": "model", "parts": [{"text": "Answer 1."}]},
        ],
    }
    assert "systemInstruction" not in world.body(2)
    assert world.body(2)["contents"] == [{"role": "user", "parts": [{"text": "Prompt 1."}]}]
    assert world.transport.calls[1].headers["x-goog-api-key"] == "AIza-1"


@pytest.mark.rules("A2.56")
async def test_short_requests_are_neither_kept_nor_counted() -> None:
    world = World(*[HELLO] * 4)
    for _ in range(3):
        await world.step(asked(turns(2, "short")))
    await world.steps(2)
    assert world.sent == ["ask inline 3"] * 4


@pytest.mark.rules("A2.56")
async def test_a_beginning_that_is_short_itself_is_not_kept() -> None:
    world = World(HELLO, HELLO)
    history = (*turns(1, "short"), Message("assistant", (Text(text="a"),)), *turns(1))
    for _ in range(2):
        await world.step(asked(history))
    assert world.sent == ["ask inline 3"] * 2


@pytest.mark.rules("A2.57")
async def test_what_is_kept_is_renewed_a_minute_before_its_end() -> None:
    world = World(HELLO, made(), HELLO, HELLO, b"{}", HELLO, HELLO)
    await world.steps(1, 2)
    world.clock.advance(3539)
    await world.steps(2)
    world.clock.advance(1)
    await world.steps(2)
    assert world.sent[4:] == [
        "PATCH /cachedContents/one?updateMask=ttl",
        "ask cachedContents/one 1",
    ]
    assert world.body(4) == {"ttl": "3600s"}
    world.clock.advance(3539)
    await world.steps(2)
    assert world.sent[6:] == ["ask cachedContents/one 1"]


@pytest.mark.rules("A2.57", "A2.58")
@pytest.mark.parametrize(
    "answer", [Scripted(status=404), Scripted(parts=(TransportFailed("lost"),))]
)
async def test_what_cannot_be_renewed_is_put_there_anew(answer: Scripted) -> None:
    world = World(HELLO, made(), HELLO, answer, made("cachedContents/two"), HELLO)
    await world.steps(1, 2)
    world.clock.advance(3550)
    await world.steps(2)
    assert world.sent[3:] == [
        "PATCH /cachedContents/one?updateMask=ttl",
        "POST /cachedContents",
        "ask cachedContents/two 1",
    ]


@pytest.mark.rules("A2.57")
async def test_what_has_ended_meanwhile_is_put_there_anew() -> None:
    world = World(HELLO, made(), HELLO, made("cachedContents/two"), HELLO)
    await world.steps(1, 2)
    world.clock.advance(3600)
    await world.steps(2)
    assert world.sent[3:] == ["POST /cachedContents", "ask cachedContents/two 1"]


@pytest.mark.rules("A2.58")
@pytest.mark.parametrize("status", [400, 403, 404])
async def test_a_name_that_has_died_is_left_and_the_content_sent_in_the_same_step(
    status: int,
) -> None:
    gone = Scripted(status=status, parts=(b'{"error":{"message":"CachedContent not found"}}',))
    world = World(HELLO, made(), gone, HELLO, HELLO)
    await world.steps(1, 2, 2)
    assert world.sent[2:] == ["ask cachedContents/one 1", "ask inline 3", "ask inline 3"]


@pytest.mark.rules("A2.58")
async def test_a_failure_that_the_inline_content_has_too_is_the_steps() -> None:
    gone = Scripted(status=400, parts=(b'{"error":{"message":"bad"}}',))
    world = World(HELLO, made(), gone, gone)
    await world.steps(1)
    result = await world.step(asked(turns(2)))
    assert isinstance(result, StepFailed)
    assert len(world.sent) == 4


@pytest.mark.rules("A2.58")
async def test_another_failure_keeps_what_is_kept() -> None:
    busy = Scripted(status=503, parts=(b'{"error":{"message":"overloaded"}}',))
    world = World(HELLO, made(), busy, HELLO)
    await world.steps(1)
    assert isinstance(await world.step(asked(turns(2))), StepFailed)
    await world.steps(2)
    assert world.sent[2:] == ["ask cachedContents/one 1"] * 2


@pytest.mark.rules("A2.58")
@pytest.mark.parametrize(
    "answer",
    [
        Scripted(status=400, parts=(b'{"error":{"message":"Cached content is too small."}}',)),
        Scripted(status=500),
        Scripted(status=429, parts=(b"Resource exhausted.",)),
        Scripted(parts=(TransportFailed("idle"),)),
        b"<html>",
        b'{"name":7}',
        b"[]",
    ],
)
async def test_a_beginning_that_is_refused_is_sent_inline_and_not_tried_again(
    answer: Scripted | bytes,
) -> None:
    world = World(HELLO, answer, HELLO, HELLO, HELLO, made(), HELLO)
    await world.steps(1, 2, 3, 4)
    assert world.sent == [
        "ask inline 1",
        "POST /cachedContents",
        *(f"ask inline {n}" for n in (3, 5, 7)),
    ]
    grown = (*turns(4), Message("assistant", (Text(text=LONG),)), *turns(1, "More?"))
    await world.step(asked(grown))
    assert world.sent[5:] == ["POST /cachedContents", "ask cachedContents/one 1"]


@pytest.mark.rules("A2.58")
@pytest.mark.parametrize(
    ("status", "words"),
    [
        (401, b""),
        (403, b""),
        (404, b""),
        (429, b"TotalCachedContentStorageTokensPerModelFreeTier limit exceeded: limit=0"),
    ],
)
async def test_a_key_without_caches_costs_one_request_that_fails_unseen(
    status: int, words: bytes
) -> None:
    world = World(HELLO, Scripted(status=status, parts=(words,)), *[HELLO] * 4)
    await world.steps(1, 2)
    await world.steps(1, 2, 2, key="another")
    assert [line for line in world.sent if "POST" in line] == ["POST /cachedContents"]


@pytest.mark.rules("A2.56", "A2.59")
async def test_a_beginning_takes_the_place_of_a_shorter_one_when_it_has_doubled() -> None:
    world = World(HELLO, made(), HELLO, HELLO, made("cachedContents/two"), b"{}", HELLO)
    await world.steps(1, 2, 3)
    grown = (*turns(3), Message("assistant", (Text(text=LONG),)), *turns(1, "More?"))
    await world.step(asked(grown))
    assert world.sent[4:] == [
        "POST /cachedContents",
        "DELETE /cachedContents/one",
        "ask cachedContents/two 1",
    ]


@pytest.mark.rules("A2.56")
async def test_one_request_that_begins_otherwise_goes_inline_and_spoils_nothing() -> None:
    world = World(HELLO, made(), HELLO, HELLO, HELLO)
    await world.steps(1, 2)
    await world.step(asked(turns(2, "other " * 2000)))
    await world.steps(2)
    assert world.sent[3:] == ["ask inline 3", "ask cachedContents/one 1"]


@pytest.mark.rules("A2.56", "A2.59")
async def test_a_conversation_that_has_changed_is_kept_anew() -> None:
    world = World(HELLO, made(), HELLO, HELLO, b"{}", made("cachedContents/two"), HELLO)
    await world.steps(1, 2)
    for _ in range(2):
        await world.step(asked(turns(2, "other " * 2000)))
    assert world.sent[3:] == [
        "ask inline 3",
        "DELETE /cachedContents/one",
        "POST /cachedContents",
        "ask cachedContents/two 1",
    ]


@pytest.mark.rules("A2.59")
async def test_all_is_deleted_at_close_even_if_that_fails() -> None:
    world = World(
        HELLO, made(), HELLO, HELLO, made("cachedContents/two"), HELLO,
        Scripted(parts=(TransportFailed("lost"),)), b"{}", HELLO,
    )  # fmt: skip
    await world.steps(1, 2)
    await world.steps(1, 2, key="c2")
    await world.provider.aclose()
    await world.provider.aclose()
    assert world.sent[6:] == ["DELETE /cachedContents/one", "DELETE /cachedContents/two"]
    assert world.transport.closed == 2
    await world.steps(2)
    assert world.sent[8:] == ["ask inline 3"]


@pytest.mark.rules("A2.59")
async def test_only_so_many_conversations_are_kept_at_once() -> None:
    script: list[bytes] = []
    for number in range(8):
        script += [HELLO, made(f"cachedContents/{number}"), HELLO]
    world = World(*script, b"{}", HELLO)
    for number in range(8):
        await world.steps(1, 2, key=f"c{number}")
    await world.steps(1, key="c8")
    assert world.sent[24:] == ["DELETE /cachedContents/0", "ask inline 1"]


async def test_steps_at_the_same_time_make_one_beginning() -> None:
    held = asyncio.Event()
    world = World(HELLO, Scripted(parts=(held, made())), HELLO, HELLO)
    await world.steps(1)
    async with asyncio.timeout(5), asyncio.TaskGroup() as tasks:
        first = tasks.create_task(world.step(asked(turns(2))))
        await asyncio.sleep(0)
        assert world.sent[1:] == ["POST /cachedContents"]
        await world.steps(2)
        held.set()
    assert isinstance(first.result(), StepAnswer)
    assert world.sent[2:] == ["ask inline 3", "ask cachedContents/one 1"]


@pytest.mark.rules("A1.25")
async def test_a_cancel_while_a_beginning_is_made_goes_on_to_the_caller() -> None:
    world = World(HELLO, Scripted(parts=(asyncio.Event(),)), made(), HELLO)
    await world.steps(1)
    task = asyncio.create_task(world.step(asked(turns(2))))
    await asyncio.sleep(0)
    assert world.sent[1:] == ["POST /cachedContents"]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert world.transport.cancelled == 1
    await world.steps(2)
    assert world.sent[2:] == ["POST /cachedContents", "ask cachedContents/one 1"]


@pytest.mark.rules("A4.11")
async def test_trailing_words_are_never_kept() -> None:
    world = World(HELLO, made(), HELLO, HELLO)
    for number, count in enumerate((1, 2, 3)):
        await world.step(asked(turns(count), trailing=f"<note {number}>"))
    assert b"<note" not in (world.transport.calls[1].body or b"")
    assert world.body(3)["contents"][-1]["parts"][-1] == {"text": "<note 2>"}


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({}, True),
        ({"cache": False}, False),
        ({"base_url": "https://gateway.example.test/v1beta"}, False),
        ({"base_url": "https://gateway.example.test/v1beta", "cache": True}, True),
        ({"base_url": "https://aiplatform.googleapis.com/v1"}, False),
    ],
)
async def test_it_is_on_where_it_is_known_to_be_offered(options: _Json, kept: bool) -> None:
    world = World(HELLO, *([made()] if kept else []), HELLO, **options)
    await world.steps(1, 2)
    assert any(call.url.endswith("/cachedContents") for call in world.transport.calls) is kept


async def test_at_vertex_names_hold_project_and_location() -> None:
    url = "https://europe-west4-aiplatform.googleapis.com/v1/projects/p/locations/europe-west4"
    name = "projects/1/locations/europe-west4/cachedContents/77"
    world = World(HELLO, made(name), HELLO, b"{}", base_url=url, api_key="ya29.t", cache=True)
    await world.steps(1, 2)
    await world.provider.aclose()
    calls = world.transport.calls
    assert calls[1].url == f"{url}/cachedContents"
    assert world.body(1)["model"] == (
        "projects/p/locations/europe-west4/publishers/google/models/gemini-3.8-flash"
    )
    assert world.body(2)["cachedContent"] == name
    assert (calls[3].method, calls[3].url) == ("DELETE", f"{url}/cachedContents/77")
