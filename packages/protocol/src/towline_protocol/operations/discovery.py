"""What a server says of itself."""

from typing import Final

from towline_protocol.commands.discovery import Capabilities, Health, Manifest
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="health",
        method="GET",
        path="/healthz",
        summary="Say that the server lives.",
        answer=Health,
        open=True,
    ),
    Operation(
        name="ready",
        method="GET",
        path="/readyz",
        summary="Say that the server takes work: its sessions are up and its store can be written.",
        answer=Health,
        faults=("upstream_unavailable", "draining", "store_full"),
        open=True,
    ),
    Operation(
        name="openapi",
        method="GET",
        path="/openapi.json",
        summary="Read the contract as an OpenAPI document.",
        media="application/json",
        open=True,
    ),
    Operation(
        name="docs",
        method="GET",
        path="/docs",
        summary="Read the contract as a page.",
        media="text/html",
        open=True,
    ),
    Operation(
        name="manifest",
        method="GET",
        path="/api/manifest",
        summary="Read the table of operations.",
        answer=Manifest,
        open=True,
    ),
    Operation(
        name="capabilities",
        method="GET",
        path="/api/capabilities",
        summary="Read what this server offers: agents, modes, limits.",
        answer=Capabilities,
    ),
)
"""The rows of this part of the table."""
