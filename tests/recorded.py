"""Recorded traffic of providers, and what the tests of every dialect ask of it.

What is the same for all dialects is asserted here, so that a dialect's own file holds what only it
can know: how its blocks are told, and a plain reading of its bytes to hold the decoder against.
"""

import csv
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from towline_agent.providers.base import Piece, StepAnswer, StepFailed, StepResult
from towline_agent.providers.endpoint import Decoder
from towline_agent.providers.errors import Peer, answer_error
from towline_protocol import Block, CallId, SseDecoder, Text, Thinking, ToolCall

__all__ = [
    "LOCAL",
    "PEER",
    "RECORDINGS",
    "Json",
    "Recordings",
    "is_stream",
    "load_cases",
    "load_local",
    "load_loops",
    "load_requests",
    "name_calls",
    "read_body",
    "show_table",
    "tell_block",
]

_ROOT: Final = Path(__file__).parents[1]
RECORDINGS: Final = _ROOT / "packages/agent/tests/recordings"
LOCAL: Final = _ROOT / "packages/app/tests/local/recordings"
"""What llama.cpp's server says."""
PEER: Final = Peer(provider="p", model="m", url="https://example.test/v1")

Json = dict[str, Any]
Show = Callable[[str], None]
Make = Callable[[Json, Callable[[Piece], None]], Decoder]


class Local(NamedTuple):
    """What the embedded server was asked and what it said."""

    name: str
    request: Json
    status: int
    headers: dict[str, str]
    body: bytes


def load_cases(api: str | None = None) -> list[Json]:
    """The recordings of one API, or all, in the order of the index; each knows its `folder`."""
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if api in (None, row["api"])]
    return [
        json.loads((RECORDINGS / row["provider"] / f"{row['id']}.json").read_text())
        | {"folder": RECORDINGS / row["provider"]}
        for row in rows
    ]


def load_requests(api: str) -> list[Json]:
    """Those whose request was recorded as well."""
    return [case for case in load_cases(api) if isinstance(case["request"].get("body"), dict)]


def load_loops(cases: Sequence[Json]) -> list[dict[int, Json]]:
    """The turns of each tool loop by their number, from 1."""
    loops: dict[str, dict[int, Json]] = {}
    for case in cases:
        sequence: Json = case.get("sequence") or {}
        if sequence:
            loops.setdefault(sequence["group"], {})[sequence["step"]] = case
    return list(loops.values())


def load_local(path: str | None = None) -> dict[str, Local]:
    """What was asked of the embedded server, or of one path of it, by name."""
    found: dict[str, Local] = {}
    for file in sorted(LOCAL.glob("*.meta.json")):
        name, meta = file.name.removesuffix(".meta.json"), json.loads(file.read_text())
        if path in (None, meta["request"]["path"].split("?")[0]):
            response = meta["response"]
            headers = {str(pair[0]).lower(): str(pair[1]) for pair in response["headers"]}
            body = (LOCAL / response["body_file"]).read_bytes()
            found[name] = Local(name, meta["request"], response["status"], headers, body)
    return found


def read_body(case: Json) -> bytes:
    """The answer as it came."""
    response = case["response"]
    if "body_file" in response:
        return (case["folder"] / response["body_file"]).read_bytes()
    if "body_text" in response:
        return response["body_text"].encode()
    return json.dumps(response.get("body", {})).encode()


def is_stream(case: Json) -> bool:
    """Whether the answer came as events."""
    return case["response"].get("body_file", "").endswith(".sse")


def name_calls(content: Sequence[Block]) -> tuple[Block, ...]:
    """The blocks of an answer, their calls under ids of ours, as the loop keeps them."""
    return tuple(
        msgspec.structs.replace(block, id=CallId(f"call_{place}"))
        if isinstance(block, ToolCall)
        else block
        for place, block in enumerate(content)
    )


def tell_block(block: Block) -> list[Any]:
    """A block as plain JSON."""
    match block:
        case Text():
            return ["text", block.text]
        case Thinking():
            return ["thinking", block.text]
        case ToolCall():
            return ["call", block.name, block.arguments, block.wire_id]
        case _:
            return [type(block).__name__]


def show_table(show: Show, title: str, rows: dict[str, list[int]]) -> list[int]:
    """Print how many of how many were right; returns the sums."""
    total = [sum(column) for column in zip(*rows.values(), strict=True)]
    lines = [f"{name:24}  {row[0]:5}  {row[1]:5}" for name, row in [*rows.items(), ("all", total)]]
    show("\n  ".join([f"{title:24}  cases  right", *lines]))
    return total


