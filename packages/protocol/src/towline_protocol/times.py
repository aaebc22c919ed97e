"""Times on the wire: RFC 3339, UTC, with milliseconds (C1.2)."""

from datetime import UTC, datetime

__all__ = ["format_time", "parse_time"]


def format_time(time_ms: int) -> str:
    """Milliseconds since 1970 as text, such as `2026-01-31T09:05:00.250Z`."""
    seconds, ms = divmod(time_ms, 1000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{ms:03d}Z"


def parse_time(text: str) -> int:
    """Text as `format_time` writes it, as milliseconds since 1970.

    Raises:
        ValueError: The text is no RFC 3339 time.
    """
    return round(datetime.fromisoformat(text).timestamp() * 1000)
