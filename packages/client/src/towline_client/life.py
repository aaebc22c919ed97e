"""Calls about the life of a session beside its turns: settings, marks, its end."""

from collections.abc import Callable
from typing import NamedTuple, Unpack

from towline_client.caller import Caller
from towline_client.options import CallOptions
from towline_protocol import (
    CloseSession,
    MarkRead,
    ReadMark,
    SessionDeleted,
    SessionId,
    SessionInfo,
    UpdateSession,
)

__all__ = ["Life", "Settings"]


class Settings(NamedTuple):
    """A session's row, and the tag that a change of its settings is held against."""

    info: SessionInfo
    """The row."""
    tag: str
    """The tag; empty when the server gave none."""


class Life:
    """What people do to sessions as a whole; see `Client.life`."""

    def __init__(self, caller: Caller, *, forget: Callable[[SessionId], None]) -> None:
        """Make the calls.

        Args:
            caller: Sends them.
            forget: Told of a session that is deleted.
        """
        self._caller = caller
        self._forget = forget

    async def read(self, session: SessionId, **options: Unpack[CallOptions]) -> Settings:
        """A session's settings, with the tag that `update` takes.

        Raises:
            CommandRejected: There is no such session, or it is deleted.
        """
        found = await self._caller.call_tagged(
            "get_session", SessionInfo, params={"session": session}, options=options
        )
        return Settings(*found)

    async def update(
        self, session: SessionId, change: UpdateSession, **options: Unpack[CallOptions]
    ) -> Settings:
        """Change a session's title, model, mode, labels, or put it away.

        Args:
            session: The session.
            change: What changes; fields that are `None` stay.
            options: `if_match` is the tag that `read` gave; without it the change is made whatever
                the session is by now.

        Raises:
            CommandRejected: It cannot be so; or somebody else changed it since (code
                `precondition_failed`).
        """
        found = await self._caller.call_tagged(
            "update_session",
            SessionInfo,
            params={"session": session},
            body=change,
            options=options,
        )
        return Settings(*found)

    async def mark_read(self, session: SessionId, seq: int, **options: Unpack[CallOptions]) -> int:
        """Say how far you have read; gives where the mark stands, which never goes back."""
        params = {"session": session}
        body = MarkRead(seq=seq)
        mark = await self._caller.call(
            "mark_read", ReadMark, params=params, body=body, options=options
        )
        return mark.seq

    async def close(
        self, session: SessionId, *, reason: str | None = None, **options: Unpack[CallOptions]
    ) -> SessionInfo:
        """Stop what runs in a session and take no more prompts; it stays readable.

        Args:
            session: The session.
            reason: Why, for the log.
        """
        body = CloseSession() if reason is None else CloseSession(reason=reason)
        return await self._caller.call(
            "close_session",
            SessionInfo,
            params={"session": session},
            body=body,
            options=options,
        )

    async def delete(self, session: SessionId, **options: Unpack[CallOptions]) -> SessionDeleted:
        """Close a session and remove all of it.

        Args:
            session: The session.

        Raises:
            CommandRejected: There is none of that id, or it was deleted before.
        """
        deleted = await self._caller.call(
            "delete_session", SessionDeleted, params={"session": session}, options=options
        )
        self._forget(session)
        return deleted
