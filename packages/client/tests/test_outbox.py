"""A command's way to the server, from the cases that the web app reads too."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_client.outbox import (
    LIFE_MS,
    Entry,
    TryOutcome,
    after_try,
    fault_of,
    send,
    settle,
    tick,
)
from towline_protocol import Fault

_CASES = Path(__file__).parents[2] / "protocol" / "vectors" / "outbox"


class _Send(msgspec.Struct, frozen=True, tag="send", forbid_unknown_fields=True):
    now_ms: int = 0


class _Try(msgspec.Struct, frozen=True, tag="try", forbid_unknown_fields=True):
    attempt: int
    outcome: TryOutcome
    now_ms: int = 0


class _Tick(msgspec.Struct, frozen=True, tag="tick", forbid_unknown_fields=True):
    now_ms: int = 0


class _Settle(msgspec.Struct, frozen=True, tag="settle", forbid_unknown_fields=True):
    queued: list[str] = []
    delivered: list[str] = []


_Deed = _Send | _Try | _Tick | _Settle


class _Moment(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    do: _Deed
    entry: dict[str, Any]


class _Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    rules: list[str]
    steps: list[_Moment]
    entry: dict[str, Any] = {}
    fault: Fault | None = None


def _read_cases() -> list[Any]:
    params: list[Any] = []
    for path in sorted(_CASES.glob("*.json")):
        for case in msgspec.json.decode(path.read_bytes(), type=list[_Case]):
            marks = pytest.mark.rules(*case.rules)
            params.append(pytest.param(case, id=f"{path.stem}: {case.name}", marks=marks))
    return params


def _do(entry: Entry, deed: _Deed) -> Entry:
    match deed:
        case _Send():
            return send(entry, deed.now_ms)
        case _Try():
            return after_try(entry, deed.attempt, deed.outcome, deed.now_ms)
        case _Tick():
            return tick(entry, deed.now_ms)
        case _Settle():
            return settle((entry,), deed.queued, deed.delivered)[0]


def _patched(entry: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = {**entry, **patch}
    return {name: value for name, value in merged.items() if value is not None}


@pytest.mark.parametrize("case", _read_cases())
def test_a_command_goes_where_the_case_says(case: _Case) -> None:
    expected = {"key": "k", **case.entry}
    entry = msgspec.convert(expected, Entry)
    for moment in case.steps:
        entry = _do(entry, moment.do)
        expected = _patched(expected, moment.entry)
        assert entry == msgspec.convert(expected, Entry), moment.do
    assert fault_of(entry) == case.fault


def test_the_cases_name_only_fields_that_an_entry_has() -> None:
    fields = set(Entry.__struct_fields__)
    for param in _read_cases():
        case: _Case = param.values[0]
        named = {*case.entry, *(name for moment in case.steps for name in moment.entry)}
        assert named <= fields, case.name


_OUTCOMES = st.builds(
    TryOutcome,
    kind=st.sampled_from(["accepted", "refused", "again"]),
    code=st.sampled_from([None, "draining"]),
    message=st.sampled_from(["", "why"]),
    after_ms=st.integers(0, 200_000),
)
_KEYS = st.lists(st.sampled_from(["k", "other"]), max_size=2)
_DEEDS: st.SearchStrategy[_Deed] = st.one_of(
    st.just(_Send()),
    st.just(_Tick()),
    st.builds(_Try, st.integers(0, 9), _OUTCOMES),
    st.builds(_Settle, _KEYS, _KEYS),
)


@pytest.mark.rules("C4.9")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_DEEDS, st.integers(0, 70_000)), max_size=40))
def test_whatever_happens_a_command_is_sent_within_its_life_alone_and_its_state_is_honest(
    story: list[tuple[_Deed, int]],
) -> None:
    entry = Entry(key="k")
    now_ms = 0
    for deed, passed_ms in story:
        now_ms += passed_ms
        before = entry
        if not isinstance(deed, _Settle):
            deed = msgspec.structs.replace(deed, now_ms=now_ms)
        entry = _do(before, deed)
        if entry.attempt != before.attempt:
            assert entry.attempt == before.attempt + 1
            assert before.doing != "try", "one try at a time"
            assert isinstance(deed, _Send) or now_ms < entry.begun_ms + LIFE_MS
        assert (entry.wake_ms is not None) == (entry.doing != "nothing")
        assert entry.wake_ms is None or entry.wake_ms <= entry.begun_ms + LIFE_MS
        assert entry.doing == "nothing" or entry.state in ("sending", "queued", "delivered")
        assert (fault_of(entry) is not None) == (entry.state in ("refused", "unknown"))
        if before.state == "delivered":
            assert entry.state == "delivered"
        if before.state == "accepted":
            assert entry.state in ("accepted", "queued", "delivered")
