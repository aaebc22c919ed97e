"""Calls that run in a client: offered, taken by one, answered once (C5.12)."""

import asyncio
from collections.abc import Callable
from typing import Final

from towline_agent import Clock, OutcomeUnknown, Tool, ToolError, ToolOutput
from towline_protocol import (
    CallId,
    CallView,
    ClientCall,
    ClientCallClaimed,
    ClientCallEnded,
    ClientCallOffered,
    ClientTool,
    Envelope,
    Image,
    Notice,
    SessionUpdated,
    Text,
    ToolDeclaration,
    ToolEnded,
    ToolProgress,
    ToolsDeclared,
    encode,
    encode_event,
    format_time,
    parse_time,
)
from towline_server.errors import AlreadyAnswered, Rejected, SessionGone, SessionNotFound
from towline_server.sessions.agents import AgentSpec
from towline_server.sessions.client_result import ClientResult, check_result, result_digest
from towline_server.sessions.client_tool import (
    MAX_CLIENT_TOOLS,
    check_reader,
    check_tools,
    make_client_tool,
    taken_names,
    too_many,
)
from towline_server.sessions.deadline import LEAST_LEFT_S, ring_within
from towline_server.sessions.lead import Remember
from towline_server.sessions.log import Log
from towline_server.sessions.offer import Offer

__all__ = ["ClientCalls"]

_MAX_ROUNDS: Final = 2
"""How often a call is offered to all: once more after the client that took it was gone."""
_MAX_KNOWN: Final = 64  # answers whose repeats are told from others: they come within minutes
_ANSWERED: Final = ("completed", "failed")


class _Delivery:
    """A client's result on its way to the model."""

    def __init__(self, result: ClientResult, remember: Remember | None) -> None:
        self.result = result
        self.remember = remember
        self.taken = False
        self.status: str | None = None  # stays so when the call ends otherwise
        self.ended = asyncio.Event()


