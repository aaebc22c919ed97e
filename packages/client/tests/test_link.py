"""The reconnect machine, arrow by arrow, from the cases that the web app reads too."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from towline_client.link import (
    Adopt,
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
    RetryNow,
    RetrySeen,
    Start,
    Stop,
    StoredSeen,
    Tick,
    step,
)

_CASES = Path(__file__).parents[2] / "protocol" / "vectors" / "link"


_Effects = tuple[LinkEffect, ...]


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


_AGO = st.integers(0, 1)
_SEQS = st.integers(0, 9)
_LOGS = st.sampled_from(["a", "b"])
_INPUTS: st.SearchStrategy[LinkInput] = st.one_of(
    st.builds(Start, turn_running=st.booleans()),
    st.just(Stop()),
    st.just(RetryNow()),
    st.just(Tick()),
    st.builds(Heard, attempt=_AGO),
    st.builds(HelloSeen, attempt=_AGO, log=_LOGS),
    st.builds(StoredSeen, attempt=_AGO, seq=_SEQS, ends=st.booleans()),
    st.builds(GapSeen, attempt=_AGO),
    st.builds(Lost, attempt=_AGO),
    st.builds(RetrySeen, attempt=_AGO, retry_ms=st.integers(0, 10**9)),
    st.builds(ResetSeen, attempt=_AGO, retry_ms=st.integers(0, 10**9)),
    st.builds(Loaded, attempt=_AGO, log=_LOGS, seq=_SEQS, ends=st.booleans()),
    st.builds(Cut, attempt=_AGO),
    st.builds(
        Refused,
        attempt=_AGO,
        status=st.sampled_from([400, 401, 403, 404, 410, 429, 500, 503]),
        contract=st.booleans(),
        retry_after_ms=st.integers(0, 10**6),
    ),
    st.builds(Misfit, attempt=_AGO, reason=st.sampled_from(["not_json", "version_mismatch"])),
    st.just(Close()),
)
_AT_REST = ("idle", "failed", "closed")


def _placed(happened: LinkInput, state: LinkState, now_ms: int, random: float) -> LinkInput:
    """The input with its moment; its attempt, given as how long ago, becomes a number."""
    happened = msgspec.structs.replace(happened, now_ms=now_ms, random=random)
    ago = getattr(happened, "attempt", None)
    if ago is None:
        return happened
    return msgspec.structs.replace(happened, attempt=state.attempt - ago)


def _follow(under_way: set[int], before: LinkState, given: LinkInput, effects: _Effects) -> None:
    """Keep count of the requests that are under way."""
    match given:
        case Cut() | Refused() | Misfit():
            under_way.discard(given.attempt)
        case Loaded() if before.doing == "view":
            under_way.discard(given.attempt)
        case _:
            pass
    for effect in effects:
        if isinstance(effect, Drop):
            under_way.remove(effect.attempt)
        elif isinstance(effect, Connect | LoadView):
            under_way.add(effect.attempt)


@pytest.mark.rules("C4.2", "C4.6", "C4.7", "C4.8")
@settings(max_examples=300, deadline=None)
@given(st.lists(st.tuples(_INPUTS, st.integers(0, 70_000), st.floats(0, 0.99)), max_size=40))
def test_whatever_happens_one_request_at_most_is_under_way_and_the_cursor_goes_on(
    story: list[tuple[LinkInput, int, float]],
) -> None:
    state = LinkState()
    now_ms = 0
    under_way: set[int] = set()
    for happened, passed_ms, random in story:
        now_ms += passed_ms
        before, happened = state, _placed(happened, state, now_ms, random)
        state, effects = step(before, happened)
        _follow(under_way, before, happened, effects)
        assert len(under_way) == (state.doing in ("view", "stream"))
        assert (state.wake_ms is None) == (state.phase in _AT_REST)
        assert (state.doing == "nothing") == (state.phase in _AT_REST)
        if before.phase in ("failed", "closed") and not isinstance(happened, Start):
            assert not effects, "what has ended is silent"
        if before.phase == "closed":
            assert state is before, "for good"
        if Deliver() in effects:
            assert state.seq == (before.seq or 0) + 1, "each number once, and none is left out"
        elif Adopt() not in effects:
            assert state.seq == before.seq, "the cursor moves with an event or a view alone"
