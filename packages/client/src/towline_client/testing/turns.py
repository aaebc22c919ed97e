"""The turns of a scripted server: played one after another, stopped, answered."""

import asyncio
from collections.abc import Callable
from typing import Any

from towline_client.testing.log import ScriptedSession
from towline_client.testing.turn import Script, ScriptedTurn
from towline_protocol import (
    Limits,
    PromptDelivered,
    SessionId,
    TurnCancelled,
    TurnCompleted,
    TurnId,
    TurnStarted,
    Usage,
    block_text,
)

__all__ = ["Turns"]


class Turns:
    """Plays a script for every prompt, one turn of a session at a time."""

    def __init__(self, script: Script, mint: Callable[[str], str]) -> None:
        self._script = script
        self._mint = mint
        self._playing: dict[SessionId, asyncio.Task[None]] = {}
        self._stopped: list[asyncio.Task[None]] = []
        self._open: dict[str, asyncio.Future[Any]] = {}

    def start(self, session: ScriptedSession) -> None:
        """Run the prompts that wait, unless one runs already."""
        playing = self._playing.get(session.id)
        if session.view.queue and (playing is None or playing.done()):
            self._playing[session.id] = asyncio.create_task(self._play(session))

    def stop(self, session: ScriptedSession, reason: str) -> TurnId | None:
        """End the turn that runs; what waits stays waiting (C2.11)."""
        running = session.view.turn
        if running is None:
            return None
        playing = self._playing.pop(session.id, None)
        if playing is not None:
            playing.cancel()
            self._stopped.append(playing)
        session.emit(TurnCancelled(by="me", reason=reason, usage=Usage()), running.id)
        return running.id

    def settle(self, id_: str, value: object) -> bool:
        """Answer what a turn waits for; says whether it did wait."""
        found = self._open.get(id_)
        if found is None or found.done():
            return False
        found.set_result(value)
        return True

    async def end(self) -> None:
        """Stop all that plays, and wait for it; a bug in a script comes out here."""
        tasks = [*self._playing.values(), *self._stopped]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        for task in tasks:
            if not task.cancelled():
                task.result()

    def _expect(self, id_: str) -> asyncio.Future[Any]:
        self._open[id_] = asyncio.get_running_loop().create_future()
        return self._open[id_]

    async def _play(self, session: ScriptedSession) -> None:
        while session.view.queue:
            queued = session.view.queue[0]
            id_ = TurnId(self._mint("trn"))
            turn = ScriptedTurn(session, id_, mint=self._mint, expect=self._expect)
            turn.emit(PromptDelivered(prompt=queued.prompt, turn=id_, how="started"))
            turn.emit(TurnStarted(prompt=queued.prompt, model=session.view.model, limits=Limits()))
            await self._script(turn, block_text(queued.content))
            if session.view.turn is not None:
                usage = Usage(input=100, output=20)
                turn.emit(TurnCompleted(stop_reason="end_turn", usage=usage, cost=0.0))
