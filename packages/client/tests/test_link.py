"""The reconnect machine, arrow by arrow, from the cases that the web app reads too."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_client.link import (
    Close,
    Connect,
    Cut,
    Deliver,
    Drop,
    GapSeen,
    Heard,
    HelloSeen,
    LinkEffect,
    LinkInput,
    LinkState,
    Loaded,
    LoadView,
    Lost,
    Misfit,
    Refused,
    ResetSeen,
    RetrySeen,
    Start,
    Stop,
    StoredSeen,
    Tick,
    step,
)

_CASES = Path(__file__).parents[2] / "protocol" / "vectors" / "link"


class _Moment(msgspec.Struct, frozen=True):
    input: LinkInput
    state: dict[str, Any]
    effects: list[LinkEffect] = []


class _Case(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: str
    rules: list[str]
    steps: list[_Moment]
    state: dict[str, Any] = {}


def _read_cases() -> list[Any]:
    params: list[Any] = []
    for path in sorted(_CASES.glob("*.json")):
        for case in msgspec.json.decode(path.read_bytes(), type=list[_Case]):
            marks = pytest.mark.rules(*case.rules)
            params.append(pytest.param(case, id=f"{path.stem}: {case.name}", marks=marks))
    return params


def _patched(state: dict[str, Any], patch: dict[str, Any]) -> dict[str, Any]:
    merged = {**state, **patch}
    return {name: value for name, value in merged.items() if value is not None}


@pytest.mark.parametrize("case", _read_cases())
def test_the_link_goes_where_the_case_says(case: _Case) -> None:
    expected = case.state
    state = msgspec.convert(expected, LinkState)
    for moment in case.steps:
        state, effects = step(state, moment.input)
        expected = _patched(expected, moment.state)
        assert state == msgspec.convert(expected, LinkState), moment.input
        assert list(effects) == moment.effects, moment.input


def test_the_cases_name_only_fields_that_a_state_has() -> None:
    fields = set(LinkState.__struct_fields__)
    for param in _read_cases():
        case: _Case = param.values[0]
        named = {*case.state, *(name for moment in case.steps for name in moment.state)}
        assert named <= fields, case.name


_ATTEMPTS = st.integers(0, 6)
_SEQS = st.integers(0, 9)
_INPUTS: st.SearchStrategy[LinkInput] = st.one_of(
    st.builds(Start, turn_running=st.booleans()),
    st.just(Stop()),
    st.just(Tick()),
    st.builds(Heard, attempt=_ATTEMPTS),
    st.builds(HelloSeen, attempt=_ATTEMPTS, log=st.sampled_from(["a", "b"])),
    st.builds(StoredSeen, attempt=_ATTEMPTS, seq=_SEQS, ends=st.booleans()),
    st.builds(GapSeen, attempt=_ATTEMPTS),
    st.builds(Lost, attempt=_ATTEMPTS),
    st.builds(RetrySeen, attempt=_ATTEMPTS, retry_ms=st.integers(0, 10**9)),
    st.builds(ResetSeen, attempt=_ATTEMPTS, retry_ms=st.integers(0, 10**9)),
    st.builds(Loaded, attempt=_ATTEMPTS, log=st.sampled_from(["a", "b"]), seq=_SEQS),
    st.builds(Cut, attempt=_ATTEMPTS),
    st.builds(
        Refused,
        attempt=_ATTEMPTS,
        status=st.sampled_from([400, 401, 403, 404, 410, 429, 500, 503]),
        contract=st.booleans(),
    ),
    st.builds(Misfit, attempt=_ATTEMPTS, reason=st.just("missing_header")),
    st.just(Close()),
)


@pytest.mark.rules("C4.2", "C4.8")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_INPUTS, st.integers(0, 70_000), st.floats(0, 0.99)), max_size=40))
def test_whatever_happens_one_request_at_most_is_under_way_and_no_number_is_delivered_twice(
    story: list[tuple[LinkInput, int, float]],
) -> None:
    state = LinkState()
    now_ms = 0
    under_way: set[int] = set()
    delivered: list[int] = []
    for happened, passed_ms, random in story:
        now_ms += passed_ms
        before = state
        happened = msgspec.structs.replace(happened, now_ms=now_ms, random=random)
        state, effects = step(before, happened)
        if isinstance(happened, Cut | Refused | Misfit | Loaded):
            under_way.discard(happened.attempt)
        for effect in effects:
            match effect:
                case Drop(attempt=attempt):
                    under_way.remove(attempt)
                case Connect(attempt=attempt) | LoadView(attempt=attempt):
                    under_way.add(attempt)
                case Deliver():
                    assert state.seq is not None
                    assert state.seq == (before.seq or 0) + 1
                    delivered.append(state.seq)
                case _:
                    pass
        if isinstance(happened, Loaded) and state.seq != before.seq:
            delivered.clear()  # a view may stand anywhere: the projection starts again from it
        assert len(under_way) <= 1
        assert (state.doing in ("view", "stream")) == bool(under_way)
        assert state.wake_ms is not None or state.phase in ("idle", "failed", "closed")
        assert delivered == sorted(set(delivered))
