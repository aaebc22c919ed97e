"""Every recorded error of every vendor gets its kind, its status, its delay and its sentence.

`expected_errors.json` holds kind, status and delay of each recording, read over by a person. Errors
in the middle of a stream, and answers under status 200 that are errors, are among them.
"""

import json
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from recorded import is_stream, load_cases, load_local, read_body, show_table

from towline_agent.errors import ProviderError
from towline_agent.providers.error_body import read_error_body
from towline_agent.providers.error_signals import KINDS
from towline_agent.providers.errors import (
    Peer,
    answer_error,
    body_error,
    document_error,
    value_error,
)
from towline_agent.providers.secrets import Secrets
from towline_protocol import SseDecoder

EXPECTED = Path(__file__).with_name("expected_errors.json")
PEER = Peer(
    provider="acme",
    model="anvil-1",
    url="https://api.acme.test/v1",
    key_setting="ACME_API_KEY",
    secrets=Secrets("sk-very-secret-1234"),
)
NOW_MS = 1_800_000_000_000
SAYS = " It says: "


class Case(NamedTuple):
    api: str
    id: str
    status: int
    body: bytes
    error: ProviderError


def _refusals() -> Iterator[Case]:
    """What came with an error status."""
    for case in load_cases():
        response, body = case["response"], read_body(case)
        status, headers = response["status"], response["headers"]
        if status == 200:
            continue
        is_vertex = case["api"] == "gemini" and case["provider"] == "vertex"
        api = "vertex" if is_vertex else case["api"]
        error = answer_error(PEER, status=status, headers=headers, body=body, now_ms=NOW_MS)
        yield Case(api, case["id"], status, body, error)


def _local() -> Iterator[Case]:
    """What the embedded llama.cpp server refuses."""
    for name, _, status, headers, body in load_local().values():
        if status != 200:
            error = answer_error(PEER, status=status, headers=headers, body=body, now_ms=0)
            yield Case("llama.cpp", name, status, body, error)


def _under_200() -> Iterator[Case]:
    """Errors that come as an answer: an event of a stream, or the document itself."""
    for case in load_cases():
        response, api = case["response"], f"{case['api']}, 200"
        if response["status"] != 200:
            continue
        body = response.get("body")
        if isinstance(body, dict) and "error" in body and body["error"]:
            text = json.dumps(body).encode()
            yield Case(api, case["id"], 200, text, document_error(PEER, text))
        if is_stream(case):
            for event in SseDecoder().feed(read_body(case) + b"\n\n"):
                if event.event == "error":
                    yield Case(api, case["id"], 200, event.data, body_error(PEER, event.data))


@cache
def cases() -> tuple[Case, ...]:
    return (*_refusals(), *_local(), *_under_200())


@pytest.mark.rules(
    "A3.T1", "A3.T2", "A3.T3", "A3.T4", "A3.T5", "A3.T7", "A3.T8", "A3.T9", "A3.T10",
    "A3.17", "A3.19", "A3.20", "R53",
)  # fmt: skip
def test_every_recorded_error_gets_its_kind_its_status_and_its_delay(
    show_figures: Callable[[str], None],
) -> None:
    expected = json.loads(EXPECTED.read_text())
    table: dict[str, list[int]] = {}
    wrong: list[str] = []
    for case in cases():
        row = table.setdefault(case.api, [0, 0])
        row[0] += 1
        error = case.error
        got = [error.reason, error.status, error.retry_after_s]
        if got == expected.get(case.id) and type(error) is KINDS[str(error.reason)].error:
            row[1] += 1
        else:
            wrong.append(f'"{case.id}": {json.dumps(got)},')
    show_table(show_figures, "recorded errors", table)
    assert wrong == []
    assert sorted(case.id for case in cases()) == sorted(expected)


@pytest.mark.rules("A3.21")
@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_its_message_is_a_plain_sentence_then_the_vendors_words(case: Case) -> None:
    sentence, _, words = case.error.message.partition(SAYS)
    assert re.fullmatch(r"[^.!?\n]*(?:\.[^\s.][^.!?\n]*)*\.", sentence), "one sentence"
    assert "{" not in sentence
    assert "acme" in sentence or "anvil-1" in sentence
    assert len(words) <= 400
    assert words == " ".join(words.split()), "on one line"
    said = read_error_body(case.body).message
    assert said
    assert words == (said if len(said) <= 400 else f"{said[:399]}…")


