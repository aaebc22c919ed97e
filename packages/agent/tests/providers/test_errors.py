"""From a vendor's answer to the kind of its error, its delay and its sentence."""

import csv
import json
import sys
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import (
    AuthenticationFailed,
    CertificateUntrusted,
    ContextOverflow,
    EndpointNotFound,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.error_body import read_error_body
from towline_agent.providers.error_signals import KINDS, NETWORK, SIGNALS
from towline_agent.providers.errors import (
    Peer,
    answer_error,
    missing_key_error,
    network_error,
    plain_http_error,
    too_long_error,
)
from towline_agent.providers.retry_delay import MAX_DELAY_S, header_delay_s, worded_delay_s
from towline_agent.providers.transport import TransportFailed

RECORDINGS = Path(__file__).parents[1] / "recordings"
EXPECTED = Path(__file__).with_name("expected_errors.json")
PEER = Peer(
    provider="acme",
    model="anvil-1",
    url="https://api.acme.test/v1",
    key_setting="ACME_API_KEY",
    secret="sk-very-secret-1234",
)
NOW_MS = 1_800_000_000_000


def error(status: int, body: Any = None, headers: dict[str, str] | None = None) -> ProviderError:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    return answer_error(PEER, status=status, headers=headers or {}, body=raw, now_ms=NOW_MS)


def said(message: str, **more: Any) -> dict[str, Any]:
    return {"error": {"message": message, **more}}


@pytest.mark.rules(
    "A3.T1", "A3.T2", "A3.T3", "A3.T4", "A3.T5", "A3.T6", "A3.T7", "A3.T8", "A3.T9", "A3.T10"
)
@pytest.mark.parametrize(
    ("status", "body", "reason"),
    [
        pytest.param(*row[1:], id=f"{row[0]}-{number}")
        for number, row in enumerate(
            [
                ("A3.T1", 404, said("File Not Found"), "endpoint_not_found"),
                ("A3.T1", 404, b"<h1>404 page not found</h1>", "endpoint_not_found"),
                ("A3.T1", 405, b"", "endpoint_not_found"),
                ("A3.T1", 301, b"<a href='/'>Moved</a>", "endpoint_not_found"),
                ("A3.T2", 429, said("x", code="insufficient_quota"), "quota"),
                ("A3.T2", 400, said("Your credit balance is too low"), "quota"),
                ("A3.T2", 402, said("Insufficient Balance"), "quota"),
                ("A3.T3", 401, b"", "auth"),
                ("A3.T3", 403, said("Forbidden"), "auth"),
                ("A3.T3", 400, said("API key not valid."), "auth"),
                ("A3.T3", 500, said("x", type="authentication_error"), "auth"),
                ("A3.T4", 400, said("x", code="context_length_exceeded"), "context_overflow"),
                ("A3.T4", 400, said("prompt is too long: 9 > 8"), "context_overflow"),
                ("A3.T4", 413, said("exceeds maximum context"), "context_overflow"),
                ("A3.T5", 429, b"", "rate_limit"),
                ("A3.T5", 400, said("x", type="rate_limit_error"), "rate_limit"),
                ("A3.T5", 429, said("over your quota", status="RESOURCE_EXHAUSTED"), "rate_limit"),
                ("A3.T5", 429, said("You exceeded your current quota: billing"), "rate_limit"),
                ("A3.T6", 400, said("You exceeded your current quota"), "quota"),
                ("A3.T6", 400, said("Billing is not set up"), "quota"),
                ("A3.T7", 529, b"", "overloaded"),
                ("A3.T7", 503, said("The model is overloaded."), "overloaded"),
                ("A3.T8", 404, said("The model `x` does not exist"), "model_not_found"),
                ("A3.T8", 400, said("x", code="model_not_found"), "model_not_found"),
                ("A3.T9", 500, b"", "server"),
                ("A3.T9", 504, b"<html>Gateway Time-out</html>", "server"),
                ("A3.T10", 400, said("bad"), "request_rejected"),
                ("A3.T10", 413, b"", "request_rejected"),
                ("A3.T10", 422, {"detail": [{"msg": "field required"}]}, "request_rejected"),
                ("A3.T10", 418, b"", "request_rejected"),
            ]
        )
    ],
)  # fmt: skip
def test_the_first_signal_that_matches_decides(status: int, body: Any, reason: str) -> None:
    got = error(status, body)
    assert (type(got), got.reason, got.status) == (KINDS[reason].error, reason, status)


@pytest.mark.rules("A3.T1", "A3.T10")
def test_the_table_has_its_rows_in_order() -> None:
    assert [signal.id for signal in SIGNALS] == [f"A3.T{number}" for number in range(1, 11)]
    assert {signal.kind for signal in SIGNALS} <= KINDS.keys()


@pytest.mark.rules("A3.T1", "A3.T2", "A3.T3", "A3.T4", "A3.T5", "A3.T7", "A3.T8", "A3.T10")
def test_each_kind_is_an_exception_of_its_own_class() -> None:
    assert {name: kind.error for name, kind in KINDS.items()} == {
        "auth": AuthenticationFailed,
        "broken_key": AuthenticationFailed,
        "context_overflow": ContextOverflow,
        "daily_limit": QuotaExhausted,
        "endpoint_not_found": EndpointNotFound,
        "incomplete": ResponseMalformed,
        "malformed": ResponseMalformed,
        "missing_key": AuthenticationFailed,
        "model_not_found": ModelNotFound,
        "model_not_on_plan": QuotaExhausted,
        "overloaded": ProviderUnavailable,
        "plain_http": EndpointNotFound,
        "quota": QuotaExhausted,
        "rate_limit": RateLimited,
        "request_rejected": RequestRejected,
        "server": ProviderUnavailable,
        "too_long": ResponseMalformed,
    }


@pytest.mark.rules("A3.14", "A3.15", "A3.T11")
def test_what_may_be_tried_again_and_what_never() -> None:
    again = {name for name, kind in {**KINDS, **NETWORK}.items() if kind.error.retryable}
    assert again == {
        "overloaded", "server", "incomplete", "malformed", "dns", "tls", "refused", "unreachable",
        "proxy", "connect_timeout", "idle", "lost", "cut", "too_large", "too_long",
    }  # fmt: skip
    assert not error(429).retryable
    assert not too_long_error(PEER, 9).retryable, "the next one would be as long"
    assert not error(501, said("no audio here")).retryable


@pytest.mark.rules("A3.T11", "A3.4")
@pytest.mark.parametrize(
    ("cause", "kind", "words"),
    [
        ("dns", ProviderUnavailable, "host"),
        ("certificate", CertificateUntrusted, "TOWLINE_CA_FILE"),
        ("ca_file", CertificateUntrusted, "TOWLINE_CA_FILE"),
        ("refused", ProviderUnavailable, "Nothing listens"),
        ("connect_timeout", ProviderUnavailable, "in time"),
        ("idle", ProviderUnavailable, "120 seconds"),
        ("proxy", ProviderUnavailable, "HTTPS_PROXY"),
        ("something else", ProviderUnavailable, "broke"),
    ],
)
def test_a_failure_of_the_network_goes_by_its_cause(
    cause: str, kind: type[ProviderError], words: str
) -> None:
    got = network_error(PEER, TransportFailed(cause, "Connection refused"), 120.0)
    assert type(got) is kind
    assert words in got.message
    assert (got.status, got.reason) == (None, cause)


@pytest.mark.rules("A3.T1", "A3.21")
def test_sentences_name_who_what_and_where_and_what_to_do() -> None:
    for name, kind in {**KINDS, **NETWORK}.items():
        text = kind.sentence.format(
            provider="acme", model="anvil-1", url="URL", status="S", key="K", idle="1", limit="9"
        )
        assert text.endswith("."), name
        assert len(text) < 200, name
    assert "https://api.acme.test/v1" in error(404).message
    assert "ACME_API_KEY" in error(401).message
    assert "ACME_API_KEY" in missing_key_error(PEER).message
    assert isinstance(plain_http_error(PEER), EndpointNotFound)
    assert (error(401).provider, error(401).model) == ("acme", "anvil-1")


@pytest.mark.rules("A3.21")
def test_the_vendors_words_follow_cut_to_400_characters() -> None:
    words = "word " * 1000
    message = error(400, said(words)).message
    quoted = message.split(" It says: ")[1]
    assert len(quoted) == 400
    assert words.startswith(quoted[:-1])
    assert "It says" not in error(400).message


def test_a_secret_that_a_vendor_repeats_is_taken_out() -> None:
    got = error(401, said("Incorrect API key provided: sk-very-secret-1234."))
    assert "sk-very-secret-1234" not in got.message
    assert "Incorrect API key provided: [key]." in got.message
    assert "secret" not in repr(PEER)


@pytest.mark.rules("A3.19")
@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b'{"error":{"message":"m"}}', "m"),
        (b'{"error":"m"}', "m"),
        (b'{"detail":"m"}', "m"),
        (b'{"detail":[{"loc":["body"],"msg":"m"}]}', "m"),
        (b'{"message":"m"}', "m"),
        (b'{"object":"error","message":{"detail":[{"msg":"m"}]}}', "m"),
        (b'{"errors":["m"]}', "m"),
        (b'[{"error":{"message":"m"}}]', "m"),
        (b'{"error":{"message":"{\\"error\\":{\\"message\\":\\"m\\"}}"}}', "m"),
        (b'{"error":{"message":"up","metadata":{"raw":"{\\"error\\":\\"m\\"}"}}}', "up m"),
        (b"<html><head><title> m </title></head><body>x</body></html>", "m"),
        (b"<style>p{}</style><p>m</p>", "m"),
        (b" \n m \n ", "m"),
        (b"", ""),
        (b"null", ""),
        (b'{"error":{"message":"{oops"}}', "{oops"),
        (b'{"error":' * 9 + b'"m"' + b"}" * 9, ""),
        (b"{}", ""),
        (b"\xff\xfe", "\ufffd\ufffd"),
        (b'{"error":{"message":"a\\ud83db"}}', "a\ufffdb"),
    ],
)
def test_bodies_of_all_shapes_are_read(body: bytes, message: str) -> None:
    assert read_error_body(body).message == message


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["error", "message", "detail", "status", "code", "details", "metadata"]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.rules("A1.24", "A3.19")
@given(st.one_of(st.binary(max_size=60), _JSON.map(lambda value: json.dumps(value).encode())))
def test_no_body_breaks_the_reader(body: bytes) -> None:
    for status in (200, 404, 429, 500):
        assert error(status, body).message.encode()


