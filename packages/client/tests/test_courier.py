"""What is said in a session, on its way: tries, waits, honest states (C4.9)."""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import msgspec
import pytest

from towline_client import (
    Client,
    CommandRejected,
    ConnectionLost,
    ContractUnavailable,
    LinkPolicy,
    Reply,
    Session,
    Unauthorized,
)
from towline_client.courier import MAX_DRAFTS
from towline_client.testing import (
    ManualClock,
    ScriptedServer,
    ScriptedTransport,
    ScriptedTurn,
    refuse,
)
from towline_client.transport import Call
from towline_protocol import (
    PromptId,
    SessionView,
    Text,
    TurnId,
    UsageError,
    block_text,
    parse_time,
)


class _Lane:
    """A client on a scripted server, with a clock that the test moves."""

    def __init__(self, server: ScriptedServer, client: Client, clock: ManualClock) -> None:
        self.server = server
        self.client = client
        self.clock = clock

    def sent(self, name: str = "send_prompt") -> list[Call]:
        """The calls of an operation that came."""
        return [call for call in self.server.calls if call.operation.name == name]

    async def pass_s(self, seconds: float) -> None:
        """Let time go by, a second after the other, and everybody act who can."""
        for step_ms in (*[1000] * int(seconds), int(seconds % 1 * 1000)):
            await self.settle()
            self.clock.advance(step_ms)
        await self.settle()

    async def settle(self) -> None:
        """Let everybody go on who can."""
        for _ in range(30):
            await asyncio.sleep(0)


@asynccontextmanager
async def _lane(server: ScriptedServer | None = None) -> AsyncGenerator[_Lane]:
    server = server or ScriptedServer()
    clock = ManualClock()
    policy = LinkPolicy(silence_ms=3_600_000)  # the clock runs on while nothing is said
    transport = ScriptedTransport(server)
    async with asyncio.timeout(10), server:
        client = Client("", "token", transport=transport, clock=clock, policy=policy)
        async with client:
            yield _Lane(server, client, clock)
    assert asyncio.all_tasks() == {asyncio.current_task()}


def _states(session: Session) -> list[tuple[str, str]]:
    return [(block_text(entry.content), entry.state) for entry in session.view.outgoing]


def _said(view: SessionView) -> list[str]:
    return [block_text(entry.content) for entry in view.messages if entry.role == "user"]


@pytest.mark.rules("C2.5", "C4.9")
async def test_a_prompt_whose_replies_are_lost_is_sent_under_one_key_until_it_is_acknowledged() -> (
    None
):
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.extend(["send_prompt"] * 5)
        asking = asyncio.create_task(session.ask("once"))
        await lane.pass_s(1 + 2 + 4 + 8 + 8)
        assert await asking == "You said: once"
        assert len(lane.sent()) == 6
        assert len({call.headers["idempotency-key"] for call in lane.sent()}) == 1
        assert _said(session.view) == ["once"]
        assert session.view.outgoing == ()


@pytest.mark.rules("C4.9")
async def test_a_prompt_is_shown_as_sending_until_the_log_has_it() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        busy = refuse("draining", "The server restarts; wait.", retry_after_s=3)
        lane.server.replies["send_prompt"] = deque([busy])
        saying = asyncio.create_task(session.prompt("Hello", when="queue", key="mine"))
        await lane.settle()
        (shown,) = session.view.outgoing
        assert (shown.key, shown.when, shown.state) == ("mine", "queue", "sending")
        assert shown.content == (Text(text="Hello"),)
        assert shown.message == "The server restarts; wait."
        assert parse_time(shown.begun) > 0
        await lane.pass_s(2)
        assert len(lane.sent()) == 1, "not before the time that the server named"
        await lane.pass_s(1)
        await saying
        await lane.settle()
        assert session.view.outgoing == ()
        assert _said(session.view) == ["Hello"]


