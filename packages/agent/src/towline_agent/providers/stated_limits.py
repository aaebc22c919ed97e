"""What a refusal says about the limits of a minute: in headers, in Google's details, in words.

The pacer keeps under what is stated (A3.26). Limits of a day are left out: they cannot be paced.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any, Final, cast

from towline_agent.errors import StatedLimits
from towline_agent.providers.retry_delay import exact_duration_s

__all__ = ["stated_limits"]

_REQUEST_HEADERS: Final = (
    "anthropic-ratelimit-requests-limit",
    "x-ratelimit-limit-requests-minute",
    "x-ratelimit-limit-req-minute",
    "x-ratelimit-limit-requests",
)
_TOKEN_HEADERS: Final = (
    "anthropic-ratelimit-input-tokens-limit",
    "anthropic-ratelimit-tokens-limit",
    "x-ratelimit-limit-tokens-minute",
    "x-ratelimit-limit-tokens",
)
_PERIODLESS: Final = "x-ratelimit-limit-"
_MINUTE_AT_MOST_S: Final = 90.0
"""A limit that fills up anew within this time is one of a minute, with room for rounding."""
_COUNT: Final = r"(?a)\d{1,12}"
_THEN_COUNT: Final = (
    r"(?a)\b(requests?|tokens?) per min(?:ute)?\b[ .:]{0,4}(?:\([a-z]{1,9}\))?[ .:]{0,4}"
    r"limit:? ([\d,]{1,15})"
)
_FIRST_COUNT: Final = r"(?a)([\d,]{1,15}) (?:input )?(requests?|tokens?) per min(?:ute)?\b"


def stated_limits(
    headers: Mapping[str, str], details: Iterable[Mapping[str, Any]], words: str
) -> StatedLimits:
    """The limits of a minute, as far as they are stated.

    Args:
        headers: Names in lower case.
        details: Google's typed details.
        words: Type, code and message of the body.
    """
    text = words.lower()
    found: dict[str, int | None] = {}
    for kind, count in [*_worded(text), *_detailed(details)]:
        before = found.get(kind)
        found[kind] = count if before is None else min(before, count or before)
    return StatedLimits(
        requests=found.get("requests") or _header(headers, _REQUEST_HEADERS),
        tokens=found.get("tokens") or _header(headers, _TOKEN_HEADERS),
        hit=next(iter(found)) if len(found) == 1 else _hit(text),
    )


def _hit(text: str) -> str:
    """Which limit was reached: whoever counts tokens says so."""
    if "token" in text:
        return "tokens"
    return "requests" if "request" in text else ""


def _header(headers: Mapping[str, str], names: tuple[str, ...]) -> int | None:
    for name in names:
        count = _number(headers.get(name))
        if count and (not name.startswith(_PERIODLESS) or _is_minute(headers, name, count)):
            return count
    return None


def _is_minute(headers: Mapping[str, str], name: str, limit: int) -> bool:
    """Whether a limit is one of a minute.

    The name does not say: Groq's limit of requests is one of a day. So it is reckoned how long the
    whole of it takes to come back; what cannot be reckoned counts as a minute.
    """
    of = name.removeprefix(_PERIODLESS)
    left = _number(headers.get(f"x-ratelimit-remaining-{of}"))
    reset_s = exact_duration_s(headers.get(f"x-ratelimit-reset-{of}", ""))
    if left is None or reset_s is None or left >= limit:
        return True
    return reset_s * limit / (limit - left) <= _MINUTE_AT_MOST_S


def _detailed(details: Iterable[Mapping[str, Any]]) -> list[tuple[str, int | None]]:
    """Google's `QuotaFailure` and `ErrorInfo`."""
    rows: list[tuple[Any, Any, Any]] = []
    for detail in details:
        violations: Any = detail.get("violations")
        for violation in cast("list[Any]", violations) if isinstance(violations, list) else []:
            if isinstance(violation, dict):
                row = cast("dict[str, Any]", violation)
                rows.append((row.get("quotaId"), row.get("quotaMetric"), row.get("quotaValue")))
        metadata: Any = detail.get("metadata")
        if isinstance(metadata, dict):
            row = cast("dict[str, Any]", metadata)
            value = row.get("quota_limit_value")
            rows.append((row.get("quota_limit"), row.get("quota_metric"), value))
    return [
        ("tokens" if "token" in f"{name}{metric}".lower() else "requests", _number(value))
        for name, metric, value in rows
        if "perminute" in str(name).lower()
    ]


def _worded(text: str) -> list[tuple[str, int]]:
    after = [(found[1], found[2]) for found in re.finditer(_THEN_COUNT, text)]
    before = [(found[2], found[1]) for found in re.finditer(_FIRST_COUNT, text)]
    return [
        (f"{kind.rstrip('s')}s", count)
        for kind, digits in [*after, *before]
        if (count := _number(digits.replace(",", "")))
    ]


def _number(value: Any) -> int | None:
    text = value if isinstance(value, str) else str(value) if type(value) is int else ""
    return int(text) if re.fullmatch(_COUNT, text) else None
