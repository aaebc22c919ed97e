"""Calls about the server itself: whether it takes work, and what it can be asked."""

from typing import Any, Unpack

import msgspec

from towline_client.caller import Caller
from towline_client.errors import ContractUnavailable
from towline_client.options import CallOptions
from towline_protocol import Capabilities, Health, Manifest, PathList, StartInfo

__all__ = ["Discovery"]


class Discovery:
    """What a server says of itself; see `Client.discovery`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def ready(self, **options: Unpack[CallOptions]) -> Health:
        """Whether the server takes work, asked once. Needs no credential.

        Raises:
            CommandRejected: It starts, stops or cannot write; `code` says which.
        """
        return await self._caller.call("ready", Health, again=False, options=options)

    async def manifest(self, **options: Unpack[CallOptions]) -> Manifest:
        """The table of operations, with a hash of the whole contract. Needs no credential."""
        return await self._caller.call("manifest", Manifest, options=options)

    async def capabilities(self, **options: Unpack[CallOptions]) -> Capabilities:
        """What this server offers: its agents and their models, modes, limits."""
        return await self._caller.call("capabilities", Capabilities, options=options)

    async def start(self, folder: str | None = None, **options: Unpack[CallOptions]) -> StartInfo:
        """What a session would have that began in a folder now: commands, mode, model.

        Args:
            folder: A folder of the server that sessions may begin in; `None` for its first one.

        Raises:
            CommandRejected: Sessions may not begin there.
        """
        query = {} if folder is None else {"folder": folder}
        return await self._caller.call("get_start", StartInfo, query=query, options=options)

    async def start_paths(
        self,
        prefix: str = "",
        *,
        folder: str | None = None,
        limit: int = 50,
        **options: Unpack[CallOptions],
    ) -> PathList:
        """Files of a folder that a session may begin in, for completion behind `@`.

        Args:
            prefix: What was typed so far.
            folder: As for `start`.
            limit: How many at most.

        Raises:
            CommandRejected: Sessions may not begin there, or it cannot be read.
        """
        query = {"prefix": prefix, "limit": str(limit)}
        if folder is not None:
            query["folder"] = folder
        return await self._caller.call("list_start_paths", PathList, query=query, options=options)

    async def openapi(self, **options: Unpack[CallOptions]) -> dict[str, Any]:
        """The contract as an OpenAPI 3.1 document. Needs no credential.

        Raises:
            ContractUnavailable: What came is no JSON object.
        """
        body = await self._caller.fetch("openapi", options=options)
        try:
            return msgspec.json.decode(body, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError) as error:
            raise ContractUnavailable(
                "The answer to 'openapi' is no JSON object; check the address.",
                status=200,
                reason="not_json",
            ) from error

    async def docs(self, **options: Unpack[CallOptions]) -> str:
        """The contract as a page of HTML. Needs no credential."""
        return (await self._caller.fetch("docs", options=options)).decode(errors="replace")
