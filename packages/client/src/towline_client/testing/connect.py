"""A client that is connected to a scripted server, for the length of a test."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final

from towline_client.client import Client
from towline_client.clock import Clock
from towline_client.link import LinkPolicy
from towline_client.scrollback import Scrollback
from towline_client.testing.server import ScriptedServer
from towline_client.testing.transport import ScriptedTransport

__all__ = ["QUICK", "connect"]

QUICK: Final = LinkPolicy(first_ms=0, patience=1_000_000)
"""Connects again at once, however often."""


@asynccontextmanager
async def connect(
    server: ScriptedServer,
    *,
    policy: LinkPolicy | None = None,
    clock: Clock | None = None,
    scrollback: Scrollback | None = None,
    limit_s: float = 10.0,
) -> AsyncGenerator[Client]:
    """A client of a scripted server; both end with the block.

    Args:
        server: The server.
        policy: How the client connects again; `None` for its own way.
        clock: Time; `None` for the real one.
        scrollback: Where the client keeps what it has seen.
        limit_s: Seconds after which the block is given up.

    Raises:
        TimeoutError: The block took longer.
    """
    transport = ScriptedTransport(server)
    async with asyncio.timeout(limit_s), server:
        async with Client(
            "", "token", transport=transport, policy=policy, clock=clock, scrollback=scrollback
        ) as client:
            yield client
        assert transport.closed
