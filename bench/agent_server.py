"""A model's server for `agent.py`: Chat Completions out of bytes that are made once, kept alive.

A process of its own. The model's name picks the script, so that one server serves every case:

- `answer-N`: an answer of N chunks in one burst.
- `paced-N`: the same, one chunk a millisecond.
- `loop-N`: N rounds of three calls with arguments in four fragments each, then a short answer. The
  round is read off the results that the request brings.

Each event is an HTTP chunk of its own, as servers of models send them.
"""

import asyncio
import json
import re
import sys
import time
from functools import cache
from typing import Final

import msgspec

CALLS: Final = (
    ("weather", "city", "Lisbon", "days"),
    ("search", "query", "ferry timetable", "limit"),
    ("read_page", "path", "docs/ferries.md", "line"),
)
"""Tools, and their parameters: a word, and a number that is another one in each round."""
FRAGMENTS: Final = 4
SHORT: Final = 10
"""Chunks of the answer after the last round."""
PACE_S: Final = 0.001

HEAD: Final = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
)
USAGE: Final = {"prompt_tokens": 900, "completion_tokens": 60, "total_tokens": 960}
_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class Sent(msgspec.Struct):
    """What counts of a message that was sent."""

    role: str


class Asked(msgspec.Struct):
    """What counts of a request."""

    model: str
    messages: list[Sent]


def _event(text: str) -> bytes:
    data = f"data: {text}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(data), data)


def _chunk(choices: list[dict[str, object]], **more: object) -> bytes:
    head = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return _event(json.dumps({**head, "choices": choices, **more}, separators=(",", ":")))


def _delta(delta: dict[str, object], finish: str | None = None) -> bytes:
    return _chunk([{"index": 0, "delta": delta, "finish_reason": finish}])


def _tail(finish: str) -> bytes:
    return _delta({}, finish) + _chunk([], usage=USAGE) + _event("[DONE]") + b"0\r\n\r\n"


@cache
def _words(count: int) -> tuple[bytes, ...]:
    first = _delta({"role": "assistant", "content": "word "})
    return HEAD + first, *[_delta({"content": "word "})] * (count - 1), _tail("stop")


@cache
def _answer(count: int) -> bytes:
    return b"".join(_words(count))


@cache
def _calls(round_: int) -> bytes:
    parts = [HEAD, _delta({"role": "assistant", "content": None})]
    for index, (name, word, value, number) in enumerate(CALLS):
        text = json.dumps({word: value, number: round_ + 1})
        size = -(-len(text) // FRAGMENTS)
        id_ = f"call_{round_:04}_{index}_u7Kq2xW9"
        opened = {"name": name, "arguments": ""}
        start = {"index": index, "id": id_, "type": "function", "function": opened}
        parts.append(_delta({"tool_calls": [start]}))
        for at in range(0, len(text), size):
            piece = {"index": index, "function": {"arguments": text[at : at + size]}}
            parts.append(_delta({"tool_calls": [piece]}))
    return b"".join((*parts, _tail("tool_calls")))


def _round(messages: list[Sent]) -> int:
    """The rounds that have gone by since a person spoke."""
    results = 0
    for message in reversed(messages):
        if message.role == "user":
            break
        results += message.role == "tool"
    return results // len(CALLS)


class Connection(asyncio.Protocol):
    """One connection, kept alive."""

    def __init__(self) -> None:
        self._got = b""
        self._asked = msgspec.json.Decoder(Asked)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        self._got += data
        head = self._got.find(b"\r\n\r\n")
        length = _LENGTH.search(self._got, 0, head + 2) if head >= 0 else None
        if length is None:
            return
        end = head + 4 + int(length[1])
        if len(self._got) >= end:
            body, self._got = self._got[head + 4 : end], self._got[end:]
            self._reply(self._asked.decode(body))

    def _reply(self, asked: Asked) -> None:
        script, _, number = asked.model.partition("-")
        if script == "answer":
            self._transport.write(_answer(int(number)))
        elif script == "paced":
            self._pace(_words(int(number)))
        else:
            round_ = _round(asked.messages)
            more = round_ < int(number)
            self._transport.write(_calls(round_) if more else _answer(SHORT))

    def _pace(self, words: tuple[bytes, ...]) -> None:
        """Blocks the loop, whose own timers are too coarse; nobody else asks meanwhile."""
        at = time.perf_counter()
        for word in words:
            self._transport.write(word)
            at += PACE_S
            time.sleep(max(0.0, at - time.perf_counter()))


async def serve() -> None:
    """Serve until standard input ends: however the one who started it goes, it goes too."""
    loop = asyncio.get_running_loop()
    async with await loop.create_server(Connection, "127.0.0.1", 0) as server:
        print(server.sockets[0].getsockname()[1], flush=True)
        await loop.run_in_executor(None, sys.stdin.buffer.read)


if __name__ == "__main__":
    asyncio.run(serve())
