"""What a refusal says about the limits of a minute."""

import json
from typing import Any

import pytest

from towline_agent.errors import ProviderUnavailable, RateLimited, StatedLimits
from towline_agent.providers.errors import Peer, answer_error, value_error

ODD_DETAILS: list[Any] = [{"violations": [None, "x"]}, {"violations": 3}, {"metadata": []}]
PEER = Peer(provider="acme", model="anvil-1", url="https://api.acme.test/v1")


def limits(
    message: str = "", headers: dict[str, str] | None = None, details: list[Any] | None = None
) -> StatedLimits:
    error = {"message": message, "type": "rate_limit_error", "details": details or []}
    got = answer_error(
        PEER,
        status=429,
        headers=headers or {},
        body=json.dumps({"error": error}).encode(),
        now_ms=0,
    )
    assert isinstance(got, RateLimited)
    return got.limits


@pytest.mark.rules("A3.26")
@pytest.mark.parametrize(
    ("headers", "requests", "tokens"),
    [
        ({"x-ratelimit-limit-requests": "5000", "x-ratelimit-limit-tokens": "40000"}, 5000, 40000),
        ({"anthropic-ratelimit-requests-limit": "50",
          "anthropic-ratelimit-tokens-limit": "38000"}, 50, 38000),
        ({"anthropic-ratelimit-input-tokens-limit": "30000",
          "anthropic-ratelimit-tokens-limit": "38000"}, None, 30000),
        ({"x-ratelimit-limit-req-minute": "360",
          "x-ratelimit-limit-tokens-minute": "75000"}, 360, 75000),
        ({"x-ratelimit-limit-requests-day": "14400"}, None, None),
        ({"x-ratelimit-limit-requests": "0", "x-ratelimit-limit-tokens": "many"}, None, None),
        ({}, None, None),
    ],
)  # fmt: skip
def test_headers_state_limits(
    headers: dict[str, str], requests: int | None, tokens: int | None
) -> None:
    assert limits(headers=headers) == StatedLimits(requests=requests, tokens=tokens)


@pytest.mark.rules("A3.26")
@pytest.mark.parametrize(
    ("limit", "left", "reset", "requests"),
    [
        ("5000", "4999", "12ms", 5000),
        ("60", "0", "59.8s", 60),
        ("1800", "1800", "0s", 1800),
        ("14400", "14370", "2m59.56s", None),
        ("200", "0", "7h12m0s", None),
        ("100", "40", "", 100),
    ],
)
def test_a_limit_that_takes_longer_than_a_minute_to_come_back_is_none_of_a_minute(
    limit: str, left: str, reset: str, requests: int | None
) -> None:
    headers = {
        "x-ratelimit-limit-requests": limit,
        "x-ratelimit-remaining-requests": left,
        "x-ratelimit-reset-requests": reset,
    }
    assert limits(headers=headers).requests == requests


def violation(name: str, value: str | None = None, metric: str = "") -> dict[str, Any]:
    row = {"quotaId": name, "quotaMetric": metric}
    return {"violations": [row if value is None else {**row, "quotaValue": value}]}


@pytest.mark.rules("A3.17", "A3.26")
@pytest.mark.parametrize(
    ("details", "expected"),
    [
        ([violation("GenerateContentInputTokensPerModelPerMinute-FreeTier", "250000")],
         StatedLimits(tokens=250000, hit="tokens")),
        ([violation("GenerateRequestsPerMinutePerProjectPerModel-FreeTier", "10")],
         StatedLimits(requests=10, hit="requests")),
        ([violation("PerModelPerMinute", "9000", "google.com/input_token_count")],
         StatedLimits(tokens=9000, hit="tokens")),
        ([violation("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")],
         StatedLimits(hit="requests")),
        ([violation("RequestsPerMinute", "10"), violation("RequestsPerMinutePerModel", "5")],
         StatedLimits(requests=5, hit="requests")),
        ([{"metadata": {"quota_limit": "RequestsPerMinutePerRegion", "quota_limit_value": "60",
                        "quota_metric": "googleapis.com/generate_content_requests"}}],
         StatedLimits(requests=60, hit="requests")),
        (ODD_DETAILS, StatedLimits()),
    ],
)  # fmt: skip
def test_googles_details_state_limits(details: list[Any], expected: StatedLimits) -> None:
    assert limits(details=details) == expected


@pytest.mark.rules("A3.26")
@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Rate limit reached for m on tokens per min (TPM): Limit 30,000, Used 29,000",
         StatedLimits(tokens=30_000, hit="tokens")),
        ("Rate limit reached for m on requests per min. Limit: 3 / min. Try again in 20s.",
         StatedLimits(requests=3, hit="requests")),
        ("This would exceed your rate limit of 50,000 input tokens per minute.",
         StatedLimits(tokens=50_000, hit="tokens")),
        ("This would exceed your rate limit of 5 requests per minute.",
         StatedLimits(requests=5, hit="requests")),
        ("This would exceed your rate limit of 8,000 output tokens per minute.",
         StatedLimits(hit="tokens")),
        ("Your requests have exceeded the token rate limit of your tier.",
         StatedLimits(hit="tokens")),
        ("Too many requests", StatedLimits(hit="requests")),
        ("Slow down", StatedLimits()),
    ],
)  # fmt: skip
def test_words_state_limits(message: str, expected: StatedLimits) -> None:
    assert limits(message) == expected


@pytest.mark.rules("A3.26")
def test_the_words_go_before_the_headers() -> None:
    headers = {"x-ratelimit-limit-requests": "500", "x-ratelimit-limit-tokens": "90000"}
    assert limits("of 5 requests per minute", headers) == StatedLimits(
        requests=5, tokens=90000, hit="requests"
    )


def test_an_error_in_a_stream_states_limits_too_and_other_errors_none() -> None:
    got = value_error(PEER, {"type": "rate_limit_error", "message": "of 5 requests per minute"})
    assert isinstance(got, RateLimited)
    assert got.limits.requests == 5
    other = answer_error(
        PEER, status=500, headers={"x-ratelimit-limit-requests": "5"}, body=b"", now_ms=0
    )
    assert isinstance(other, ProviderUnavailable)
    assert other.headers == {"x-ratelimit-limit-requests": "5"}
