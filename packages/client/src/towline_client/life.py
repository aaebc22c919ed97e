"""Calls about the life of a session beside its turns: settings, marks, its end."""

from typing import NamedTuple

from towline_client.caller import Caller
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

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def read(self, session: SessionId) -> Settings:
        """A session's settings, with the tag that `update` takes.

        Raises:
            CommandRejected: There is no such session, or it is deleted.
        """
        found = await self._caller.call_tagged(
            "get_session", SessionInfo, params={"session": session}
        )
        return Settings(*found)

    async def update(
        self,
        session: SessionId,
        change: UpdateSession,
        *,
        match: str | None = None,
        key: str | None = None,
    ) -> Settings:
        """Change a session's title, model, mode, labels, or put it away.

        Args:
            session: The session.
            change: What changes; fields that are `None` stay.
            match: The tag of what was read; `None` to change it whatever it is.
            key: The same key again changes nothing twice.

        Raises:
            CommandRejected: It cannot be so; or somebody else changed it since (code
                `precondition_failed`).
        """
        found = await self._caller.call_tagged(
            "update_session",
            SessionInfo,
            params={"session": session},
            body=change,
            key=key,
            match=match,
        )
        return Settings(*found)

    async def mark_read(self, session: SessionId, seq: int) -> int:
        """Say how far you have read; gives where the mark stands, which never goes back."""
        params = {"session": session}
        body = MarkRead(seq=seq)
        return (await self._caller.call("mark_read", ReadMark, params=params, body=body)).seq

    async def close(
        self, session: SessionId, *, reason: str | None = None, key: str | None = None
    ) -> SessionInfo:
        """Stop what runs in a session and take no more prompts; it stays readable.

        Args:
            session: The session.
            reason: Why, for the log.
            key: The same key again is the same wish.
        """
        body = CloseSession() if reason is None else CloseSession(reason=reason)
        return await self._caller.call(
            "close_session", SessionInfo, params={"session": session}, body=body, key=key
        )

    async def delete(self, session: SessionId, *, key: str | None = None) -> SessionDeleted:
        """Close a session and remove all of it.

        Args:
            session: The session.
            key: The same key again gives the same answer.

        Raises:
            CommandRejected: There is none of that id, or it was deleted before.
        """
        return await self._caller.call(
            "delete_session", SessionDeleted, params={"session": session}, key=key
        )
