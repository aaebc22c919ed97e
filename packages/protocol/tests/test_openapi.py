"""The OpenAPI document, held against the table that it is made from."""

import re
from collections.abc import Iterator
from typing import Any, cast

import pytest

from towline_protocol import (
    AREAS,
    CONTRACT_HEADER,
    FAULT_CODES,
    OPERATIONS,
    QUERIES,
    Operation,
    fault_codes,
    openapi_document,
    schema_hash,
)

DOCUMENT = openapi_document("towline-1")
rows = pytest.mark.parametrize("row", OPERATIONS.values(), ids=lambda row: row.name)


def _entry(row: Operation) -> dict[str, Any]:
    return DOCUMENT["paths"][row.path][row.method.lower()]


def _references(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for key, part in cast("dict[str, Any]", value).items():
            if key == "$ref":
                yield part
            elif key == "mapping":
                yield from part.values()
            else:
                yield from _references(part)
    elif isinstance(value, list):
        for part in cast("list[Any]", value):
            yield from _references(part)


def _resolve(reference: str) -> Any:
    found: Any = DOCUMENT
    for part in reference.removeprefix("#/").split("/"):
        found = found[part]
    return found


def test_it_holds_every_operation_once_and_no_other() -> None:
    assert DOCUMENT["openapi"].startswith("3.1.")
    found = [(m, p) for p, entries in DOCUMENT["paths"].items() for m in entries]
    assert sorted(found) == sorted((row.method.lower(), row.path) for row in OPERATIONS.values())
    ids = [_entry(row)["operationId"] for row in OPERATIONS.values()]
    assert ids == list(OPERATIONS)
    assert {tag["name"] for tag in DOCUMENT["tags"]} == set(AREAS.values())


def test_every_reference_leads_to_something() -> None:
    assert all(_resolve(reference) for reference in _references(DOCUMENT))


@rows
def test_the_parameters_of_a_path_and_a_query_are_all_told(row: Operation) -> None:
    told = [part for part in _entry(row)["parameters"] if "$ref" not in part]
    assert [p["name"] for p in told if p["in"] == "path"] == re.findall(r"\{(\w+)\}", row.path)
    assert [p["name"] for p in told if p["in"] == "query"] == list(row.query)
    for part in told:
        if part["in"] == "query" and QUERIES[part["name"]].kind == "integer":
            schema = part["schema"]
            assert schema["type"] == "integer"
            assert schema.get("minimum") == QUERIES[part["name"]].least
            assert schema.get("maximum") == QUERIES[part["name"]].most


@pytest.mark.rules("C2.5", "C2.6", "C2.7")
@rows
def test_the_headers_that_an_operation_reads_are_told(row: Operation) -> None:
    refs = {part.get("$ref", "").rpartition("/")[2] for part in _entry(row)["parameters"]}
    assert {CONTRACT_HEADER, "traceparent", "x-request-id"} <= refs
    assert ("idempotency-key" in refs) == row.idempotent
    assert ("towline-timeout" in refs) != row.stream
    assert ("last-event-id" in refs) == row.stream
    assert ("if-match" in refs) == (row.method != "GET" and "precondition_failed" in row.faults)


@pytest.mark.rules("C2.1", "C2.3", "C2.4")
@rows
def test_every_status_that_it_may_answer_is_told(row: Operation) -> None:
    answers = _entry(row)["responses"]
    refused = {str(FAULT_CODES[code].status) for code in fault_codes(row)}
    assert set(answers) == refused | {str(row.status)}
    for status in refused:
        answer = _resolve(answers[status]["$ref"])
        assert CONTRACT_HEADER in answer["headers"]
        assert ("retry-after" in answer["headers"]) == (status in ("429", "503"))
    assert CONTRACT_HEADER in answers[str(row.status)]["headers"]


@rows
def test_what_goes_in_and_out_is_told(row: Operation) -> None:
    entry = _entry(row)
    kinds = set(entry["responses"][str(row.status)].get("content", {}))
    if row.stream:
        assert kinds == {"text/event-stream"}
    elif row.media is not None:
        assert kinds == {row.media}
    else:
        assert kinds == (set() if row.answer is None else {"application/json"})
    taken = set(entry.get("requestBody", {}).get("content", {}))
    assert taken == ({"*/*"} if row.raw else {"application/json"} if row.request else set())
    assert (entry.get("security") == []) == row.open


def test_the_fields_of_a_word_carry_the_sentences_that_document_them() -> None:
    schema = DOCUMENT["components"]["schemas"]["SendPrompt"]
    assert schema["properties"]["content"]["description"] == "1 to 64 blocks."
    tags = ("type", "kind")  # they tell the members of a union apart
    missing = [
        f"{name}.{field}"
        for name, word in DOCUMENT["components"]["schemas"].items()
        for field, about in word.get("properties", {}).items()
        if "description" not in about and field not in tags
    ]
    assert missing == []


def test_the_cookie_goes_by_the_name_that_the_server_gives_it() -> None:
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert schemes["cookie"]["name"] == "towline-1"
    assert schemes["bearer"] == {"type": "http", "scheme": "bearer"}


def test_the_hash_is_of_the_contract_and_not_of_a_server() -> None:
    assert re.fullmatch("[0-9a-f]{64}", schema_hash())
    assert schema_hash() == schema_hash()
