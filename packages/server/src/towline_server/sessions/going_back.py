"""The way of a session back to before a turn: its files, and if asked its conversation."""

import asyncio
from collections.abc import Sequence
from typing import Final

import msgspec

from towline_agent import RevertOutcome
from towline_protocol import (
    Checkpoint,
    CheckpointList,
    FilesReverted,
    Reverted,
    TurnDiff,
    TurnId,
    TurnReverted,
    format_time,
)
from towline_server.errors import CursorExpired, SessionNotFound
from towline_server.sessions.inbox import Inbox
from towline_server.sessions.kept_files import KeptFiles
from towline_server.sessions.lead import Remember
from towline_server.sessions.log import Log
from towline_server.sessions.runner import Runner

__all__ = ["GoingBack"]

_DIGITS: Final = 10  # of a place in a list


class GoingBack:
    """What the turns of one session did to files, and the way back to before them."""

    def __init__(self, log: Log, *, kept: KeptFiles, inbox: Inbox, runner: Runner) -> None:
        self._log = log
        self._kept = kept
        self._inbox = inbox
        self._runner = runner
        self._task: asyncio.Task[TurnReverted] | None = None

    async def checkpoints(self, *, limit: int, after: str | None) -> CheckpointList:
        """The turns that files can go back to before, newest first.

        Raises:
            CursorExpired: `after` is no turn of the list.
            StoreError: They cannot be read.
        """
        found = (await self._kept.turns(self._log.session))[::-1]
        start = 0
        if after is not None:
            ids = [kept.turn for kept in found]
            if after not in ids:
                raise CursorExpired(f"The list cannot go on from {after[:80]!r}; read it anew.")
            start = ids.index(after) + 1
        page = found[start : start + limit]
        return CheckpointList(
            checkpoints=tuple(
                Checkpoint(
                    turn=TurnId(kept.turn),
                    time=format_time(kept.time_ms),
                    files=kept.files,
                    unkept=kept.unkept,
                )
                for kept in page
            ),
            next=page[-1].turn if page and start + limit < len(found) else None,
        )

    async def diff(self, turn: TurnId, *, limit: int, after: str | None) -> TurnDiff:
        """What a turn did to files.

        Raises:
            SessionNotFound: There is no such turn.
            CursorExpired: `after` is no number of the list.
            StoreError: It cannot be read.
        """
        self._since(turn)
        start = 0
        if after is not None:
            if not (after.isascii() and after.isdecimal() and len(after) < _DIGITS):
                raise CursorExpired(f"The list cannot go on from {after[:80]!r}; read it anew.")
            start = int(after)
        changes, following = await self._kept.diff(self._log.session, turn, start, limit)
        return TurnDiff(turn=turn, changes=changes, next=str(following) if following else None)

    async def revert(
        self,
        turn: TurnId,
        *,
        skip_conflicts: bool,
        conversation: bool,
        remember: Remember | None = None,
    ) -> TurnReverted:
        """Put files back to what they were before a turn; who stops waiting does not stop it.

        The caller has made sure that nothing runs; no turn begins before it is done.

        Args:
            turn: The first turn that is undone.
            skip_conflicts: Whether to put back the others when somebody changed some since.
            conversation: Whether the conversation goes back as well.
            remember: How to keep the answer.

        Raises:
            SessionNotFound: There is no such turn.
            Rejected: The conversation cannot go back, for the turn is no longer in it.
            StoreError: It could not be done, or not be noted.
        """
        turns = self._since(turn)
        if conversation:
            self._inbox.check_in_conversation(turn)
        with self._runner.paused():
            work = self._revert(turns, skip_conflicts, conversation, remember)
            self._task = asyncio.create_task(work)
            return await asyncio.shield(self._task)

    def tell(self, outcomes: Sequence[RevertOutcome]) -> None:
        """Tell of what was put back before a crash, unless the session is closed."""
        if self._log.ahead.view.closed is None:
            for outcome in outcomes:
                self._tell(outcome)

    async def note_told(self, outcomes: Sequence[RevertOutcome]) -> None:
        """Let go of what was told, once that is durable.

        Raises:
            StoreError: It is not.
        """
        if outcomes:
            await self._log.settle()
        for outcome in outcomes:
            await self._kept.told(outcome)

    async def end(self) -> None:
        """Wait for what is under way."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _revert(
        self,
        turns: Sequence[TurnId],
        skip_conflicts: bool,
        conversation: bool,
        remember: Remember | None,
    ) -> TurnReverted:
        with self._runner.paused():
            outcome = await self._kept.revert(
                self._log.session, turns, skip_conflicts=skip_conflicts, rewinds=conversation
            )
            stays = outcome.conflicts and not skip_conflicts
            answer = TurnReverted(
                turn=turns[0],
                reverted=outcome.files,
                conflicts=outcome.conflicts,
                unkept=outcome.unkept,
                conversation=conversation and not stays,
            )
            if self._tell(msgspec.structs.replace(outcome, rewinds=answer.conversation)):
                if remember is not None:
                    self._log.keep(remember(answer))
                await self._log.settle()
            await self._kept.told(outcome)
        return answer

    def _tell(self, outcome: RevertOutcome) -> bool:
        """Emit what the log has to know; whether there was anything.

        The conversation goes back first: the model is told of the files behind that (A5.76).
        """
        turn = TurnId(outcome.turn)
        if outcome.rewinds:
            self._log.emit(Reverted(to_turn=turn), outside=True)
        if outcome.files:
            told = FilesReverted(
                turn=turn,
                files=outcome.files,
                conflicts=outcome.conflicts,
                unkept=outcome.unkept,
            )
            self._log.emit(told, outside=True)
        return outcome.rewinds or bool(outcome.files)

    def _since(self, turn: TurnId) -> list[TurnId]:
        """A turn and all later ones."""
        turns = list(self._log.ahead.turns)
        if turn not in turns:
            raise SessionNotFound(
                f"There is no turn {turn!r} in this session; read its view to see them."
            )
        return turns[turns.index(turn) :]
