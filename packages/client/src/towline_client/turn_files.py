"""What the turns of a session did to files, and the way back to before them."""

from typing import Unpack

from towline_client.caller import Caller
from towline_client.courier import Courier
from towline_client.options import CallOptions
from towline_protocol import (
    CheckpointList,
    RevertTurn,
    SessionId,
    TurnDiff,
    TurnId,
    TurnReverted,
)

__all__ = ["TurnFiles"]


class TurnFiles:
    """The files of a session's turns: `session.files`."""

    def __init__(self, session: SessionId, *, caller: Caller, courier: Courier) -> None:
        self._session = session
        self._caller = caller
        self._courier = courier

    async def checkpoints(
        self, *, after: str | None = None, limit: int | None = None, **options: Unpack[CallOptions]
    ) -> CheckpointList:
        """The turns that files can go back to before, newest first.

        Args:
            after: The `next` of the page before.
            limit: Rows at most; `None` for the server's own number.
            options: As for any call.

        Raises:
            CommandRejected: There is no such session, or nothing after that.
        """
        return await self._caller.call(
            "list_checkpoints",
            CheckpointList,
            params={"session": self._session},
            query=_page(after, limit),
            options=options,
        )

    async def diff(
        self,
        turn: TurnId,
        *,
        after: str | None = None,
        limit: int | None = None,
        **options: Unpack[CallOptions],
    ) -> TurnDiff:
        """What a turn did to files, by path.

        Args:
            turn: The turn.
            after: The `next` of the page before.
            limit: Paths at most; `None` for the server's own number.
            options: As for any call.

        Raises:
            CommandRejected: There is no such turn, or nothing after that.
        """
        return await self._caller.call(
            "get_diff",
            TurnDiff,
            params={"session": self._session, "turn": turn},
            query=_page(after, limit),
            options=options,
        )

    async def revert(
        self,
        turn: TurnId,
        *,
        skip_conflicts: bool = False,
        conversation: bool = False,
        **options: Unpack[CallOptions],
    ) -> TurnReverted:
        """Put files back to what they were before a turn, this one and all later ones undone.

        What somebody has changed since is a conflict and stays; look at `conflicts` of the answer,
        for one of them keeps everything as it is.

        Args:
            turn: The first turn to undo.
            skip_conflicts: Whether to put back the others all the same.
            conversation: Whether the conversation goes back as well.
            options: As for any call.

        Raises:
            ConnectionLost: No answer came; it may be done.
            CommandRejected: A turn runs (`conflict`), there is no such turn, or the conversation
                has it no more (`rejected`).
        """
        call = self._caller.prepare(
            "revert_turn",
            params={"session": self._session, "turn": turn},
            body=RevertTurn(skip_conflicts=skip_conflicts, conversation=conversation),
            options=options,
        )
        return await self._courier.carry(call, TurnReverted, options, None)


def _page(after: str | None, limit: int | None) -> dict[str, str]:
    asked = {"after": after, "limit": limit}
    return {name: str(value) for name, value in asked.items() if value is not None}
