"""What a model is reminded of at the end of each request (A4.11, A4.12)."""

import functools
import re
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from towline_agent.limits import cut_result
from towline_protocol import Text, block_text

__all__ = ["build_reminder", "fence"]

_TAG: Final = "system-reminder"
_DAY_MS: Final = 86_400_000
_PART_CHARS: Final = 8_000
"""Of one part: a reminder is sent, uncached, with every step."""

_UNSEEN: Final = "\\s\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2064\ufeff"
"""What may stand between the letters of a tag and not be seen."""
_OURS: Final = f"(?i)[<\uff1c](?=[{_UNSEEN}/]*{f'[{_UNSEEN}]*'.join(_TAG)})"


def build_reminder(
    *,
    now_ms: int | None = None,
    zone: str = "",
    notices: Iterable[str] = (),
    parts: Iterable[str] = (),
) -> str:
    """The reminder for the next request; empty when there is nothing to say.

    It changes from step to step, so it is never stored and stands behind all that is cached.

    Args:
        now_ms: Milliseconds since 1970, UTC, for the date; `None` for none.
        zone: The local time zone's name, such as `Europe/Berlin`, if it is known.
        notices: What the loop itself has to say.
        parts: What the host adds: overview of the project, changed files, diagnostics, todos.
    """
    shown = [] if now_ms is None else [_tell_date(now_ms // _DAY_MS, zone)]
    shown += [_make_safe(part) for part in (*notices, *parts) if part.strip()]
    text = "\n\n".join(shown)
    return f"<{_TAG}>\n{text}\n</{_TAG}>" if shown else ""


def fence(text: str) -> str:
    """Text of others that can neither close nor open our tag; what else it says stays."""
    return re.sub(_OURS, "&lt;", text)


@functools.lru_cache(maxsize=8)
def _tell_date(day: int, zone: str) -> str:
    """The sentence for a day since 1970; the same for all steps of it."""
    moment = datetime.fromtimestamp(day * _DAY_MS / 1000, UTC)
    local = f" The local time zone is {zone}." if zone else ""
    return _make_safe(f"Today is {moment:%A, %Y-%m-%d} (UTC).{local}")


def _make_safe(part: str) -> str:
    return block_text(cut_result((Text(text=fence(part.strip())),), _PART_CHARS))
