"""What an exception means to the link."""

from towline_client.errors import (
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    Unauthorized,
)
from towline_client.link import Cut, LinkInput, Misfit, Refused
from towline_protocol import TowlineError, VersionMismatch

__all__ = ["read_error"]


def read_error(error: TowlineError, *, attempt: int, now_ms: int, random: float) -> LinkInput:
    """The input that tells the link of it.

    Args:
        error: What a request or a stream ended with.
        attempt: The attempt it belongs to.
        now_ms: When.
        random: A fresh random number.
    """
    waits_ms = int((error.retry_after_s or 0.0) * 1000)
    match error:
        case Unauthorized():
            return Refused(attempt=attempt, now_ms=now_ms, random=random, status=401)
        case CommandRejected(status=status):
            return Refused(
                attempt=attempt,
                now_ms=now_ms,
                random=random,
                status=status,
                retry_after_ms=waits_ms,
            )
        case ConnectionLost(status=int(status)):
            return Refused(
                attempt=attempt,
                now_ms=now_ms,
                random=random,
                status=status,
                contract=False,
                retry_after_ms=waits_ms,
            )
        case ContractUnavailable():
            reason = error.reason or "missing_header"
            return Misfit(attempt=attempt, now_ms=now_ms, random=random, reason=reason)
        case VersionMismatch():
            return Misfit(attempt=attempt, now_ms=now_ms, random=random, reason=error.code)
        case _:
            return Cut(attempt=attempt, now_ms=now_ms, random=random)