@pytest.mark.rules("C4.9")
async def test_an_acknowledged_prompt_is_accepted_until_the_line_brings_it() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        session.stop()
        await session.prompt("Hello")
        assert _states(session) == [("Hello", "accepted")]
        session.start()
        await lane.settle()
        assert session.view.outgoing == ()
        assert _said(session.view) == ["Hello"]


@pytest.mark.rules("C4.9")
async def test_a_prompt_that_the_log_shows_is_not_on_its_way_though_its_reply_is_lost() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.append("send_prompt")
        saying = asyncio.create_task(session.prompt("Hello"))
        await lane.settle()
        assert _said(session.view) == ["Hello"]
        assert session.view.outgoing == ()
        await lane.pass_s(1)
        await saying
        assert session.view.outgoing == ()


@pytest.mark.rules("C4.9")
async def test_a_prompt_that_came_and_went_while_its_reply_was_lost_is_on_its_way_no_more() -> None:
    started = asyncio.Event()

    async def hang(turn: ScriptedTurn, text: str) -> None:
        del turn, text
        started.set()
        await asyncio.Event().wait()

    async with _lane(ScriptedServer(hang)) as lane:
        session = await lane.client.open()
        await session.prompt("first")
        await started.wait()
        lane.server.lose.append("send_prompt")
        saying = asyncio.create_task(session.prompt("second"))
        await lane.settle()
        (waiting,) = session.view.queue
        await session.withdraw(waiting.prompt)
        await lane.pass_s(1)
        assert (await saying).prompt == waiting.prompt
        assert session.view.outgoing == ()


@pytest.mark.rules("C4.9")
async def test_after_two_minutes_a_prompt_is_unknown_and_can_be_sent_again_or_dropped() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.extend(["send_prompt"] * 100)
        session.stop()
        saying = asyncio.create_task(session.prompt("Hello", key="mine"))
        await lane.pass_s(118)
        assert not saying.done()
        await lane.pass_s(2)
        with pytest.raises(ConnectionLost):
            await saying
        assert _states(session) == [("Hello", "unknown")]
        tries = len(lane.sent())
        await lane.pass_s(60)
        assert len(lane.sent()) == tries, "nothing is sent behind anybody's back"
        lane.server.lose.clear()
        accepted = await session.send_again("mine")
        assert lane.sent()[-1].headers["idempotency-key"] == "mine"
        session.start()
        assert await session.wait_for(accepted) == "You said: Hello"
        assert _said(session.view) == ["Hello"]
        assert session.view.outgoing == ()
        with pytest.raises(UsageError, match="has come to nothing"):
            session.drop("mine")


@pytest.mark.rules("C4.9")
async def test_a_timeout_is_the_life_of_a_command() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.extend(["send_prompt"] * 100)
        saying = asyncio.create_task(session.prompt("Hello", timeout_s=5))
        await lane.pass_s(4.5)
        with pytest.raises(ConnectionLost):
            await saying
        assert [call.timeout_s for call in lane.sent()] == [5, 4, 2, 0.5]


@pytest.mark.rules("C4.9")
async def test_a_refused_prompt_is_told_and_kept_with_the_reason() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.replies["send_prompt"] = deque([refuse("rejected", "Too many blocks.")])
        with pytest.raises(CommandRejected, match="Too many blocks"):
            await session.prompt("Hello", key="mine")
        (shown,) = session.view.outgoing
        assert (shown.state, shown.message) == ("refused", "Too many blocks.")
        await session.send_again("mine")
        first, second = lane.sent()
        assert second.headers["idempotency-key"] != first.headers["idempotency-key"]
        assert second.body == first.body
        await lane.settle()
        assert session.view.outgoing == ()


