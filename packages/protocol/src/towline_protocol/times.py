"""Times on the wire: RFC 3339, UTC, with milliseconds (C1.2)."""

from datetime import UTC, datetime

__all__ = ["format_time", "left_ms", "parse_time"]


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


def left_ms(until: str, *, server_now: str, since_ms: int) -> int:
    """Milliseconds until a time of the server's, by its own clock; 0 when it has passed.

    Args:
        until: Such as `Waiting.until` or an `expires_at`, RFC 3339.
        server_now: What `Hello.now` said.
        since_ms: Milliseconds that have gone by here since it was heard.

    Raises:
        ValueError: One of the two is no RFC 3339 time.
    """
    return max(0, parse_time(until) - parse_time(server_now) - since_ms)
