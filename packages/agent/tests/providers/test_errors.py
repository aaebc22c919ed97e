"""From a vendor's answer to the kind of its error, its delay and its sentence."""

import json
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec
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
    value_error,
)
from towline_agent.providers.retry_delay import MAX_DELAY_S, header_delay_s, worded_delay_s
from towline_agent.providers.secrets import Secrets
from towline_agent.providers.transport import TransportFailed

PEER = Peer(
    provider="acme",
    model="anvil-1",
    url="https://api.acme.test/v1",
    key_setting="ACME_API_KEY",
    secrets=Secrets("sk-very-secret-1234"),
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
        "broken_header": RequestRejected,
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
        "overloaded", "server", "incomplete", "malformed", "dns", "tls", "refused",
        "unreachable", "proxy", "connect_timeout", "idle", "no_answer", "lost", "cut", "too_large",
        "too_long",
    }  # fmt: skip
    assert not error(429).retryable
    assert not too_long_error(PEER, "9 characters").retryable, "the next one would be as long"
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
        ("lost", ProviderUnavailable, f"{PEER.url} broke; check the network and the base URL"),
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


@pytest.mark.rules("A3.21")
def test_a_program_whose_key_is_refused_is_told_of_what_it_passed() -> None:
    peer = Peer(provider="acme", model="m", url="https://llm.example")
    refused = answer_error(peer, status=401, headers={}, body=b"", now_ms=0)
    assert "pass a valid `api_key`; in the app, keep one with `towline keys" in refused.message


@pytest.mark.rules("A3.T1", "A3.21")
def test_sentences_name_who_what_and_where_and_what_to_do() -> None:
    for name, kind in {**KINDS, **NETWORK}.items():
        text = kind.sentence.format(
            provider="acme",
            model="anvil-1",
            url="URL",
            status="S",
            key="K",
            idle="1",
            limit="9",
            other="O",
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


@pytest.mark.rules("A3.T1", "A3.T2", "A3.T3", "A3.T4", "A3.T5", "A3.T8", "A3.T10")
@pytest.mark.parametrize(
    ("status", "message", "reason"),
    [
        (403, "Your newly created team doesn't have any credits yet.", "quota"),
        (429, "Your team has used all available credits or reached its spending limit", "quota"),
        (400, "You have reached your specified API usage limits.", "quota"),
        (400, "Incorrect API key provided: ab. Get one at our console.", "auth"),
        (400, "API key expired. Please renew the API key.", "auth"),
        (400, "Input is too long for requested model.", "context_overflow"),
        (400, "prompt token count of 9 exceeds the limit of 8", "context_overflow"),
        (400, "Your request exceeded model token limit: 131072", "context_overflow"),
        (400, "Range of input length should be [1, 30720]", "context_overflow"),
        (400, "Please reduce the length of the messages or completion.", "context_overflow"),
        (400, "Prompt exceeds max length", "context_overflow"),
        (400, "ThrottlingException: too many tokens, please wait", "rate_limit"),
        (404, "No endpoints found for acme/anvil.", "model_not_found"),
        (400, "Model Not Exist", "model_not_found"),
        (400, "Invalid model 'anvil'. Permitted models are listed", "model_not_found"),
        (400, "anvil is not a valid model ID", "model_not_found"),
        (404, "Item with id 'rs_1' not found. Items are not kept.", "request_rejected"),
        (400, "Previous response with id 'resp_1' not found.", "request_rejected"),
        (400, "Logprobs are unavailable here", "request_rejected"),
        (500, "invalid_request: so it says", "server"),
    ],
)
def test_the_words_of_many_vendors_are_known(status: int, message: str, reason: str) -> None:
    assert error(status, said(message)).reason == reason


@pytest.mark.rules("A3.T3")
def test_the_reason_in_googles_details_counts() -> None:
    details = [{"reason": "API_KEY_INVALID", "domain": "googleapis.com"}]
    assert error(400, said("Renew it.", details=details)).reason == "auth"


@pytest.mark.rules("A3.T10")
@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for function 'check_permission': type is missing.",
        "Tool `get_billing` has no description.",
        'Invalid JSON payload received. Unknown name "rate_limit" at tools[0].',
        "The parameter 'context_length' is not supported.",
    ],
)
def test_names_out_of_the_request_say_nothing_about_the_kind(message: str) -> None:
    got = error(400, said(message, type="invalid_request_error"))
    assert got.reason == "request_rejected"
    assert message in got.message


