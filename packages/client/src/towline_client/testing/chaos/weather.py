"""What all exchanges of a proxy share: how the network is, and what was done to them."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable

from towline_client.testing.chaos.plan import Faults

__all__ = ["Weather"]


class Weather:
    """How the network is."""

    def __init__(self, faults: Faults, refuse: Callable[[], None]) -> None:
        self.faults = faults
        """The plan."""
        self.counts: Counter[str] = Counter()
        """What was done, by the names of the faults."""
        self.page: bytes | None = None
        """What everybody is answered instead."""
        self.denials: deque[bytes] = deque()
        """What the next streams are answered instead, each once."""
        self.passing = asyncio.Event()
        """Not set while everything vanishes in a black hole."""
        self.passing.set()
        self.refuse = refuse
        """Refuse connections for a while."""
