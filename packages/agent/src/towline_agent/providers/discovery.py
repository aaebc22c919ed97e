"""Finding model servers on this machine by asking their usual ports (A2.86)."""

import asyncio
from typing import Final

from towline_agent.providers.catalog import Found, choose_model, connect
from towline_agent.providers.transport import Transport
from towline_agent.providers.vendors import VENDORS, Vendor
from towline_protocol import UsageError

__all__ = ["discover_local"]

_ASK_S: Final = 2.0
"""Seconds for a server on this machine to name its models; a dead port answers at once."""


async def discover_local(transport: Transport | None = None) -> tuple[Found, ...]:
    """The local servers that answer and have a model, in the catalog's order.

    Args:
        transport: Who carries the requests; `None` for the process's own.
    """
    vendors = [vendor for vendor in VENDORS.values() if vendor.local]
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_ask(vendor, transport)) for vendor in vendors]
    return tuple(found for task in tasks if (found := task.result()) is not None)


async def _ask(vendor: Vendor, transport: Transport | None) -> Found | None:
    provider = connect(f"{vendor.name}/any", {}, transport=transport)
    try:
        async with asyncio.timeout(_ASK_S):
            models = await provider.models()
        choice = choose_model(vendor.name, models)
    except (TimeoutError, UsageError):
        return None
    why = f"{vendor.title} answers at {vendor.base_url.removesuffix('/v1')}"
    return Found(provider=vendor.name, model=choice.model, why=why)