@pytest.mark.rules("A3.18")
@pytest.mark.parametrize(("quota", "reason"), [("0", "model_not_on_plan"), ("5", "daily_limit")])
def test_another_model_is_suggested_by_name_where_only_that_helps(quota: str, reason: str) -> None:
    violation = {"quotaId": "GenerateRequestsPerDayPerProject", "quotaValue": quota}
    body = json.dumps(said("Quota", details=[{"violations": [violation]}])).encode()

    def refused(suggested: str | None) -> ProviderError:
        peer = msgspec.structs.replace(PEER, suggested_model=suggested)
        return answer_error(peer, status=429, headers={}, body=body, now_ms=NOW_MS)

    got = refused("anvil-flash")
    assert got.reason == reason
    assert got.fault().details == {"suggested_model": "anvil-flash"}
    assert got.fault().code == "provider_quota"
    assert "take 'anvil-flash' or" in got.message
    for nothing in (None, "anvil-1"):
        assert refused(nothing).fault().details is None
        assert "take another model or" in refused(nothing).message


@pytest.mark.rules("A3.18")
@pytest.mark.parametrize("status", [401, 404, 429, 500])
def test_nothing_is_suggested_where_another_model_is_no_cure(status: int) -> None:
    peer = msgspec.structs.replace(PEER, suggested_model="anvil-flash")
    got = answer_error(peer, status=status, headers={}, body=b"", now_ms=NOW_MS)
    assert got.fault().details is None
    assert "anvil-flash" not in got.message


@pytest.mark.rules("R53")
def test_an_error_keeps_headers_and_body_without_the_credential() -> None:
    secret = "sk-very-secret-1234"
    got = error(
        429,
        said(f"slow down, {secret}"),
        {"retry-after": "9", "x-ratelimit-limit-requests": "5", "x-request-id": f"r-{secret}",
         "set-cookie": "a=b", "content-type": "application/json"},
    )  # fmt: skip
    assert got.headers == {
        "retry-after": "9",
        "x-ratelimit-limit-requests": "5",
        "x-request-id": "r-[key]",
    }
    assert json.loads(got.body) == said("slow down, [key]")
    assert (got.status, got.retry_after_s) == (429, 9.0)
    assert len(error(500, b"x" * 10_000).body) == 4000
    assert value_error(PEER, said("no")).body == '{"error":{"message":"no"}}'


@pytest.mark.rules("A1.24", "R53")
@given(st.text(max_size=40) | st.from_regex(r"\A[a-zA-Z]{3}, \d+ [a-zA-Z]{3} -?\d+ [\d:]+ GMT\Z"))
def test_no_header_breaks_the_reader_of_delays(value: str) -> None:
    for name in ("retry-after", "retry-after-ms"):
        delay_s = header_delay_s({name: value}, NOW_MS)
        assert delay_s is None or (0.0 <= delay_s <= MAX_DELAY_S and delay_s == int(delay_s))
    assert worded_delay_s(f"try again in {value}") is None or value


@pytest.mark.rules("A1.24")
def test_deep_details_do_no_harm() -> None:
    for depth in range(100, 1000, 7):
        deep = "[" * depth + "]" * depth
        body = b'{"error":{"message":"m","status":"RESOURCE_EXHAUSTED","details":[{"x":%s}]}}'
        assert error(429, body % deep.encode()).status == 429
