"""How long a provider asks to wait (A3.20, R53): whole seconds, rounded up, at most a day."""

import math
import re
from collections.abc import Mapping
from datetime import UTC
from typing import Final

__all__ = ["MAX_DELAY_S", "duration_s", "exact_duration_s", "header_delay_s", "worded_delay_s"]

MAX_DELAY_S: Final = 86_400.0
"""A day: a longer delay is no delay but a refusal, or a broken number."""

_MAX_DATE: Final = 64
"""Characters of a date or a number; a real date has 29."""
_MAX_DURATION: Final = 200
"""Characters of a duration."""
_UNITS_S: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_AMOUNT: Final = r"\d{1,9}(?:\.\d{1,9})?"
_UNIT: Final = (
    r"(?:milliseconds?|seconds?|secs?|minutes?|mins?|hours?|hrs?|days?|ms|[smhd])(?![a-z])"
    r"|(?:ms|[smhd])(?=\d)"
)
_PART: Final = rf"(?ai)({_AMOUNT}) ?({_UNIT})?"
_WORDED: Final = (
    r"(?ai)(?:try again|retry|wait)(?: (?:in|after|for|at least|about)){0,3}:? "
    rf"({_AMOUNT} ?(?:{_UNIT})?(?:,? ?{_AMOUNT} ?(?:{_UNIT})){{0,3}})"
)


def header_delay_s(headers: Mapping[str, str], now_ms: int) -> float | None:
    """The delay that headers state: milliseconds, seconds or an HTTP date.

    Args:
        headers: Names in lower case.
        now_ms: Milliseconds since 1970, for dates.
    """
    millis = _number(headers.get("retry-after-ms", ""))
    if millis:
        return _bounded(millis / 1000)
    value = headers.get("retry-after", "")[:_MAX_DATE].strip()
    if not value:
        return None
    seconds = _number(value)
    if seconds is not None:
        return _bounded(seconds)
    # The parser of mail headers is large, and most delays are numbers.
    from email.utils import parsedate_to_datetime

    try:
        date = parsedate_to_datetime(value)
        if date.tzinfo is None:
            date = date.replace(tzinfo=UTC)
        return _bounded(date.timestamp() - now_ms / 1000)
    except (ValueError, OverflowError, IndexError, TypeError):
        return None  # its parser falls over some odd dates


def worded_delay_s(text: str) -> float | None:
    """The delay in words such as `Please try again in 1m30s`."""
    found = re.search(_WORDED, text)
    return duration_s(found[1]) if found else None


def duration_s(text: str) -> float | None:
    """A duration such as `34.4s`, `250ms` or `2 minutes`; a bare number is seconds."""
    exact = exact_duration_s(text)
    return None if exact is None else _bounded(exact)


def exact_duration_s(text: str) -> float | None:
    """The same, neither rounded nor capped."""
    parts = re.findall(_PART, text[:_MAX_DURATION])
    if not parts:
        return None
    return sum(float(amount) * _unit_s(unit) for amount, unit in parts)


def _unit_s(unit: str) -> float:
    word = unit.lower()
    return _UNITS_S["ms" if word.startswith(("ms", "mil")) else word[:1] or "s"]


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def _bounded(seconds: float) -> float:
    return float(math.ceil(min(max(seconds, 0.0), MAX_DELAY_S)))