@pytest.mark.rules("R53")
def test_a_refusal_keeps_what_a_caller_may_want_to_know() -> None:
    for case in cases():
        error = case.error
        assert error.status == case.status or case.status == 200, case.id
        assert error.body == case.body.decode()[:4000], case.id
        assert (error.provider, error.model) == ("acme", "anvil-1")
    limited = next(case.error for case in cases() if case.id.endswith("3d5b5c"))
    assert (limited.headers["retry-after"], limited.headers["retry-after-ms"]) == ("1", "0")
    kept = {name for case in cases() for name in case.error.headers}
    assert "request-id" in kept
    assert "content-type" not in kept


_RATE = "Rate limit reached for m on tokens per min (TPM): Limit 9, Used 9. Try again in 1.4s."


@pytest.mark.rules("A3.T4", "A3.T5", "A3.T7", "A3.T8", "A3.T9", "A3.T10", "A3.19", "A3.20")
@pytest.mark.parametrize(
    ("data", "reason", "status", "delay_s"),
    [
        # Messages: an event called `error`
        ({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}},
         "overloaded", None, None),
        ({"type": "error", "error": {"type": "rate_limit_error", "message": "This request would"
          " exceed your rate limit of 5 requests per minute."}}, "rate_limit", None, None),
        ({"type": "error", "error": {"type": "api_error", "message": "Internal server error"}},
         "server", None, None),
        ({"type": "error", "error": {"type": "timeout_error", "message": "Took too long"}},
         "server", None, None),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "Bad"}},
         "request_rejected", None, None),
        ({"type": "error", "error": {"type": "request_too_large", "message": "Too many bytes"}},
         "request_rejected", None, None),
        ({"type": "error", "error": {"type": "permission_error", "message": "No"}},
         "auth", None, None),
        # Responses: `error` flat and nested, `response.failed`
        ({"type": "error", "code": "server_error", "message": "It broke.", "param": None,
          "sequence_number": 3}, "server", None, None),
        ({"type": "error", "error": {"type": "invalid_request_error", "message": "Too long",
          "code": "context_length_exceeded", "param": "input"}}, "context_overflow", None, None),
        ({"type": "response.failed", "response": {"id": "resp_1", "status": "failed",
          "error": {"code": "rate_limit_exceeded", "message": _RATE}, "output": [],
          "usage": None}}, "rate_limit", None, 2.0),
        ({"type": "response.failed", "response": {"status": "failed",
          "error": {"code": "invalid_prompt", "message": "Flagged."}}},
         "request_rejected", None, None),
        ({"type": "response.failed", "response": {"status": "failed",
          "error": {"code": "image_file_not_found", "message": "No image."}}},
         "request_rejected", None, None),
        # Gemini and Vertex: an object in place of a candidate, alone or in an array
        ({"error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}},
         "overloaded", 503, None),
        ({"error": {"code": 500, "message": "An internal error has occurred.",
          "status": "INTERNAL"}}, "server", 500, None),
        ([{"error": {"code": 429, "message": "Resource exhausted. Please retry in 3.2s.",
           "status": "RESOURCE_EXHAUSTED"}}], "rate_limit", 429, 4.0),
        ({"error": {"code": 400, "message": "The input token count exceeds the maximum number of "
          "tokens allowed", "status": "INVALID_ARGUMENT"}}, "context_overflow", 400, None),
        # Ollama, and gateways behind others
        ({"error": "model runner has unexpectedly stopped"}, "server", None, None),
        ({"error": {"message": "upstream is overloaded", "code": 502}}, "overloaded", 502, None),
    ],
)  # fmt: skip
def test_an_error_in_a_stream_gets_its_kind(
    data: Any, reason: str, status: int | None, delay_s: float | None
) -> None:
    for error in (body_error(PEER, json.dumps(data).encode()), value_error(PEER, data)):
        assert (error.reason, error.status, error.retry_after_s) == (reason, status, delay_s)
        assert type(error) is KINDS[reason].error
        assert SAYS in error.message
