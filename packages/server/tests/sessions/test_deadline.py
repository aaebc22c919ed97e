"""When a request ends by itself: the moment, what moves it, and what readers are told of it."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from towline_agent.testing import FakeClock
from towline_protocol import parse_time
from towline_server.sessions.deadline import (
    BLIP_S,
    LEAST_LEFT_S,
    Deadline,
    OpenRequests,
)

WINDOW_S = 120.0
GRACE_S = 60.0
AWAY_S = 1800.0


def _permission(now_s: float = 0.0, left_s: float | None = None) -> Deadline:
    return Deadline(now_s, window_s=WINDOW_S, away_s=AWAY_S, left_s=left_s)


def _question(readers: int, *, now_s: float = 0.0, left_s: float | None = None) -> Deadline:
    return Deadline(now_s, window_s=GRACE_S, away_s=AWAY_S, readers=readers, left_s=left_s)


@pytest.mark.rules("C5.9")
def test_a_permission_ends_after_its_window_whoever_is_attached() -> None:
    deadline = _permission(now_s=5.0)
    assert deadline.at_s == 125.0
    for count in (1, 0):
        deadline.note_readers(count, 50.0)
        deadline.look(100.0)
        assert (deadline.at_s, deadline.wait_s(100.0)) == (125.0, 25.0)


@pytest.mark.rules("C5.9")
def test_people_who_are_called_have_longer_and_lose_nothing_when_they_come() -> None:
    deadline = _permission()
    deadline.note_wake_up(100.0)
    assert deadline.at_s == 100.0 + AWAY_S
    deadline.note_visible(200.0)
    assert deadline.at_s == 100.0 + AWAY_S
    deadline.note_visible(1890.0)
    assert deadline.at_s == 1890.0 + WINDOW_S


@pytest.mark.rules("C5.9", "C5.16")
def test_a_person_who_comes_to_look_has_the_whole_window_again() -> None:
    deadline = _permission()
    deadline.note_visible(119.0)
    assert deadline.at_s == 119.0 + WINDOW_S


@pytest.mark.rules("C5.9", "C5.16", "S19")
def test_a_question_has_no_end_while_somebody_is_attached_and_one_a_while_after_they_left() -> None:
    deadline = _question(readers=2)
    assert (deadline.at_s, deadline.wait_s(10.0)) == (None, None)
    deadline.note_readers(1, 1000.0)
    assert deadline.wait_s(1000.0) is None
    deadline.note_readers(0, 1000.0)
    deadline.look(1000.0 + BLIP_S)
    assert deadline.at_s == 1000.0 + GRACE_S
    deadline.note_readers(1, 1030.0)
    assert deadline.at_s is None


@pytest.mark.rules("C5.9")
def test_a_reader_that_is_back_at_once_never_left() -> None:
    deadline = _question(readers=1)
    deadline.note_readers(0, 10.0)
    assert deadline.wait_s(11.0) == BLIP_S - 1.0
    deadline.look(10.0 + BLIP_S - 1.0)
    deadline.note_readers(1, 10.0 + BLIP_S - 1.0)
    deadline.look(100.0)
    assert deadline.at_s is None


@pytest.mark.rules("C5.9")
@pytest.mark.parametrize(("called_s", "end_s"), [(2.0, 10.0), (11.0, 10.0), (40.0, 40.0)])
def test_a_question_of_which_people_were_told_waits_longer_for_them(
    called_s: float, end_s: float
) -> None:
    deadline = _question(readers=1)
    for now_s in sorted({called_s, 10.0, 10.0 + BLIP_S}):
        if now_s == 10.0:
            deadline.note_readers(0, now_s)
        if now_s == called_s:
            deadline.note_wake_up(now_s)
        deadline.look(now_s)
    assert deadline.at_s == end_s + AWAY_S


@pytest.mark.rules("C5.8", "S20")
@pytest.mark.parametrize(
    ("left_s", "kept_s"),
    [(70.0, 70.0), (3.0, LEAST_LEFT_S), (-50.0, LEAST_LEFT_S), (1700.0, 1700.0), (9e9, AWAY_S)],
)
def test_a_request_that_is_offered_again_has_the_time_it_had_left(
    left_s: float, kept_s: float
) -> None:
    assert _permission(now_s=7.0, left_s=left_s).at_s == 7.0 + kept_s


@pytest.mark.rules("C5.8", "C5.9")
def test_a_question_that_is_asked_again_waits_for_who_is_attached_and_else_for_what_was_left() -> (
    None
):
    assert _question(readers=1, left_s=30.0).at_s is None
    assert _question(readers=0, left_s=30.0).at_s == 30.0
    assert _question(readers=0).at_s == GRACE_S
    called = _question(readers=0, left_s=900.0)
    assert called.at_s == 900.0
    called.note_readers(1, 10.0)
    called.note_readers(0, 20.0)
    called.look(20.0 + BLIP_S)
    assert called.at_s == 20.0 + AWAY_S  # that people were called is known from the time left


class Shown:
    """One request in an `OpenRequests`, and what was shown of it."""

    def __init__(self, clock: FakeClock, deadline: Deadline) -> None:
        self.clock = clock
        self.requests = OpenRequests(clock)
        self.until: list[str | None] = []
        self.task = asyncio.create_task(self._wait(deadline))

    async def _wait(self, deadline: Deadline) -> None:
        with self.requests.hold("prm_1", deadline, self.until.append) as request:
            await request.wait()

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    def lefts(self) -> list[float | None]:
        """What was shown, as seconds from the clock's beginning."""
        start = FakeClock().now_ms()
        return [None if at is None else (parse_time(at) - start) / 1000 for at in self.until]


