"""The host of turns without a server."""

import asyncio

import pytest

from towline_agent.host import Host, SystemClock, mint_now
from towline_agent.local_host import LocalHost
from towline_agent.testing import counted_ids
from towline_protocol import (
    DENY,
    CallId,
    Event,
    Limits,
    Message,
    MessageEnded,
    MessageId,
    Option,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    Private,
    PromptAdmitted,
    PromptDelivered,
    Text,
    TextDelta,
    Thinking,
    ToolProposed,
    TurnStarted,
)

REQUEST = PermissionRequested(
    permission=PermissionId("prm_1"),
    call=CallId("call_1"),
    tool="send",
    title="send",
    preview=Preview(kind="text", text="to ann"),
    digest="d",
    options=(Option(id="allow_once", label="Allow"), Option(id=DENY, label="Deny")),
    expires_at="2026-01-01T00:00:00.000Z",
)


async def allow(_: PermissionRequested) -> str:
    return "allow_once"


def resolution(events: list[Event]) -> PermissionResolved:
    (resolved,) = [event for event in events if isinstance(event, PermissionResolved)]
    return resolved


def test_it_is_a_host() -> None:
    host: Host = LocalHost(mint=mint_now)
    assert host.steers() == ()


def test_a_prompt_is_part_of_the_conversation_once_it_is_delivered() -> None:
    seen: list[Event] = []
    earlier = (Message("user", (Text(text="Before"),)),)
    host = LocalHost(mint=counted_ids(), earlier=earlier, on_event=seen.append)
    host.admit("Hello")
    assert host.transcript.messages() == earlier
    host.emit(PromptDelivered(prompt=host.prompt, turn=host.turn, how="started"))
    assert host.transcript.messages() == (*earlier, Message("user", (Text(text="Hello"),)))
    assert [type(event) for event in seen] == [PromptAdmitted, PromptDelivered]
    assert (host.turn, host.prompt) == ("trn_1", "pmt_2")


def test_events_are_told_in_order_and_deltas_change_nothing() -> None:
    seen: list[Event] = []
    host = LocalHost(mint=counted_ids(), on_event=seen.append)
    message = MessageId("msg_1")
    events: list[Event] = [
        TurnStarted(prompt=host.prompt, model="m", limits=Limits()),
        TextDelta(message=message, block=0, at=0, text="a"),
        ToolProposed(call=CallId("call_1"), tool="t", arguments="", title="", effect="read"),
    ]
    for event in events:
        host.emit(event)
    assert seen == events
    assert host.transcript.messages() == ()
    assert host.calls == 1


def test_what_is_private_goes_back_to_the_provider() -> None:
    host = LocalHost(mint=counted_ids())
    ended = MessageEnded(message=MessageId("msg_1"), content=(Thinking(text="hm"),))
    host.emit(ended, (Private(block=0, signature="proof"),))
    ((block,),) = (message.content for message in host.transcript.messages())
    assert block == Thinking(text="hm", signature="proof")


async def test_memory_is_durable_at_once() -> None:
    seen: list[Event] = []
    host = LocalHost(mint=counted_ids(), on_event=seen.append)
    host.admit("Hello.")
    async with asyncio.timeout(5):
        await host.settle()
    assert len(seen) == 1  # told before anybody waited


async def test_the_callback_decides() -> None:
    seen: list[Event] = []
    host = LocalHost(mint=counted_ids(), on_event=seen.append, answer=allow)
    resolved = await host.ask(REQUEST)
    assert seen == [REQUEST, resolved]
    assert (resolved.option, resolved.by) == ("allow_once", "callback")


@pytest.mark.rules("A5.68")
async def test_without_a_callback_it_is_denied() -> None:
    resolved = await LocalHost(mint=counted_ids()).ask(REQUEST)
    assert (resolved.option, resolved.by) == (DENY, "nobody")


async def test_what_was_not_offered_is_a_denial() -> None:
    async def dream(_: PermissionRequested) -> str:
        return "allow_always"

    resolved = await LocalHost(mint=counted_ids(), answer=dream).ask(REQUEST)
    assert (resolved.option, resolved.by) == (DENY, "callback")


@pytest.mark.rules("R41", "C1.23")
async def test_a_cancel_or_a_broken_callback_leaves_no_request_open() -> None:
    async def never(_: PermissionRequested) -> str:
        await asyncio.Event().wait()
        raise AssertionError

    async def broken(_: PermissionRequested) -> str:
        raise ZeroDivisionError

    seen: list[Event] = []
    host = LocalHost(mint=counted_ids(), on_event=seen.append, answer=never)
    asking = asyncio.create_task(host.ask(REQUEST))
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking})
    assert asking.cancelled()
    assert (resolution(seen).option, resolution(seen).by) == (DENY, "cancel")
    seen.clear()
    with pytest.raises(ZeroDivisionError):
        await LocalHost(mint=counted_ids(), on_event=seen.append, answer=broken).ask(REQUEST)
    assert resolution(seen).option == DENY


def test_nobody_stops_it_but_its_caller() -> None:
    assert LocalHost(mint=counted_ids()).stopped() is None


async def test_the_machines_clock_goes_on() -> None:
    clock = SystemClock()
    before, now_ms = clock.monotonic(), clock.now_ms()
    async with asyncio.timeout(5):
        await clock.sleep(0)
    assert clock.monotonic() >= before
    assert now_ms > 1_700_000_000_000
