"""The time, for a model that can't know it (A5.36)."""

import time
from collections.abc import Callable
from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.function import tool
from towline_agent.tools.tool import Tool
from towline_agent.workspaces.threads import FILES

__all__ = ["make_now"]


def _system_ms() -> int:
    return time.time_ns() // 1_000_000


def make_now(now_ms: Callable[[], int] = _system_ms) -> Tool:
    """The tool `now`.

    Args:
        now_ms: Milliseconds since 1970, UTC.
    """

    @tool(name="now", effect="own", idempotent=True, title=lambda _: "Look at the clock")
    async def now(zone: str | None = None) -> str:
        """Get the current date and time.

        Args:
            zone: IANA time zone such as Europe/Berlin; without it the local one.
        """
        moment = datetime.fromtimestamp(now_ms() / 1000, UTC)
        there = moment.astimezone(None if zone is None else await _find_zone(zone))
        return f"{there:%A} {there.isoformat(timespec='seconds')} ({zone or there.tzname()})"

    return now


async def _find_zone(zone: str) -> tzinfo:
    try:
        return await FILES.run(lambda: ZoneInfo(zone))
    except (KeyError, ValueError, OSError) as error:  # unknown; a bad key; a folder of zones
        raise ToolInputInvalid(
            f"{zone!r} is no known time zone; use an IANA name such as 'Europe/Berlin' or 'UTC'."
        ) from error