@pytest.fixture
async def shown() -> AsyncGenerator[Shown]:
    shown = Shown(FakeClock(held=True), _permission())
    await shown.settle()
    yield shown
    shown.task.cancel()
    await asyncio.wait({shown.task})
    assert not shown.requests.waiting


@pytest.mark.rules("C5.8")
async def test_whatever_moves_a_deadline_shows_the_request_again(shown: Shown) -> None:
    assert shown.lefts() == [WINDOW_S]
    shown.clock.advance(30)
    shown.requests.note_readers(1)
    await shown.settle()
    assert shown.lefts() == [WINDOW_S]  # nothing moved, so nothing is said
    shown.requests.note_wake_up()
    await shown.settle()
    assert shown.lefts() == [WINDOW_S, 30 + AWAY_S]
    shown.clock.advance(AWAY_S - 1)
    shown.requests.note_visible()
    await shown.settle()
    assert shown.lefts()[2:] == [29 + AWAY_S + WINDOW_S]
    assert not shown.task.done()
    shown.clock.advance(WINDOW_S)
    await shown.settle()
    assert shown.task.done()


@pytest.mark.rules("C5.8", "S10")
async def test_an_answered_request_is_never_shown_again(shown: Shown) -> None:
    shown.clock.advance(30)
    shown.requests.note_wake_up()
    shown.requests.answer("prm_1")  # before the move could be shown
    shown.requests.note_visible()
    await shown.settle()
    assert shown.task.done()
    assert shown.lefts() == [WINDOW_S]
    shown.requests.answer("prm_1")  # it waits no more: nothing to do


@pytest.mark.rules("C5.9")
async def test_a_line_that_comes_and_goes_is_not_told_of() -> None:
    shown = Shown(FakeClock(held=True), _question(readers=1))
    await shown.settle()
    for _ in range(1000):
        shown.requests.note_readers(0)
        await shown.settle()
        shown.clock.advance(BLIP_S - 1)
        shown.requests.note_readers(1)
        await shown.settle()
    assert shown.until == [None]
    shown.requests.note_readers(0)
    await shown.settle()
    left_s = shown.clock.monotonic()
    shown.clock.advance(BLIP_S)
    await shown.settle()
    assert shown.lefts() == [None, left_s + GRACE_S]
    shown.requests.note_readers(1)
    await shown.settle()
    assert shown.until[2:] == [None]
    shown.task.cancel()
    await asyncio.wait({shown.task})