@pytest.mark.rules("A1.24")
def test_deep_or_endless_bodies_do_no_harm() -> None:
    for body in (b'{"error":' * 5000, b"[" * 100_000, b"<" * 100_000, b"<title>" * 20_000):
        assert error(500, body).reason == "server"


@pytest.mark.rules("A3.20", "R53")
@pytest.mark.parametrize(
    ("headers", "delay_s"),
    [
        ({"retry-after": "30"}, 30.0),
        ({"retry-after": "1.2"}, 2.0),
        ({"retry-after-ms": "250"}, 1.0),
        ({"retry-after-ms": "0", "retry-after": "1"}, 1.0),
        ({"retry-after": "-5"}, 0.0),
        ({"retry-after": "1e99"}, MAX_DELAY_S),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": ""}, None),
        ({}, None),
    ],
)
def test_delays_in_headers(headers: dict[str, str], delay_s: float | None) -> None:
    assert header_delay_s(headers, NOW_MS) == delay_s
    assert error(429, b"", headers).retry_after_s == delay_s


@pytest.mark.rules("A3.20", "R53")
def test_a_delay_may_be_a_date() -> None:
    now = datetime.fromtimestamp(NOW_MS / 1000, UTC)
    bare = format_datetime(now + timedelta(seconds=90)).replace("+0000", "-0000")
    assert header_delay_s({"retry-after": bare}, NOW_MS) == 90.0
    for seconds, delay_s in ((90, 90.0), (-90, 0.0), (10**6, MAX_DELAY_S)):
        date = format_datetime(now + timedelta(seconds=seconds), usegmt=True)
        got = error(429, said("slow down"), {"retry-after": date})
        assert got.retry_after_s == delay_s
        assert got.status == 429
        assert "slow down" in got.message


