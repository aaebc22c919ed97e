"""Limits of time that share one timer."""

import asyncio
import gc
import weakref
from contextlib import suppress
from typing import Any

import pytest

from towline_agent.limits import TimeLimit

LONG_S = 60.0
SHORT_S = 0.02


async def hang(seconds: float | None) -> None:
    with TimeLimit(seconds):
        await asyncio.Event().wait()


async def test_a_block_that_takes_longer_is_cancelled_and_says_that_its_time_was_up() -> None:
    limit = TimeLimit(SHORT_S)
    with pytest.raises(TimeoutError), limit:
        await asyncio.Event().wait()
    assert limit.expired
    me = asyncio.current_task()
    assert me is not None
    assert not me.cancelling()


async def test_a_block_in_time_is_left_alone_and_so_is_what_comes_after_it() -> None:
    with TimeLimit(SHORT_S) as limit:
        await asyncio.sleep(0)
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(SHORT_S * 2, later.set)
    with TimeLimit(None) as none:
        await later.wait()
    assert not limit.expired
    assert not none.expired


async def test_each_of_many_limits_is_due_at_its_own_time_whichever_was_set_first() -> None:
    async with asyncio.timeout(5):
        waits = [asyncio.create_task(hang(s)) for s in (LONG_S, 0.06, SHORT_S, 0.04, SHORT_S)]
        ended: list[int] = []
        for place, wait in enumerate(waits):
            wait.add_done_callback(lambda _, place=place: ended.append(place))
        await asyncio.wait(waits[1:])
        await asyncio.sleep(0)
        assert sorted(ended[:2]) == [2, 4]
        assert ended[2:] == [3, 1]
        assert all(isinstance(wait.exception(), TimeoutError) for wait in waits[1:])
        waits[0].cancel()
        await asyncio.wait(waits[:1])
    assert waits[0].cancelled()


async def hang_anew(seconds: float, then_s: float) -> None:
    with TimeLimit(seconds) as limit:
        limit.restart(then_s)
        await asyncio.Event().wait()


async def test_a_limit_that_is_begun_anew_is_due_later_or_before_the_timer_was_to_ring() -> None:
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    async with asyncio.timeout(5):
        with pytest.raises(TimeoutError):
            await hang_anew(SHORT_S, SHORT_S * 3)
        assert loop.time() >= began_s + SHORT_S * 3
        with pytest.raises(TimeoutError):
            await hang_anew(LONG_S, SHORT_S)


async def test_a_limit_that_was_left_cancels_nothing_when_it_is_begun_anew() -> None:
    with TimeLimit(LONG_S) as left:
        await asyncio.sleep(0)
    left.restart(0.0)
    later = asyncio.Event()
    asyncio.get_running_loop().call_later(SHORT_S, later.set)
    await later.wait()
    assert not left.expired


async def test_a_cancel_from_outside_goes_on_as_one_even_when_the_time_is_up_with_it() -> None:
    async def stubborn() -> None:
        with TimeLimit(SHORT_S):
            try:
                await asyncio.Event().wait()
            finally:
                running.cancel()

    running = asyncio.create_task(stubborn())
    async with asyncio.timeout(5):
        await asyncio.wait({running})
    assert running.cancelled()


async def test_the_inner_of_two_limits_may_be_up_without_the_outer() -> None:
    with TimeLimit(LONG_S) as outer, suppress(TimeoutError):
        await hang(SHORT_S)
    assert not outer.expired


async def test_a_failure_after_its_time_stays_that_failure() -> None:
    async def fail_late() -> None:
        with TimeLimit(SHORT_S):
            try:
                await asyncio.Event().wait()
            finally:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await fail_late()


async def test_limits_that_are_up_leave_a_longer_one_with_its_one_timer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    loop = asyncio.get_running_loop()
    set_at: list[float] = []
    call_at = loop.call_at

    def count(when: float, *call: Any, **more: Any) -> asyncio.TimerHandle:
        set_at.append(when)
        return call_at(when, *call, **more)

    monkeypatch.setattr(loop, "call_at", count)
    with TimeLimit(LONG_S) as longest:
        for _ in range(5):
            with pytest.raises(TimeoutError):
                await hang(0.0)
    assert set_at.count(longest.due_s) == 1
    assert len(set_at) == 6


def test_it_needs_a_task_to_cancel() -> None:
    async def enter() -> None:
        loop = asyncio.get_running_loop()
        done = loop.create_future()

        def call() -> None:
            try:
                with TimeLimit(SHORT_S):
                    done.set_result(None)
            except RuntimeError as error:
                done.set_exception(error)

        loop.call_soon(call)
        await done

    with pytest.raises(RuntimeError, match="none is running"):
        asyncio.run(enter())


def test_a_loop_that_is_over_is_not_kept() -> None:
    loop = asyncio.new_event_loop()

    async def enter() -> None:
        with TimeLimit(LONG_S):
            await asyncio.sleep(0)

    loop.run_until_complete(enter())
    loop.close()
    gone = weakref.ref(loop)
    del loop
    gc.collect()
    assert gone() is None


def test_a_loop_that_was_closed_under_a_limit_is_let_go_with_the_next_one() -> None:
    """What waits for ever in it holds the loop, and so the loop's own watch would keep it."""
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(hang(LONG_S))
    loop.run_until_complete(asyncio.sleep(0))
    loop.set_exception_handler(say_nothing)  # that it was left is known here
    loop.close()
    gone = weakref.ref(loop)
    del loop, waiting
    asyncio.run(hang_not())
    gc.collect()
    assert gone() is None


def say_nothing(_loop: asyncio.AbstractEventLoop, _told: dict[str, Any]) -> None:
    """Takes what a loop complains of."""


async def hang_not() -> None:
    with TimeLimit(LONG_S):
        await asyncio.sleep(0)
