"""Keeping the next minute under a provider's limits."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.errors import RateLimited, StatedLimits
from towline_agent.host import SystemClock
from towline_agent.providers.pacing import Pacer, hash_key, shared_pacer
from towline_agent.testing import FakeClock
from towline_protocol import UsageError


def limited(
    *,
    requests: int | None = None,
    tokens: int | None = None,
    hit: str = "",
    delay_s: float | None = None,
) -> RateLimited:
    error = RateLimited("Too many.", retry_after_s=delay_s)
    error.limits = StatedLimits(requests=requests, tokens=tokens, hit=hit)
    return error


def test_nothing_is_held_back_while_no_limit_is_known() -> None:
    pacer = Pacer(FakeClock())
    for _ in range(1000):
        assert pacer.pause_s(1_000_000) == 0.0
        pacer.sent(1_000_000)
    assert pacer.limits == StatedLimits()


@pytest.mark.rules("A3.25", "A3.26")
def test_requests_of_a_sliding_minute_keep_under_the_set_limit() -> None:
    clock = FakeClock()
    pacer = Pacer(clock, requests=3)
    for _ in range(3):
        assert pacer.pause_s(10) == 0.0
        pacer.sent(10)
        clock.advance(10)
    assert pacer.pause_s(10) == 30.0, "the first of them leaves the window then"
    assert pacer.pause_s(10) == 30.0, "asking changes nothing"
    clock.advance(30)
    assert pacer.pause_s(10) == 0.0
    pacer.sent(10)
    assert pacer.pause_s(10) == 10.0


@pytest.mark.rules("A3.25", "A3.26")
def test_tokens_of_a_sliding_minute_keep_under_the_set_limit() -> None:
    clock = FakeClock()
    pacer = Pacer(clock, tokens=1000)
    for tokens in (300, 300, 300):
        pacer.sent(tokens)
        clock.advance(10)
    assert pacer.pause_s(100) == 0.0
    assert pacer.pause_s(101) == 30.0
    assert pacer.pause_s(400) == 30.0
    assert pacer.pause_s(401) == 40.0
    assert pacer.pause_s(5000) == 50.0, "what no window holds goes alone"
    clock.advance(50)
    assert pacer.pause_s(5000) == 0.0


@pytest.mark.rules("A3.26")
def test_the_answer_corrects_the_estimate() -> None:
    pacer = Pacer(FakeClock(), tokens=1000)
    sending = pacer.sent(200)
    assert pacer.pause_s(600) == 0.0
    pacer.answered(sending, 500)
    assert pacer.pause_s(600) == 60.0
    pacer.answered(sending, 0)
    assert pacer.pause_s(600) == 60.0, "a provider that counts nothing corrects nothing"


@pytest.mark.rules("A3.26")
def test_a_stated_limit_is_learned() -> None:
    clock = FakeClock()
    pacer = Pacer(clock)
    for _ in range(10):
        pacer.sent(100)
    assert not pacer.has_limits
    pacer.refused(limited(requests=20, tokens=1000))
    assert pacer.has_limits
    assert pacer.limits == StatedLimits(requests=20, tokens=1000)
    assert pacer.pause_s(100) == 0.0, "the refused one does not count"
    assert pacer.pause_s(101) == 60.0


@pytest.mark.rules("A3.26")
def test_without_a_stated_limit_it_is_what_was_seen_minus_one() -> None:
    clock = FakeClock()
    pacer = Pacer(clock)
    for _ in range(5):
        pacer.sent(100)
        clock.advance(1)
    pacer.refused(limited())
    assert pacer.limits == StatedLimits(requests=4)
    assert pacer.pause_s(1) == 55.0


@pytest.mark.rules("A3.26")
def test_where_tokens_were_too_many_it_is_nine_tenths_of_them() -> None:
    pacer = Pacer(FakeClock())
    pacer.sent(600)
    pacer.sent(400)
    pacer.refused(limited(hit="tokens"))
    assert pacer.limits == StatedLimits(tokens=900)
    assert pacer.pause_s(300) == 0.0
    assert pacer.pause_s(301) == 60.0


@pytest.mark.rules("A3.26")
def test_one_refused_request_alone_teaches_nothing() -> None:
    pacer = Pacer(FakeClock())
    pacer.sent(100)
    pacer.refused(limited(hit="requests"))
    assert pacer.limits == StatedLimits()
    pacer.refused(limited(hit="tokens"))
    assert pacer.limits == StatedLimits(), "nothing was sent at all"


@pytest.mark.rules("A3.26")
def test_the_refused_request_is_taken_out_and_no_other() -> None:
    clock = FakeClock()
    pacer = Pacer(clock, requests=2)
    first = pacer.sent(1)
    clock.advance(30)
    pacer.sent(1)
    pacer.refused(limited(), first)
    assert pacer.pause_s(1) == 0.0
    pacer.sent(1)
    assert pacer.pause_s(1) == 60.0
    clock.advance(60)
    pacer.refused(limited(), first)  # long gone


@pytest.mark.rules("A3.26")
def test_what_a_person_has_set_is_not_learned_over() -> None:
    pacer = Pacer(FakeClock(), requests=100)
    pacer.sent(10)
    pacer.sent(10)
    pacer.refused(limited(requests=5, tokens=700))
    assert pacer.limits == StatedLimits(requests=100, tokens=700)
    for wrong in (0, -1):
        with pytest.raises(UsageError, match="set 1 or more"):
            Pacer(FakeClock(), tokens=wrong)


@pytest.mark.rules("A3.27")
def test_a_learned_limit_is_forgotten_after_ten_minutes() -> None:
    clock = FakeClock()
    pacer = Pacer(clock)
    pacer.refused(limited(requests=1))
    clock.advance(599)
    pacer.sent(1)
    assert pacer.pause_s(1) == 60.0
    clock.advance(1)
    assert pacer.pause_s(1) == 0.0
    assert pacer.limits == StatedLimits()


@pytest.mark.rules("A3.25")
def test_a_stated_delay_holds_back_all_who_share_the_pacer() -> None:
    clock = FakeClock()
    pacer = Pacer(clock)
    pacer.sent(1)
    pacer.refused(limited(delay_s=20.0))
    assert pacer.pause_s(1) == 20.0
    pacer.refused(limited(delay_s=5.0))
    assert pacer.pause_s(1) == 20.0, "the longer one holds"
    clock.advance(20)
    assert pacer.pause_s(1) == 0.0
    pacer.refused(limited(delay_s=86_400.0))
    assert pacer.pause_s(1) == 60.0, "a longer wait is the loop's to show"


@pytest.mark.rules("A3.25")
@given(
    requests=st.none() | st.integers(1, 5),
    tokens=st.none() | st.integers(1, 100),
    sizes=st.lists(st.integers(0, 150), max_size=25),
    gaps=st.lists(st.floats(0, 30), min_size=25, max_size=25),
)
def test_whoever_waits_as_told_never_goes_over_a_limit(
    requests: int | None, tokens: int | None, sizes: list[int], gaps: list[float]
) -> None:
    clock = FakeClock()
    pacer = Pacer(clock, requests=requests, tokens=tokens)
    log: list[tuple[float, int]] = []
    for size, gap in zip(sizes, gaps, strict=False):
        clock.advance(gap)
        pause_s = pacer.pause_s(size)
        assert 0.0 <= pause_s <= 60.0
        clock.advance(pause_s)
        assert pacer.pause_s(size) == 0.0
        pacer.sent(size)
        log.append((clock.monotonic(), size))
        window = [row for row in log if row[0] + 60.0 > clock.monotonic()]
        assert requests is None or len(window) <= requests
        assert tokens is None or len(window) == 1 or sum(row[1] for row in window) <= tokens


@pytest.mark.rules("A3.25")
def test_there_is_one_pacer_for_a_credential_and_a_model() -> None:
    clock = FakeClock()
    pacer = shared_pacer("acme", "sk-1", "anvil", clock=clock)
    assert shared_pacer("acme", "sk-1", "anvil", clock=clock) is pacer
    others = [
        shared_pacer("acme", "sk-2", "anvil", clock=clock),
        shared_pacer("acme", None, "anvil", clock=clock),
        shared_pacer("acme", "sk-1", "hammer", clock=clock),
        shared_pacer("zenith", "sk-1", "anvil", clock=clock),
        shared_pacer("acme", "sk-1", "anvil", clock=FakeClock()),
    ]
    assert len({id(other) for other in [pacer, *others]}) == 6
    machine = shared_pacer("acme", "sk-1", "anvil")
    assert shared_pacer("acme", "sk-1", "anvil", clock=SystemClock()) is machine
    assert machine.pause_s(10) == 0.0


def test_the_pacers_of_a_process_are_bounded() -> None:
    clock = FakeClock()
    first = shared_pacer("acme", "sk-0", "anvil", clock=clock)
    for number in range(1, 300):
        shared_pacer("acme", f"sk-{number}", "anvil", clock=clock)
    assert shared_pacer("acme", "sk-0", "anvil", clock=clock) is not first


def test_a_hash_stands_for_the_key() -> None:
    assert hash_key("sk-secret-1234") == hash_key("sk-secret-1234")
    assert hash_key("sk-secret-1234") != hash_key("sk-secret-1235")
    assert "1234" not in hash_key("sk-secret-1234")
    assert hash_key(None) == hash_key("")