class ClientCalls:
    """The client tools of one session."""

    def __init__(
        self,
        log: Log,
        *,
        spec: Callable[[], AgentSpec],
        clock: Clock,
    ) -> None:
        """Take them over from the log.

        Args:
            log: The session's log.
            spec: Its agent.
            clock: Time.
        """
        self._log = log
        self._spec = spec
        self._clock = clock
        self._bells: dict[CallId, asyncio.Event] = {}
        self._deliveries: dict[CallId, _Delivery] = {}
        self._answers: dict[CallId, str] = {}
        self._told_late: set[CallId] = set()
        self._last_alive = log.view.updated

    @property
    def waiting(self) -> bool:
        """Whether the turn waits for a client right now."""
        return bool(self._bells)

    def tools(self, beside: tuple[Tool, ...] = ()) -> tuple[Tool, ...]:
        """What the turn that begins, or goes on, may call in clients.

        Args:
            beside: Other tools of the session; a client's one of the same name is left out.
        """
        spec = self._spec()
        taken = taken_names(spec) | {tool.name for tool in beside}
        state = self._log.ahead
        found = state.clients.tools(in_turn=state.view.turn is not None)
        return tuple(
            make_client_tool(tool, self._run, trusted=spec.trusts_client_effects)
            for tool in found.values()
            if tool.name not in taken
        )

    def offers(self, reader: str | None) -> bytes:
        """The offers that a client finds when it comes back, as frames of its stream alone.

        They have no number, since for the others nothing has happened.
        """
        state = self._log.ahead.clients
        frames: list[bytes] = []
        for call in self._log.view.open_calls:
            holder = call.claimed_by
            fits = state.declares(reader, call.tool) if holder is None else holder == reader
            if call.expires_at is None or not fits:
                continue
            event = ClientCallOffered(call=call.call, expires_at=call.expires_at, to=holder)
            now = format_time(self._clock.now_ms())
            envelope = Envelope(session=self._log.session, turn=call.turn, time=now, event=event)
            frames.append(encode_event(encode(envelope)))
        return b"".join(frames)

    # what clients ask

    async def declare(
        self, reader: str, tools: tuple[ClientTool, ...], remember: Remember | None = None
    ) -> ToolsDeclared:
        """Take what a client can run; it counts from the next turn on.

        Raises:
            UsageError: The client has no name that can be one.
            SessionGone: The session is closed.
            Rejected: The tools do not hold.
            StoreError: It could not be kept.
        """
        check_reader(reader)
        if self._log.ahead.view.closed is not None:
            raise SessionGone("The session is closed; start a new one.", reason="closed")
        check_tools(tools, taken_names(self._spec()))
        state = self._log.ahead.clients
        names = state.names_beside(reader) | {tool.name for tool in tools}
        if len(names) > MAX_CLIENT_TOOLS:
            raise too_many(len(names))
        answer = ToolsDeclared(reader=reader, tools=tuple(sorted(names)))
        if tools != state.of(reader):
            declaration = ToolDeclaration(reader=reader, tools=tools)
            self._log.emit(SessionUpdated(tools=declaration), outside=True)
            if remember is not None:
                self._log.keep(remember(answer))
        await self._log.settle()
        return answer

    async def claim(
        self, call: CallId, reader: str, remember: Remember | None = None
    ) -> ClientCall:
        """Give a call to a client; the first one gets it, and the same one again.

        Raises:
            UsageError: The client has no name that can be one.
            SessionNotFound: There is no such call of a client's tool.
            SessionGone: It has ended.
            AlreadyAnswered: Another client has it.
            Rejected: The client has not declared the tool.
            StoreError: It could not be kept.
        """
        check_reader(reader)
        offer = self._log.ahead.clients.offers.get(call)
        if offer is None:
            raise self._gone(self._find_ended(call))
        view = next(open_ for open_ in self._log.ahead.view.open_calls if open_.call == call)
        answer = ClientCall(
            call=call,
            tool=view.tool,
            arguments=view.arguments,
            by=reader,
            expires_at=offer.expires_at,
        )
        if offer.claimed_by is None:
            if not self._log.ahead.clients.declares(reader, view.tool):
                raise Rejected(
                    f"{reader!r} has not declared the tool {view.tool!r}; declare it first.",
                    reason="not_declared",
                )
            self._log.emit(ClientCallClaimed(call=call, by=reader))
            if remember is not None:
                self._log.keep(remember(answer))
        elif offer.claimed_by != reader:
            raise _taken(offer.claimed_by)
        await self._log.settle()
        return answer

    def report(self, call: CallId, reader: str, text: str, fraction: float | None) -> None:
        """Show how far a call is.

        Raises:
            SessionNotFound: There is no such call of a client's tool.
            SessionGone: It has ended.
            AlreadyAnswered: The client does not have it.
        """
        self._open_for(call, reader)
        self._log.emit(ToolProgress(call=call, text=text, fraction=fraction))

    async def finish(
        self,
        call: CallId,
        reader: str,
        content: tuple[Text | Image, ...],
        *,
        is_error: bool = False,
        remember: Remember | None = None,
    ) -> ClientCallEnded:
        """Take a client's result; the first one wins, and it is durable when this returns.

        Raises:
            SessionNotFound: There is no such call of a client's tool.
            SessionGone: It ended before; nothing comes of this result but a notice.
            AlreadyAnswered: The client does not have the call, or has answered otherwise.
            Rejected: A picture is none, or too large.
            StoreError: It could not be kept.
        """
        if call not in self._log.ahead.clients.offers:
            return await self._repeat(call, reader, check_result(content, is_error=is_error))
        self._open_for(call, reader)
        result = check_result(content, is_error=is_error)
        delivery = self._deliveries.get(call)
        if delivery is None:
            delivery = self._deliveries[call] = _Delivery(result, remember)
            if call in self._bells:
                self._bells[call].set()
        elif delivery.result.digest != result.digest:
            raise _answered(reader)
        await delivery.ended.wait()
        await self._log.settle()
        if delivery.status is None:
            raise await self._refuse_late(self._find_ended(call))
        return ClientCallEnded(call=call, status=delivery.status)

    # what the turn does

    def note_end(self, event: ToolEnded) -> None:
        """A call has ended in the log: whoever brought its result can be answered."""
        delivery = self._deliveries.pop(event.call, None)
        if delivery is None:
            return
        if delivery.taken:
            delivery.status = event.status
            while len(self._answers) >= _MAX_KNOWN:
                del self._answers[next(iter(self._answers))]
            self._answers[event.call] = delivery.result.digest
            if delivery.remember is not None:
                answer = ClientCallEnded(call=event.call, status=event.status)
                self._log.keep(delivery.remember(answer))
        delivery.ended.set()

    def close(self) -> None:
        """The session leaves memory: let go of those who wait for a call's end."""
        for delivery in self._deliveries.values():
            delivery.ended.set()

    async def _run(self, call: CallId, tool: ClientTool) -> ToolOutput:
        """Offer a call and wait for its result.

        Raises:
            ToolError: No client took it in time.
            OutcomeUnknown: The client that took it did not answer in time.
        """
        bell = self._bells[call] = asyncio.Event()
        try:
            left_s = self._begin(call, tool)
            while True:
                await self._log.settle()
                if call not in self._deliveries:
                    await ring_within(self._clock, bell, left_s)
                delivery = self._deliveries.get(call)
                if delivery is not None:
                    delivery.taken = True
                    result = delivery.result
                    return ToolOutput(content=result.content, is_error=result.is_error)
                self._pass_on(call, tool)
                left_s = tool.timeout_s
        finally:
            del self._bells[call]

    def _begin(self, call: CallId, tool: ClientTool) -> float:
        """Offer a call, or offer it again after a crash; gives the seconds to its deadline.

        Time in which no server ran does not count.
        """
        offer = self._log.ahead.clients.offers.get(call)
        if offer is None:
            self._emit_offer(call, tool.timeout_s)
            return tool.timeout_s
        left_s = (parse_time(offer.expires_at) - parse_time(self._last_alive)) / 1000
        left_s = min(tool.timeout_s, max(LEAST_LEFT_S, left_s))
        if call not in self._deliveries:
            self._emit_offer(call, left_s, to=offer.claimed_by)
        return left_s

    def _pass_on(self, call: CallId, tool: ClientTool) -> None:
        """The deadline has come: offer the call to all once more, if that can do no harm."""
        offer = self._log.ahead.clients.offers[call]
        holder = offer.claimed_by
        if holder is None:
            raise ToolError(
                f"No client took the call within {tool.timeout_s:g} s, so it was not run. It may "
                "be there again later."
            )
        harmless = tool.idempotent or self._is_read(call)
        if not harmless or offer.rounds >= _MAX_ROUNDS:
            raise OutcomeUnknown(
                f"The client {holder!r} took the call and did not answer within "
                f"{tool.timeout_s:g} s. It may or may not have had its effect; look before you "
                "repeat it."
            )
        self._emit_offer(call, tool.timeout_s)

    def _emit_offer(self, call: CallId, left_s: float, to: str | None = None) -> None:
        until = format_time(self._clock.now_ms() + round(left_s * 1000))
        self._log.emit(ClientCallOffered(call=call, expires_at=until, to=to))

    def _is_read(self, call: CallId) -> bool:
        """Whether the call only reads, as far as the agent trusts its clients."""
        calls = self._log.ahead.view.open_calls
        return any(open_.call == call and open_.effect == "read" for open_ in calls)

    # who may answer

    def _open_for(self, call: CallId, reader: str) -> Offer:
        """An open call that this client has."""
        offer = self._log.ahead.clients.offers.get(call)
        if offer is None:
            raise self._gone(self._find_ended(call))
        if offer.claimed_by is None:
            raise AlreadyAnswered(
                "Nobody has claimed this call; claim it before you run it.", reason="not_claimed"
            )
        if offer.claimed_by != reader:
            raise _taken(offer.claimed_by)
        return offer

    def _find_ended(self, call: CallId) -> CallView:
        for ended in reversed(self._log.ahead.view.calls):
            if ended.call == call and ended.expires_at is not None:
                return ended
        raise SessionNotFound(f"No client is asked for a call {call!r}; read the session's view.")

    def _gone(self, ended: CallView) -> SessionGone:
        return SessionGone(f"The call has ended as {ended.status!r}; drop it.", reason="expired")

    async def _repeat(self, call: CallId, reader: str, result: ClientResult) -> ClientCallEnded:
        """A result for a call that has ended: the same one again, another one, or a late one."""
        ended = self._find_ended(call)
        await self._log.settle()
        if ended.claimed_by is None or ended.status not in _ANSWERED:
            raise await self._refuse_late(ended)
        stored = result_digest(ended.content, is_error=ended.is_error)
        if ended.claimed_by != reader:
            raise _taken(ended.claimed_by)
        if result.digest not in (self._answers.get(call), stored):
            raise _answered(reader)
        return ClientCallEnded(call=call, status=ended.status)

    async def _refuse_late(self, ended: CallView) -> SessionGone:
        """Say once in the session that a result came too late, and nothing else (C5.7)."""
        if ended.call not in self._told_late and self._log.ahead.view.closed is None:
            self._told_late.add(ended.call)
            self._log.emit(
                Notice(
                    code="late_result",
                    message=f"A result of {ended.tool!r} came after its call had ended and was "
                    "left out.",
                    scope="session",
                ),
                outside=True,
            )
            await self._log.settle()
        return self._gone(ended)


def _taken(holder: str) -> AlreadyAnswered:
    return AlreadyAnswered(f"The client {holder!r} has this call; drop it.", reason="claimed")


def _answered(reader: str) -> AlreadyAnswered:
    return AlreadyAnswered(
        f"{reader!r} has answered this call otherwise; the first answer stands.",
        reason="already_resolved",
    )
