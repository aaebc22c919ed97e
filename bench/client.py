"""CPU for each delta: decode and fold into the view, against bare msgspec decoding of the bytes."""

import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator

import msgspec

from towline_protocol import (
    Broken,
    Envelope,
    Event,
    MessageEnded,
    MessageId,
    MessageStarted,
    SessionId,
    SessionView,
    SseDecoder,
    Text,
    TextDelta,
    TurnId,
    block_text,
    decode_frame,
    empty_view,
    encode,
    encode_event,
    mint_id,
    reduce,
    reduce_all,
)

DELTAS = 50_000
ROUNDS = 9
GOAL = 4.0
PIECE = "word "
CHUNK_BYTES = 64 * 1024
"""What the server joins before it sends (C3.8)."""

_bare = msgspec.json.Decoder(Envelope)


def write_log(messages: int) -> list[bytes]:
    """The wire data of so many messages, one after the other, that share the deltas."""
    session = SessionId(mint_id("ses", 0, bytes(16)))
    turn = TurnId(mint_id("trn", 0, bytes(16)))
    data: list[bytes] = []
    seq = 0

    def say(event: Event, *, stored: bool) -> None:
        nonlocal seq
        seq += stored
        envelope = Envelope(
            seq=seq if stored else None,
            session=session,
            turn=turn,
            time="2026-01-31T09:00:00.000Z",
            event=event,
        )
        data.append(encode(envelope))

    pieces = DELTAS // messages
    for number in range(messages):
        message = MessageId(mint_id("msg", number, bytes(16)))
        say(MessageStarted(message=message, role="assistant"), stored=True)
        for place in range(pieces):
            at = place * len(PIECE)
            say(TextDelta(message=message, block=0, at=at, text=PIECE), stored=False)
        say(MessageEnded(message=message, content=(Text(text=PIECE * pieces),)), stored=True)
    return data


def in_chunks(data: list[bytes]) -> Iterator[list[bytes]]:
    """The frames as a reader gets them that has fallen behind: so many bytes at a time."""
    chunk: list[bytes] = []
    size = 0
    for frame in data:
        chunk.append(frame)
        size += len(frame)
        if size >= CHUNK_BYTES:
            yield chunk
            chunk, size = [], 0
    yield chunk


def decode_bare(data: list[bytes]) -> None:
    for frame in data:
        _bare.decode(frame)


def fold_chunks(chunks: Iterable[list[bytes]]) -> SessionView:
    view = empty_view()
    for chunk in chunks:
        found = [decode_frame("", data) for data in chunk]
        view = reduce_all(view, [frame for frame in found if not isinstance(frame, Broken)])
    return view


def fold_singly(data: list[bytes]) -> SessionView:
    view = empty_view()
    for frame in data:
        found = decode_frame("", frame)
        if not isinstance(found, Broken):
            view = reduce(view, found)
    return view


def fold_stream(chunks: Iterable[bytes]) -> SessionView:
    decoder = SseDecoder()
    view = empty_view()
    for chunk in chunks:
        found = [decode_frame(sse.event, sse.data) for sse in decoder.feed(chunk)]
        view = reduce_all(view, [frame for frame in found if not isinstance(frame, Broken)])
    return view


def cpu_s(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def measure(messages: int) -> bool:
    """Print the figures of one log; says whether the goal is reached."""
    data = write_log(messages)
    chunks = list(in_chunks(data))
    stream = [b"".join([encode_event(frame) for frame in chunk]) for chunk in chunks]
    ways: dict[str, Callable[[], SessionView]] = {
        "in chunks of 64 KiB": lambda: fold_chunks(chunks),
        "the same, out of SSE": lambda: fold_stream(stream),
        "one by one": lambda: fold_singly(data),
    }
    for way in ways.values():
        view = way()
        assert not view.lost
        assert view.seq == 2 * messages
        assert len(block_text(view.messages[-1].content)) == DELTAS // messages * len(PIECE)
    floor: list[float] = []
    ours: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(ROUNDS):
        floor.append(cpu_s(lambda: decode_bare(data)))
        for name, way in ways.items():
            ours[name].append(cpu_s(way))
    floor_us = statistics.median(floor) / DELTAS * 1e6
    print(f"\n{DELTAS:,} deltas in {messages} message{'s' if messages > 1 else ''}")
    print(f"  bare msgspec decoding  {floor_us:6.2f} µs CPU a delta")
    reached = True
    for name, figures in ours.items():
        ratio = statistics.median(a / b for a, b in zip(figures, floor, strict=True))
        us = statistics.median(figures) / DELTAS * 1e6
        verdict = "" if ratio <= GOAL else f"   above the goal of {GOAL:g}"
        print(f"  {name:<22} {us:6.2f} µs CPU a delta, ratio {ratio:5.2f}{verdict}")
        reached = reached and (ratio <= GOAL or name != "in chunks of 64 KiB")
    return reached


def main() -> int:
    reached = [measure(messages) for messages in (1, 500)]
    return 0 if all(reached) else 1


if __name__ == "__main__":
    sys.exit(main())