@pytest.mark.rules("C2.5", "C4.9")
async def test_a_refusal_that_the_server_does_not_keep_leaves_the_key_as_it_is() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        session.stop()  # so that the log does not show it
        lane.server.lose.append("send_prompt")
        saying = asyncio.create_task(session.prompt("Hello", key="mine"))
        await lane.settle()
        lane.server.replies["send_prompt"] = deque([refuse("internal_error", "It failed.")])
        await lane.pass_s(1)
        with pytest.raises(CommandRejected):
            await saying
        accepted = await session.send_again("mine")
        session.start()
        await session.wait_for(accepted)
        assert _said(session.view) == ["Hello"]


@pytest.mark.rules("C4.9")
async def test_a_server_that_asks_for_more_time_than_there_is_has_refused() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        busy = refuse("rate_limited", "Come back tomorrow.", retry_after_s=86_400)
        lane.server.replies["send_prompt"] = deque([busy])
        with pytest.raises(CommandRejected, match="tomorrow"):
            await session.prompt("Hello")
        assert _states(session) == [("Hello", "refused")]


@pytest.mark.rules("C4.9")
@pytest.mark.parametrize("lost", [0, 1])
async def test_a_refused_credential_says_no_more_than_it_knows(lost: int) -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        session.stop()
        no = refuse("unauthorized", "The token was revoked; sign in again.")
        lane.server.lose.extend(["send_prompt"] * lost)
        saying = asyncio.create_task(session.prompt("Hello"))
        await lane.settle()
        if lost:
            lane.server.replies["send_prompt"] = deque([no])
            await lane.pass_s(1)
            with pytest.raises(Unauthorized):
                await saying
            assert _states(session) == [("Hello", "unknown")]  # the first try may have arrived
            return
        await saying
        lane.server.replies["send_prompt"] = deque([no])
        with pytest.raises(Unauthorized):
            await session.prompt("Again")
        assert _states(session) == [("Hello", "accepted"), ("Again", "refused")]


@pytest.mark.rules("C2.1", "C4.9")
async def test_a_page_of_the_network_leaves_it_open_whether_a_prompt_arrived() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        page = Reply(status=200, headers={"content-type": "text/html"}, body=b"<html>")
        lane.server.replies["send_prompt"] = deque([page])
        with pytest.raises(ContractUnavailable):
            await session.prompt("Hello")
        assert _states(session) == [("Hello", "unknown")]
        assert len(lane.sent()) == 1


@pytest.mark.rules("C4.9")
async def test_a_cancelled_prompt_is_sent_no_more_and_may_have_arrived() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        session.stop()
        lane.server.lose.extend(["send_prompt"] * 2)
        saying = asyncio.create_task(session.prompt("Hello", key="mine"))
        await lane.settle()
        saying.cancel()
        with pytest.raises(asyncio.CancelledError):
            await saying
        assert _states(session) == [("Hello", "unknown")]
        await lane.pass_s(10)
        assert len(lane.sent()) == 1
        session.start()
        await lane.settle()
        assert session.view.outgoing == (), "it had arrived: the log has it"
        assert _said(session.view) == ["Hello"]


@pytest.mark.rules("C4.9")
async def test_closing_ends_the_tries_and_tells_who_waits() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.extend(["send_prompt", "claim_call"])
        saying = asyncio.create_task(session.prompt("Hello"))
        await lane.settle()
        await session.close()
        with pytest.raises(ConnectionLost):
            await saying
        assert len(lane.sent()) == 1
        with pytest.raises(UsageError, match="closed here"):
            await session.prompt("more")


@pytest.mark.rules("C4.9")
async def test_only_what_came_to_nothing_can_be_dropped() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.append("send_prompt")
        session.stop()
        saying = asyncio.create_task(session.prompt("Hello", key="mine"))
        await lane.settle()
        for key in ("mine", "none"):
            with pytest.raises(UsageError, match=f"'{key}' has come to nothing"):
                session.drop(key)
            with pytest.raises(UsageError, match=f"'{key}' has come to nothing"):
                await session.send_again(key)
        saying.cancel()
        await asyncio.wait([saying])
        session.drop("mine")
        assert session.view.outgoing == ()