@pytest.mark.rules("A3.20")
@pytest.mark.parametrize(
    ("text", "delay_s"),
    [
        ("Please try again in 20s.", 20.0),
        ("try again in 1m30s", 90.0),
        ("Please retry in 48.939935699s.", 49.0),
        ("try again in 250ms", 1.0),
        ("Try again in 2 minutes", 120.0),
        ("retry after 30 seconds", 30.0),
        ("Please try again in 6m0s. Visit us", 360.0),
        ("try again in 5", 5.0),
        ("Please wait 3 hours, 2 minutes and smile", 10_920.0),
        ("try again in 1h2m3.5s", 3724.0),
        ("try again later", None),
        ("in 20s", None),
    ],
)
def test_delays_in_words(text: str, delay_s: float | None) -> None:
    assert worded_delay_s(text) == delay_s
    assert error(429, said(text)).retry_after_s == delay_s


@pytest.mark.rules("A3.20")
def test_googles_retry_delay_goes_before_its_words() -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "34.4s"}]
    assert error(429, said("retry in 9s", details=details)).retry_after_s == 35.0
    assert error(429, said("x", details=[{"retryDelay": "soon"}])).retry_after_s is None


@pytest.mark.rules("A3.17")
@pytest.mark.parametrize(
    ("violation", "reason"),
    [
        ({"quotaId": "GenerateRequestsPerMinutePerProjectPerModel-FreeTier"}, "rate_limit"),
        ({"quotaId": "GenerateRequestsPerDayPerProjectPerModel-FreeTier"}, "daily_limit"),
        ({"quotaId": "PerMinute", "quotaValue": "0"}, "model_not_on_plan"),
        ({"quotaId": "PerDay", "quotaValue": "0"}, "model_not_on_plan"),
    ],
)
def test_googles_details_refine_a_rate_limit(violation: dict[str, str], reason: str) -> None:
    details = [{"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [violation]}]
    got = error(429, said("You exceeded your current quota", details=details))
    assert got.reason == reason
    assert isinstance(got, RateLimited if reason == "rate_limit" else QuotaExhausted)
    assert error(429, said("limit: 0, model: x")).reason == "model_not_on_plan"
    assert error(429, said("limit: 0.5, model: x")).reason == "rate_limit"


@pytest.mark.rules("A3.T3", "A3.T4", "A3.T5", "A3.T8", "A3.T10", "A3.17", "A3.19", "A3.20")
def test_every_recorded_error_of_every_vendor_gets_its_kind(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with (RECORDINGS / "index.csv").open(newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["status"] != "200"]
    got: dict[str, str | None] = {}
    delays: dict[str, float | None] = {}
    for row in rows:
        case = json.loads((RECORDINGS / row["provider"] / f"{row['id']}.json").read_text())
        response = case["response"]
        body = response.get("body", response.get("body_text", ""))
        found = error(response["status"], body, response["headers"])
        got[row["id"]] = found.reason
        delays[row["id"]] = found.retry_after_s
    expected = json.loads(EXPECTED.read_text())
    right = sum(expected.get(name) == reason for name, reason in got.items())
    with capsys.disabled():
        sys.stdout.write(f"\nrecorded errors of all vendors: {right} right of {len(got)}\n")
    assert got == expected
    assert {name[-6:]: delay for name, delay in delays.items() if delay is not None} == {
        "3d5b5c": 1.0, "22cb1e": 48.0, "a6e7d7": 35.0, "98e63d": 45.0, "f9bbd7": 30.0,
    }  # fmt: skip
