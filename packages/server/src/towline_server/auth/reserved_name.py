"""Names that no user has: logs tell by them what nobody decided."""

from typing import Final

__all__ = ["CANCEL", "DEADLINE", "RESERVED_NAMES", "SERVER"]

CANCEL: Final = "cancel"
"""By whom a request ended whose turn ended."""
DEADLINE: Final = "deadline"
"""By whom a request ended that nobody answered in time."""
SERVER: Final = "server"
"""Who stops a turn when the server itself shuts down (C5.14), and ends what was open in it."""

RESERVED_NAMES: Final = frozenset({CANCEL, DEADLINE, SERVER})
"""All of them. A user of that name could not be told from none: their answers would count as
expired, and what they stop would go on by itself after a restart."""