@pytest.mark.rules("C4.9")
async def test_of_drafts_only_the_newest_are_kept() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.replies["send_prompt"] = deque([refuse("rejected", "No.")] * (MAX_DRAFTS + 2))
        for number in range(MAX_DRAFTS + 2):
            with pytest.raises(CommandRejected):
                await session.prompt(str(number))
        assert [text for text, _ in _states(session)] == [
            str(number) for number in range(1, MAX_DRAFTS + 2)
        ]


@pytest.mark.rules("C2.5", "C4.9")
async def test_the_same_key_again_is_the_same_prompt_and_shown_once() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        session.stop()
        first, second = await asyncio.gather(
            session.prompt("Hello", key="mine"), session.prompt("Hello", key="mine")
        )
        assert first == second
        assert _states(session) == [("Hello", "accepted")]
        saying = asyncio.create_task(session.prompt("More", key="more"))
        await asyncio.sleep(0)
        saying.cancel()
        await asyncio.wait([saying])
        await session.prompt("More", key="more")
        assert _states(session) == [("Hello", "accepted"), ("More", "accepted")]


@pytest.mark.rules("C4.3", "C4.9")
async def test_a_view_that_is_fetched_later_holds_all_that_was_accepted_before() -> None:
    async def hang(turn: ScriptedTurn, text: str) -> None:
        del turn, text
        await asyncio.Event().wait()

    async with _lane(ScriptedServer(hang)) as lane:
        session = await lane.client.open()
        await session.prompt("first")
        await lane.settle()
        session.stop()
        gone = await session.prompt("second")
        await session.withdraw(gone.prompt)
        assert _states(session) == [("second", "accepted")]
        lane.clock.advance(60_001)  # past the warm window with a turn running
        session.start()
        await lane.settle()
        assert session.connection.value.phase == "live"
        assert session.view.queue == ()
        assert session.view.outgoing == ()


@pytest.mark.rules("C4.9")
async def test_what_replaces_a_turn_is_on_its_way_as_well() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        await session.ask("first")
        turn = session.view.messages[0].turn
        assert turn is not None
        lane.server.lose.extend(["resend", "retry", "fork_session"])
        session.stop()
        resending = asyncio.create_task(session.resend(turn, "better"))
        await lane.settle()
        assert _states(session) == [("better", "sending")]
        await lane.pass_s(1)
        await resending
        others = [asyncio.create_task(work) for work in (session.retry(), session.fork())]
        await lane.pass_s(1)
        await asyncio.gather(*others)
        assert [len(lane.sent(name)) for name in ("resend", "retry", "fork_session")] == [2, 2, 2]


@pytest.mark.rules("C4.9")
async def test_what_does_no_harm_twice_is_said_until_it_is_acknowledged() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        lane.server.lose.extend(["interrupt", "withdraw_prompt", "mark_read"])
        works = [
            asyncio.create_task(work)
            for work in (session.interrupt(TurnId("trn_none")), session.mark_read(1))
        ]
        withdrawing = asyncio.create_task(session.withdraw(PromptId("pmt_none")))
        await lane.pass_s(1)
        await asyncio.gather(*works)
        with pytest.raises(CommandRejected):
            await withdrawing
        assert session.view.outgoing == ()
        lane.server.lose.extend(["interrupt", "compact_session"])
        with pytest.raises(ConnectionLost):
            await session.interrupt()
        with pytest.raises(ConnectionLost):
            await session.compact()
        assert [len(lane.sent(name)) for name in ("interrupt", "compact_session")] == [3, 1]


async def test_a_large_prompt_has_more_time_for_a_try() -> None:
    async with _lane() as lane:
        session = await lane.client.open()
        await session.prompt("x" * (64 * 1024 * 10), timeout_s=600)
        (call,) = lane.sent()
        assert call.timeout_s == 40
        assert msgspec.json.decode(call.body or b"")["content"]
