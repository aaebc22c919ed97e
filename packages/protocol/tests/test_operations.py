"""The contract table and the fault codes."""

import re

import msgspec
import pytest

import towline_protocol
from towline_protocol import (
    AREAS,
    CONTRACT_HEADER,
    CONTRACT_VERSION,
    FAULT_CODES,
    OPERATIONS,
    Operation,
    ProtocolError,
    TowlineError,
    UsageError,
    VersionMismatch,
    fault_codes,
)

ROWS = list(OPERATIONS.values())


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_is_well_formed(row: Operation) -> None:
    assert re.fullmatch("[a-z_]+", row.name)
    assert row.method in {"GET", "POST", "PUT", "PATCH", "DELETE"}
    assert row.summary.endswith(".")
    assert row.path.startswith("/")
    assert len(set(row.faults)) == len(row.faults)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_a_row_names_known_faults_only(row: Operation) -> None:
    assert set(row.faults) <= FAULT_CODES.keys()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_goes_in_and_out_is_public(row: Operation) -> None:
    for body in (row.request, row.answer):
        if body is not None:
            assert getattr(towline_protocol, body.__name__) is body
            assert issubclass(body, msgspec.Struct)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_the_method_fits_what_goes_in_and_out(row: Operation) -> None:
    if row.method == "GET":
        assert row.request is None
        assert not row.idempotent
        assert row.stream or row.answer is not None or row.media is not None
    if row.status == 204:
        assert row.answer is None


def test_each_path_and_method_stands_once() -> None:
    shapes = [(row.method, re.sub(r"\{\w+\}", "{}", row.path)) for row in ROWS]
    assert len(set(shapes)) == len(shapes)


def test_a_row_stands_under_its_name() -> None:
    assert all(name == row.name for name, row in OPERATIONS.items())


def test_all_but_what_supervisors_and_readers_look_for_elsewhere_stand_under_api() -> None:
    outside = {row.name: row.path for row in ROWS if not row.path.startswith("/api/")}
    assert outside == {
        "health": "/healthz",
        "ready": "/readyz",
        "openapi": "/openapi.json",
        "docs": "/docs",
    }
    assert all(OPERATIONS[name].open for name in outside)
    assert (CONTRACT_HEADER, CONTRACT_VERSION) == ("towline-contract", "1")


def test_keys_are_for_what_changes_a_session_and_never_for_sign_in_or_streams() -> None:
    marked = {row.name for row in ROWS if row.idempotent}
    assert {"create_session", "send_prompt", "answer_permission"} <= marked
    assert not any(row.path.startswith("/api/auth") or row.stream for row in ROWS if row.idempotent)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name)
def test_what_a_row_may_answer_holds_its_own_faults_and_those_of_its_kind(row: Operation) -> None:
    codes = fault_codes(row)
    assert set(row.faults) < set(codes)
    assert len(set(codes)) == len(codes)
    assert ("unauthorized" in codes) == (not row.open or "unauthorized" in row.faults)
    assert ("unsupported_media" in codes) >= (row.request is not None)
    assert "draining" in codes or row.method == "GET"
    assert ("deadline_exceeded" in codes) != row.stream


def test_every_operation_is_of_an_area() -> None:
    assert AREAS.keys() == OPERATIONS.keys()
    assert next(iter(AREAS.values())) == "discovery"


@pytest.mark.rules("C2.3")
def test_each_fault_code_has_its_status_and_retry() -> None:
    table = {code: (row.status, row.retry) for code, row in FAULT_CODES.items()}
    assert all(code == row.code for code, row in FAULT_CODES.items())
    assert {code for code, (_, retry) in table.items() if retry == "same_request"} == {
        "capacity_exceeded",
        "rate_limited",
        "upstream_unavailable",
        "draining",
        "store_full",
    }
    assert {code for code, (_, retry) in table.items() if retry == "refresh"} == {
        "precondition_failed"
    }
    assert (table["gone"], table["rejected"]) == ((410, "none"), (422, "none"))
    assert table["rate_limited"] == (429, "same_request")


@pytest.mark.parametrize("kind", [TowlineError, UsageError, ProtocolError, VersionMismatch])
def test_an_exception_is_a_fault_as_data(kind: type[TowlineError]) -> None:
    error = kind(
        "It is 'x'; use 'y'.", retry_after_s=2.0, reason="why", scope="turn", details={"a": 1}
    )
    fault = error.fault()
    row = FAULT_CODES[kind.code]
    assert (fault.code, fault.message, fault.retry) == (row.code, str(error), row.retry)
    assert (fault.retry_after_s, fault.reason, fault.scope) == (2.0, "why", "turn")
    assert fault.details == {"a": 1}
