"""The host for turns without a server: keeps the conversation in memory."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from towline_agent.host import Mint, Stop
from towline_protocol import (
    DENY,
    Event,
    Message,
    PermissionRequested,
    PermissionResolved,
    Private,
    PromptAdmitted,
    PromptBlock,
    PromptId,
    Text,
    Todo,
    TodosUpdated,
    ToolProposed,
    Transcript,
    TurnId,
    UsageError,
)

__all__ = ["Answerer", "LocalHost"]

Answerer = Callable[[PermissionRequested], Awaitable[str]]
"""Decides a permission request: returns the id of one offered option."""

_NOBODY: Final = "nobody"
_log: Final = logging.getLogger("towline.agent")


class LocalHost:
    """One turn's host for library users: durable means remembered."""

    def __init__(
        self,
        *,
        mint: Mint,
        earlier: tuple[Message, ...] = (),
        on_event: Callable[[Event], None] | None = None,
        answer: Answerer | None = None,
    ) -> None:
        self.transcript = Transcript(earlier)
        """The conversation so far."""
        self.turn = TurnId(mint("trn"))
        """The turn it hosts."""
        self.prompt = PromptId(mint("pmt"))
        """The prompt that starts it."""
        self.calls = 0
        """Calls that the model asked for."""
        self.todos: tuple[Todo, ...] = ()
        """The plan that the model keeps."""
        self.live = on_event is not None
        """Whether somebody follows the events as they come."""
        self._on_event = on_event
        self._answer = answer

    def admit(self, prompt: str | Sequence[PromptBlock]) -> None:
        """Take in the prompt that the turn will start with."""
        content = (Text(text=prompt),) if isinstance(prompt, str) else tuple(prompt)
        self.emit(PromptAdmitted(prompt=self.prompt, content=content, when="auto"))

    def emit(self, event: Event, private: tuple[Private, ...] = ()) -> None:
        """Remember an event and tell it on."""
        self.transcript.add(event, private, self.turn)
        if type(event) is ToolProposed:
            self.calls += 1
        elif type(event) is TodosUpdated:
            self.todos = event.todos
        if self._on_event is not None:
            self._on_event(event)

    async def settle(self) -> None:
        """Nothing to wait for: memory is at once."""

    async def ask(self, request: PermissionRequested) -> PermissionResolved:
        """Ask the callback; without one, deny (A5.68). What the callback raises ends the turn."""
        self.emit(request)
        option, by = DENY, "cancel"
        try:
            if self._answer is None:
                by = _NOBODY
            else:
                option, by = await _decide(self._answer, request), "callback"
        finally:  # a cancel resolves it too: nothing stays open
            resolved = PermissionResolved(permission=request.permission, option=option, by=by)
            self.emit(resolved)
        return resolved

    def steers(self) -> tuple[PromptId, ...]:
        """Nobody steers a turn that is called as a function."""
        return ()

    def stopped(self) -> Awaitable[Stop] | None:
        """Only a cancellation of the caller stops it."""


async def _decide(answer: Answerer, request: PermissionRequested) -> str:
    """What the callback decides; anything but an offered option denies.

    Raises:
        UsageError: The callback is no async function.
    """
    asked: object = answer(request)
    if not inspect.isawaitable(asked):
        raise UsageError(f"'answer' gave {asked!r} at once; make it an `async def` function.")
    option: object = await asked
    offered = [offer.id for offer in request.options]
    if option in offered:
        return str(option)
    if option != DENY:
        _log.warning(
            "'answer' gave %r for %r, which denies it; return one of %s.",
            option,
            request.title,
            ", ".join(map(repr, offered)),
        )
    return DENY  # fail closed