class Recordings:
    """The recorded answers of one API, read by one dialect's decoder.

    Args:
        api: Its name in the index.
        make: Makes a decoder for a recording.
        tell: A block as plain JSON.
        more: What else of an answer is told.
    """

    def __init__(
        self,
        api: str,
        make: Make,
        *,
        tell: Callable[[Block], list[Any]] = tell_block,
        more: Callable[[StepAnswer], Json] = lambda _: {},
    ) -> None:
        self.cases = load_cases(api)
        self.streams = [case for case in self.cases if is_stream(case)]
        self._make = make
        self._tell = tell
        self._more = more
        self._read: dict[str, tuple[StepResult, list[Piece]]] = {}

    def decode(
        self, body: bytes, *, stream: bool, split: int | None = None, case: Json | None = None
    ) -> tuple[StepResult, list[Piece]]:
        """What comes of a body that arrives whole, or in cuts of `split` bytes."""
        pieces: list[Piece] = []
        decoder = self._make(case or {"provider": "p"}, pieces.append)
        if not stream:
            decoder.read(body)
            return decoder.finish(), pieces
        events, step = SseDecoder(), split or len(body) or 1
        cuts = [body[at : at + step] for at in range(0, len(body), step)]
        for chunk in [*cuts, b"\n\n"]:
            for event in events.feed(chunk):
                decoder.feed(event)
        return decoder.finish(), pieces

    def result(self, case: Json) -> tuple[StepResult, list[Piece]]:
        """What comes of a recording."""
        if case["id"] not in self._read:
            self._read[case["id"]] = self._result(case)
        return self._read[case["id"]]

    def _result(self, case: Json, split: int | None = None) -> tuple[StepResult, list[Piece]]:
        response, body = case["response"], read_body(case)
        if response["status"] == 200:
            return self.decode(body, stream=is_stream(case), split=split, case=case)
        error = answer_error(
            PEER, status=response["status"], headers=response["headers"], body=body, now_ms=0
        )
        return StepFailed(error=error), []

    def answered(self) -> list[tuple[Json, StepAnswer, list[Piece]]]:
        """Those that did not fail."""
        read = [(case, *self.result(case)) for case in self.cases]
        return [(case, found, told) for case, found, told in read if isinstance(found, StepAnswer)]

    def tell(self, result: StepResult) -> Json:
        """A result as plain JSON."""
        usage = result.usage
        counted = [usage.input, usage.output, usage.cache_read, usage.cache_write, usage.reasoning]
        told: Json = {"blocks": list(map(self._tell, result.content)), "usage": counted}
        if isinstance(result, StepFailed):
            error = result.error
            failed = [type(error).__name__, error.reason, error.status, error.retry_after_s]
            return {"error": failed, **told}
        stop = [result.stop_reason, result.raw_stop_reason]
        return {"stop": stop, **told, "notices": list(result.notices), **self._more(result)}

    def check_outcomes(self, expected: Path, title: str, show: Show) -> int:
        """Each gives what a person read in it; prints the table by vendor, returns their number."""
        wanted: Json = json.loads(expected.read_text())
        table: dict[str, list[int]] = {}
        wrong: list[str] = []
        for case in sorted(self.cases, key=lambda case: case["provider"]):
            row = table.setdefault(case["provider"], [0, 0])
            got = json.loads(json.dumps(self.tell(self.result(case)[0])))
            is_right = got == wanted.get(case["id"])
            row[0] += 1
            row[1] += is_right
            if not is_right:
                wrong.append(f"{case['id']}: {got}")
        cases, right = show_table(show, title, table)
        assert wrong == []
        assert right == cases
        return cases

    def check_pieces(self) -> None:
        """The pieces of a block, put together, are the block."""
        answered = self.answered()
        assert len(answered) > 20
        for case, result, pieces in answered:
            told = [""] * len(result.content)
            for piece in pieces:
                assert piece.text, case["id"]
                told[piece.block] += piece.text
            for place, block in enumerate(result.content):
                if isinstance(block, ToolCall):
                    unsaid = ("",) if block.arguments == "{}" else ()
                    assert told[place] in (block.arguments, *unsaid), case["id"]
                elif isinstance(block, Text | Thinking):
                    assert told[place] == block.text, case["id"]
                else:
                    assert told[place] == "", case["id"]

    def check_cuts(self, split: int, *, short: int) -> None:
        """Streams read the same in cuts of so many bytes; small cuts are tried on short ones."""
        few = [case for case in self.streams if len(read_body(case)) < short]
        assert len(few) > 10
        for case in few if split < 8 else self.streams:
            (cut, told), (whole, all_told) = self._result(case, split), self.result(case)
            assert (self.tell(cut), told) == (self.tell(whole), all_told), case["id"]
