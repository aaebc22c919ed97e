"""Bodies and headers of errors that are made to cost time, to break a reader, or to tell."""

import json
import time
from typing import Any

import pytest

from towline_agent.errors import ProviderError, RateLimited
from towline_agent.providers.errors import Peer, answer_error, value_error
from towline_agent.providers.retry_delay import duration_s, header_delay_s, worded_delay_s
from towline_agent.providers.secrets import Secrets

KEY = "sk-very-secret-1234"
PEER = Peer(provider="acme", model="anvil-1", url="https://api.acme.test/v1", secrets=Secrets(KEY))
AT_ONCE_S = 2.0
"""Far more than a linear reader takes for these bodies, far less than a quadratic one."""


def error(body: bytes, status: int = 429, headers: dict[str, str] | None = None) -> ProviderError:
    return answer_error(PEER, status=status, headers=headers or {}, body=body, now_ms=0)


UNITS = [
    "<title", "<title>", "<title ", "<script", "<script>", "<script >", "<style ", "<", "&", "&#1",
    "function '", "tool: ", "retry ", "try again in 1", "1 ", "tokens per min.", "requests per min",
    " . ", "9", "9,", '"quotaValue":"', "limit: 0", "model ",
]  # fmt: skip


@pytest.mark.rules("A3.19", "A1.24")
@pytest.mark.parametrize("unit", UNITS)
def test_the_time_for_a_body_grows_with_its_length_alone(unit: str) -> None:
    text = "<" + unit * (256 * 1024 // len(unit))
    began = time.process_time()
    assert isinstance(error(text.encode()), RateLimited)
    error(json.dumps({"error": {"message": text[1:], "type": text, "code": text}}).encode())
    details = [{"reason": text, "retryDelay": text}] * 2
    error(json.dumps({"error": {"message": "m", "details": details}}).encode())
    error(json.dumps([{"message": ""}, {"error": {"metadata": {"raw": text}}}]).encode())
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.rules("A3.19")
@pytest.mark.parametrize("unit", ["<title", "<script>", "{", "[", '{"error":', "tokens per min."])
def test_ten_megabytes_of_it_are_read_as_fast(unit: str) -> None:
    body = (unit * (10_000_000 // len(unit))).encode()
    began = time.process_time()
    assert len(error(body).message) < 1000
    assert time.process_time() - began < AT_ONCE_S


@pytest.mark.rules("A3.19")
def test_a_script_that_was_cut_off_is_not_shown() -> None:
    page = b"<html><body>Gone <script>var words = 'of a program'"
    assert "It says: Gone" in error(page, 502).message
    assert "program" not in error(page, 502).message


@pytest.mark.rules("A3.20", "A1.24")
def test_letters_that_only_look_like_a_unit_are_none() -> None:
    assert duration_s("5\N{LATIN SMALL LETTER LONG S}") == 5
    assert worded_delay_s("retry in 7\N{LATIN SMALL LETTER LONG S}") == 7
    assert header_delay_s({"retry-after": "x" * 65_000}, 0) is None
    for date in ("Mon, 31 Feb 2020 0:0:0", "1 Jan 0001 00:00:00 -2359", ", ,", "0 0 0 0:0 +99999"):
        header_delay_s({"retry-after": date}, 0)


@pytest.mark.rules("A1.24")
def test_a_number_without_end_is_no_code() -> None:
    huge: Any = 10**5000
    found = value_error(PEER, {"message": "m", "code": huge, "details": [{"reason": huge}]})
    assert found.message.endswith("It says: m")


@pytest.mark.rules("A3.21")
def test_whatever_was_sent_as_a_secret_is_taken_out_of_all_that_an_error_keeps() -> None:
    PEER.secrets.add_headers({
        "authorization": "Bearer ya29.token-of-a-sign-in",
        "x-gateway-key": "gateway-secret",
        "anthropic-version": "2023-06-01",
        "x-short": "short",
    })  # fmt: skip
    said = f"{KEY} ya29.token-of-a-sign-in gateway-secret 2023-06-01 short"
    found = error(json.dumps({"error": {"message": said}}).encode(), headers={"request-id": said})
    for text in (found.message, str(found.body), str(found.headers)):
        assert "[key] [key] [key] 2023-06-01 short" in text
    assert "secret" not in repr(PEER.secrets)


def test_of_secrets_within_each_other_the_longest_is_taken_out() -> None:
    secrets = Secrets("abcdefgh", "abcdefgh-and-more", None, "")
    assert secrets.clean("abcdefgh-and-more, abcdefgh") == "[key], [key]"
    secrets.add_headers({f"x-{n}": f"a-secret-{n}" for n in range(200)})
    assert secrets.clean("a-secret-199") == "[key]"
    assert repr(secrets) == "Secrets(64)"
