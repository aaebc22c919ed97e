"""What a log says of the tools that run in clients: who declared them, who took calls. Pure."""

from typing import Any, Final

import msgspec

from towline_protocol import (
    CallId,
    ClientCallClaimed,
    ClientCallOffered,
    ClientTool,
    Event,
    SessionCreated,
    SessionUpdated,
    ToolEnded,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnStarted,
)

__all__ = ["ClientState", "Offer"]

_Declared = dict[str | None, tuple[ClientTool, ...]]

_SEEN: Final = frozenset(
    {
        ClientCallClaimed, ClientCallOffered, SessionCreated, SessionUpdated, ToolEnded,
        TurnCancelled, TurnCompleted, TurnFailed, TurnStarted,
    }
)  # fmt: skip


class Offer(msgspec.Struct, frozen=True, kw_only=True):
    """An open call of a client's tool."""

    call: CallId
    """The call."""
    expires_at: str
    """Its deadline, RFC 3339."""
    claimed_by: str | None = None
    """The client that took it."""
    rounds: int = 1
    """How often it was offered to all: a second time after a client that took it was gone."""


class ClientState:
    """Folds a session's events into what its clients can run and what they are running."""

    def __init__(self) -> None:
        self.offers: dict[CallId, Offer] = {}
        """The calls that wait for a client or for its result."""
        self._declared: _Declared = {}
        self._turn_declared: _Declared = {}

    def take(self, event: Event) -> None:
        """Take in one stored event."""
        if type(event) in _SEEN:
            self._take(event)

    def tools(self, *, in_turn: bool) -> dict[str, ClientTool]:
        """The tools by name; of two declarations of one name the newer one counts.

        Args:
            in_turn: Those that the open turn began with, not those of the next one.
        """
        declared = self._turn_declared if in_turn else self._declared
        return {tool.name: tool for tools in declared.values() for tool in tools}

    @property
    def given(self) -> tuple[ClientTool, ...]:
        """The tools that the session was made with."""
        return self._declared.get(None, ())

    def of(self, reader: str) -> tuple[ClientTool, ...]:
        """What one client declared last."""
        return self._declared.get(reader, ())

    def names_beside(self, reader: str) -> set[str]:
        """The names that others than this client declared."""
        others = (tools for name, tools in self._declared.items() if name != reader)
        return {tool.name for tools in others for tool in tools}

    def declares(self, reader: str | None, name: str) -> bool:
        """Whether a client may run a tool: it declared it, or the session was made with it."""
        return any(
            tool.name == name
            for declared in (self._declared, self._turn_declared)
            for key in {None, reader}
            for tool in declared.get(key, ())
        )

    def _take(self, event: Any) -> None:
        match event:
            case ClientCallOffered():
                self._offer(event)
            case ClientCallClaimed() if event.call in self.offers:
                offer = self.offers[event.call]
                self.offers[event.call] = msgspec.structs.replace(offer, claimed_by=event.by)
            case ToolEnded():
                self.offers.pop(event.call, None)
            case SessionCreated() if event.tools:
                self._declared[None] = event.tools
            case SessionUpdated() if event.tools is not None:
                self._declared.pop(event.tools.reader, None)  # the newest one stands last
                if event.tools.tools:
                    self._declared[event.tools.reader] = event.tools.tools
            case TurnStarted():
                self._turn_declared = dict(self._declared)
            case TurnCompleted() | TurnFailed() | TurnCancelled():
                self.offers.clear()
            case _:
                pass

    def _offer(self, event: ClientCallOffered) -> None:
        former = self.offers.get(event.call)
        rounds = 1 if former is None else former.rounds
        if former is not None and former.claimed_by is not None and event.to is None:
            rounds += 1
        self.offers[event.call] = Offer(
            call=event.call, expires_at=event.expires_at, claimed_by=event.to, rounds=rounds
        )
