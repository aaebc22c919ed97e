"""Refusals as answers, one after the other."""

from collections.abc import Iterator

import msgspec
import pytest

import towline_server.errors
from towline_protocol import FAULT_CODES, Fault, Problem, TowlineError, decode_answer
from towline_server.api.problem import problem
from towline_server.errors import StoreError


def _refusals(kind: type[TowlineError] = TowlineError) -> Iterator[type[TowlineError]]:
    for below in kind.__subclasses__():
        yield below
        yield from _refusals(below)


OURS = sorted(
    {kind for kind in _refusals() if kind.__module__ == towline_server.errors.__name__},
    key=lambda kind: kind.__name__,
)


@pytest.mark.rules("C2.2", "C2.3")
@pytest.mark.parametrize("kind", [kind for kind in OURS if "code" in vars(kind)])
def test_each_refusal_is_a_problem_with_all_that_the_contract_names(
    kind: type[TowlineError],
) -> None:
    error = kind("It is so; do this.", reason="why", details={"etag": "1"})
    reply = problem(error.fault(), "req_1")
    told = decode_answer(bytes(reply.body), Problem)
    row = FAULT_CODES[kind.code]
    assert reply.media_type == "application/problem+json"
    assert (reply.status_code, told.status, told.retry) == (row.status, row.status, row.retry)
    assert (told.code, told.detail, told.reason) == (kind.code, "It is so; do this.", "why")
    assert (told.request_id, told.details) == ("req_1", {"etag": "1"})


@pytest.mark.rules("C2.2")
@pytest.mark.parametrize("kind", [kind for kind in OURS if "code" in vars(kind)])
def test_a_refusal_says_whose_limit_it_was(kind: type[TowlineError]) -> None:
    scope = kind("It is so; do this.").fault().scope
    if issubclass(kind, StoreError):
        assert scope == "store"
    else:
        assert scope == ("limit" if FAULT_CODES[kind.code].status == 429 else None)


@pytest.mark.rules("C2.4")
@pytest.mark.parametrize("code", sorted(FAULT_CODES))
@pytest.mark.parametrize(
    ("asked_s", "told_s"), [(None, "1"), (0.0, "1"), (0.2, "1"), (1.5, "2"), (5, "5")]
)
def test_when_to_come_back_is_told_in_whole_seconds_wherever_it_helps(
    code: str, asked_s: float | None, told_s: str
) -> None:
    reply = problem(Fault(code=code, message="No.", retry_after_s=asked_s), "req_1")
    expected = told_s if reply.status_code in (429, 503) else None
    assert reply.headers.get("retry-after") == expected


def test_a_code_that_stands_in_events_alone_is_a_fault_of_ours() -> None:
    reply = problem(Fault(code="provider_rate_limit", message="Later."), "req_1")
    assert reply.status_code == 500
    assert msgspec.json.decode(reply.body)["code"] == "internal_error"
