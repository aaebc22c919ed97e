"""What the folder of a session offers: paths, commands, prompts to begin with, tools."""

from typing import Unpack

from towline_client.caller import Caller
from towline_client.courier import Courier, Said
from towline_client.options import CallOptions
from towline_protocol import (
    CommandList,
    Limits,
    PathList,
    PromptAccepted,
    RunCommand,
    SessionId,
    SetTrust,
    SuggestionList,
    Text,
    ToolList,
    TrustInfo,
)

__all__ = ["Project"]


class Project:
    """Asks about the folder of one session; see `Session.project`."""

    def __init__(
        self,
        id: SessionId,  # noqa: A002 - its name
        *,
        caller: Caller,
        courier: Courier,
    ) -> None:
        self._params = {"session": id}
        self._caller = caller
        self._courier = courier

    async def paths(
        self, prefix: str = "", *, limit: int = 50, **options: Unpack[CallOptions]
    ) -> PathList:
        """Files and folders that may be meant, for completion behind `@`.

        Args:
            prefix: What was typed so far.
            limit: How many at most.

        Raises:
            CommandRejected: The folder cannot be read any more.
        """
        return await self._caller.call(
            "list_paths",
            PathList,
            params=self._params,
            query={"prefix": prefix, "limit": str(limit)},
            options=options,
        )

    async def commands(self, **options: Unpack[CallOptions]) -> CommandList:
        """The commands behind `/`: those that there are everywhere, the user's, the project's."""
        return await self._caller.call(
            "list_commands", CommandList, params=self._params, options=options
        )

    async def run(
        self,
        command: str,
        arguments: str = "",
        *,
        when: str = "auto",
        limits: Limits | None = None,
        **options: Unpack[CallOptions],
    ) -> PromptAccepted:
        """Say what a command stands for; it is durable when this returns.

        Args:
            command: A name out of `commands` whose `operation` is `run_command`.
            arguments: What was written behind it.
            when: As for `Session.prompt`.
            limits: Bounds of the turn.
            options: With a `key`, the prompt's own.

        Raises:
            ConnectionLost: No answer came in two minutes, or `timeout_s`; it may have arrived.
            CommandRejected: There is no such command, or the server said no to its prompt.
        """
        call = self._caller.prepare(
            "run_command",
            params={**self._params, "command": command},
            body=RunCommand(arguments=arguments, when=when, limits=limits),
            options=options,
        )
        shown = (Text(text=f"/{command} {arguments}".strip()),)
        return await self._courier.carry(
            call, PromptAccepted, options, Said(content=shown, when=when)
        )

    async def suggestions(self, **options: Unpack[CallOptions]) -> SuggestionList:
        """Prompts to begin with; one that begins with `/` is a command."""
        return await self._caller.call(
            "list_suggestions", SuggestionList, params=self._params, options=options
        )

    async def tools(self, **options: Unpack[CallOptions]) -> ToolList:
        """What the session's model may call."""
        return await self._caller.call("list_tools", ToolList, params=self._params, options=options)

    async def trust(self, **options: Unpack[CallOptions]) -> TrustInfo:
        """Whether the folder's own rules, servers and commands count, and which files these are."""
        return await self._caller.call("get_trust", TrustInfo, params=self._params, options=options)

    async def set_trust(self, digest: str | None, **options: Unpack[CallOptions]) -> TrustInfo:
        """Trust the folder's files as they were shown, or no longer.

        Args:
            digest: `TrustInfo.digest` of what a person has seen; `None` to trust it no longer.

        Raises:
            CommandRejected: The files have changed since, or the caller is no admin.
        """
        return await self._caller.call(
            "set_trust",
            TrustInfo,
            params=self._params,
            body=SetTrust(digest=digest),
            options=options,
        )
