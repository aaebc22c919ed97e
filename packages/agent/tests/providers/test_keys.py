"""Backup keys: what benches one, who is asked next, and what it means that none is left."""

import asyncio
import math
from collections.abc import Callable

import pytest

from towline_agent.errors import (
    AuthenticationFailed,
    ContextOverflow,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
)
from towline_agent.host import SystemClock
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
)
from towline_agent.providers.keys import Bench, KeyRing, shared_bench, show_key
from towline_agent.testing import FakeClock, Script, ScriptedProvider, say
from towline_protocol import Text, Usage, UsageError

MODEL = Model(provider="acme", id="anvil-1")
ONE, TWO, THREE = "sk-test-key-one-1111", "sk-test-key-two-2222", "sk-test-key-three-3333"
REQUEST = Request(model="anvil-1", messages=())
COST = Usage(input=7, output=1, cache_read=2, cache_write=3, reasoning=1)


class Pausing(ScriptedProvider):
    """A scripted provider with a pause of its own."""

    def __init__(self, *script: Script, pause_s: float = 0.0, model: Model = MODEL) -> None:
        super().__init__(*script, model=model)
        self.pause = pause_s

    def pause_s(self, tokens: int) -> float:
        return self.pause if tokens >= 0 else math.nan


def failed(error: ProviderError, *, streamed: bool = False, usage: Usage = COST) -> StepFailed:
    return StepFailed(error=error, streamed=streamed, usage=usage)


def rate(delay_s: float | None = None) -> RateLimited:
    return RateLimited("Slow down.", retry_after_s=delay_s, status=429, reason="rate_limit")


def quota(reason: str = "quota", suggested: str | None = None) -> QuotaExhausted:
    details = {"suggested_model": suggested} if suggested else None
    return QuotaExhausted("Used up.", reason=reason, status=429, details=details)


def wrong(status: int = 401) -> AuthenticationFailed:
    return AuthenticationFailed("Bad key.", reason="auth", status=status)


class World:
    """A ring of three keys on a bench and a clock of its own."""

    def __init__(self, *scripts: list[Script], clock: FakeClock | None = None) -> None:
        self.clock = clock or FakeClock()
        self.bench = Bench(self.clock)
        self.providers = [Pausing(*script) for script in scripts]
        self.ring = self.another()
        self.pieces: list[Piece] = []

    def another(self) -> KeyRing:
        """Another session's ring of the same keys and the same bench."""
        keys = (ONE, TWO, THREE)
        return KeyRing(dict(zip(keys, self.providers, strict=False)), bench=self.bench)

    async def step(self) -> StepResult:
        return await self.ring.step(REQUEST, self.pieces.append)

    async def fail(self) -> ProviderError:
        result = await self.step()
        assert isinstance(result, StepFailed)
        return result.error

    @property
    def asked(self) -> list[int]:
        return [len(provider.requests) for provider in self.providers]


def text(result: StepResult) -> str:
    assert isinstance(result, StepAnswer)
    block = result.content[0]
    assert isinstance(block, Text)
    return block.text


@pytest.mark.rules("A3.29")
async def test_the_first_key_is_asked_as_long_as_it_works() -> None:
    world = World(["one", "two"], [], [])
    assert [text(await world.step()), text(await world.step())] == ["one", "two"]
    assert world.asked == [2, 0, 0]
    assert world.ring.model is world.providers[0].model


@pytest.mark.rules("A3.30", "A3.31", "A4.48")
@pytest.mark.parametrize(
    "error",
    [rate(), quota(), quota("daily_limit"), quota("model_not_on_plan"), wrong(), wrong(403)],
    ids=lambda error: f"{error.reason}-{error.status}",
)
async def test_a_refused_key_is_benched_and_the_same_request_goes_to_the_next(
    error: ProviderError,
) -> None:
    world = World([failed(error)], [say("Hi", usage=COST), "again"], [])
    result = await world.step()
    assert text(result) == "Hi"
    assert world.providers[1].requests == [REQUEST]
    assert result.usage == COST + COST, "what the refused one counted is not lost"
    assert text(await world.step()) == "again"
    assert world.asked == [1, 2, 0]


@pytest.mark.rules("A2.76", "A3.31")
async def test_the_switch_is_told_without_telling_a_key() -> None:
    answer = StepAnswer(content=(Text(text="Hi"),), stop_reason="end_turn", notices=("odd",))
    world = World([failed(rate(30.0))], [failed(wrong())], [answer])
    result = await world.step()
    assert isinstance(result, StepAnswer)
    assert result.notices == (
        "Key …1111 of 'acme' is set aside for 30 s (rate_limit); the request went to key …2222.",
        "Key …2222 of 'acme' is set aside (auth); the request went to key …3333.",
        "odd",
    )
    assert "sk-" not in repr(world.ring)
    assert show_key("short") == "…"


@pytest.mark.rules("A3.30")
@pytest.mark.parametrize(
    ("error", "bench_s"),
    [
        (rate(30.0), 30.0),
        (rate(), 60.0),
        (rate(0.0), 1.0),
        (quota(), 3600.0),
        (quota("daily_limit"), 3600.0),
        (quota("model_not_on_plan"), 3600.0),
    ],
)
async def test_a_benched_key_is_asked_again_when_its_time_is_over(
    error: ProviderError, bench_s: float
) -> None:
    world = World([failed(error), "back"], ["two", "two"])
    await world.step()
    world.clock.advance(bench_s - 0.5)
    assert text(await world.step()) == "two"
    world.clock.advance(0.5)
    assert text(await world.step()) == "back"


@pytest.mark.rules("A3.30")
async def test_a_wrong_key_is_benched_until_it_is_edited() -> None:
    world = World([failed(wrong())], ["two", "two"])
    await world.step()
    world.clock.advance(10_000_000)
    assert text(await world.step()) == "two"
    edited = KeyRing({"sk-test-key-new-9999": Pausing("new"), TWO: Pausing()}, bench=world.bench)
    assert text(await edited.step(REQUEST, world.pieces.append)) == "new"


@pytest.mark.rules("A3.30")
@pytest.mark.parametrize(
    ("error", "is_of_model"),
    [
        (rate(), True),
        (quota("daily_limit"), True),
        (quota("model_not_on_plan"), True),
        (wrong(403), True),
        (quota(), False),
        (wrong(401), False),
    ],
)
async def test_a_limit_or_a_plan_is_of_one_model_and_credit_of_all(
    error: ProviderError, is_of_model: bool
) -> None:
    world = World([failed(error)], ["two"])
    await world.step()
    other = Model(provider="acme", id="anvil-flash")
    ring = KeyRing(
        {ONE: Pausing("one", model=other), TWO: Pausing("two", model=other)}, bench=world.bench
    )
    result = await ring.step(REQUEST, world.pieces.append)
    assert text(result) == ("one" if is_of_model else "two")


@pytest.mark.rules("A3.30")
async def test_all_sessions_know_what_one_has_met() -> None:
    world = World([failed(rate())], ["two", "three"])
    await world.step()
    assert text(await world.another().step(REQUEST, world.pieces.append)) == "three"
    assert world.asked == [1, 2]
    elsewhere = KeyRing(
        {ONE: Pausing("one", model=Model(provider="zenith", id="anvil-1")),
         TWO: Pausing(model=Model(provider="zenith", id="anvil-1"))},
        bench=world.bench,
    )  # fmt: skip
    assert text(await elsewhere.step(REQUEST, world.pieces.append)) == "one"


@pytest.mark.rules("A3.30")
async def test_a_key_that_another_session_benches_meanwhile_is_passed_over() -> None:
    gate = asyncio.Event()
    world = World([[gate, failed(rate(30.0))]], [failed(rate(9.0))], ["three", "three"])
    step = asyncio.create_task(world.step())
    await asyncio.sleep(0)
    world.bench.add(MODEL, TWO, rate(9.0))
    gate.set()
    async with asyncio.timeout(5):
        assert text(await step) == "three"
    assert world.asked == [1, 0, 1]


@pytest.mark.rules("A3.32")
async def test_nothing_is_sent_again_once_output_has_streamed() -> None:
    world = World([[TextPiece(0, "Hal"), failed(rate(30.0), streamed=True)]], ["two"])
    result = await world.step()
    assert isinstance(result, StepFailed)
    assert (result.streamed, result.usage) == (True, COST)
    assert world.asked == [1, 0]
    assert world.pieces == [TextPiece(0, "Hal")]
    assert text(await world.step()) == "two", "the key is benched all the same"


@pytest.mark.rules("A3.30")
@pytest.mark.parametrize(
    "error",
    [ProviderUnavailable("down"), RequestRejected("no"), ContextOverflow("long")],
    ids=lambda error: type(error).__name__,
)
async def test_what_every_key_would_meet_passes_through(error: ProviderError) -> None:
    world = World([failed(rate())], [failed(error), "later"], ["three"])
    result = await world.step()
    assert isinstance(result, StepFailed)
    assert result.error is error
    assert result.usage == COST + COST
    assert world.asked == [1, 1, 0]
    assert text(await world.step()) == "later"


@pytest.mark.rules("A3.33", "A4.48", "R53")
async def test_when_one_frees_soon_it_is_a_rate_limit_with_that_wait() -> None:
    last = rate(90.5)
    last.headers, last.body = {"retry-after": "90.5"}, '{"error":"slow"}'
    world = World([failed(quota())], [failed(rate(120.0))], [failed(last), "free"])
    result = await world.step()
    assert isinstance(result, StepFailed)
    error = result.error
    assert type(error) is RateLimited
    assert (error.retry_after_s, error.status, error.reason) == (91.0, 429, "rate_limit")
    assert (error.headers, error.body) == (last.headers, last.body)
    assert error.__cause__ is last
    assert error.message == (
        "All 3 keys unavailable for 'anvil-1' at 'acme' (2 rate_limit, 1 quota); "
        "one is free again in 91 s."
    )
    assert result.usage == COST + COST + COST
    assert not result.streamed
    world.clock.advance(91.0)
    assert text(await world.step()) == "free"


@pytest.mark.rules("A3.33")
async def test_while_all_are_benched_nobody_is_asked() -> None:
    world = World([failed(rate(100.0))], [failed(rate(50.0))])
    await world.fail()
    world.clock.advance(20.0)
    error = await world.fail()
    assert (type(error), error.retry_after_s, error.status) == (RateLimited, 30.0, None)
    assert world.asked == [1, 1]


@pytest.mark.rules("A3.34", "R53")
async def test_when_none_frees_soon_it_is_told_how_many_and_why() -> None:
    world = World(
        [failed(wrong())], [failed(quota("daily_limit", "anvil-flash"))], [failed(rate(121.0))]
    )
    error = await world.fail()
    assert type(error) is QuotaExhausted
    assert error.message.startswith("All 3 keys unavailable for 'anvil-1' at 'acme' (")
    for count in ("1 auth", "1 daily_limit", "1 rate_limit"):
        assert count in error.message
    assert (error.reason, error.retry_after_s, error.status) == ("keys_unavailable", None, 429)
    assert error.fault().details == {"suggested_model": "anvil-flash"}
    for key in (ONE, TWO, THREE):
        assert key not in error.message


@pytest.mark.rules("A3.34")
async def test_when_all_keys_are_wrong_it_is_the_keys_that_are_told() -> None:
    world = World([failed(wrong())], [failed(wrong())])
    error = await world.fail()
    assert type(error) is AuthenticationFailed
    assert "All 2 keys unavailable" in error.message
    assert "(2 auth); set a valid key." in error.message


@pytest.mark.rules("A3.33")
async def test_a_key_whose_time_comes_in_the_meantime_is_worth_a_short_wait() -> None:
    clock = FakeClock()
    gate = asyncio.Event()
    world = World([failed(rate(5.0))], [[gate, failed(quota())]], clock=clock)
    step = asyncio.create_task(world.step())
    await asyncio.sleep(0)
    clock.advance(10.0)
    gate.set()
    async with asyncio.timeout(5):
        result = await step
    assert isinstance(result, StepFailed)
    assert (type(result.error), result.error.retry_after_s) == (RateLimited, 1.0)


@pytest.mark.rules("A3.29")
async def test_one_key_alone_is_asked_as_if_there_were_no_ring() -> None:
    error = quota()
    world = World([failed(error), "topped up"])
    result = await world.step()
    assert isinstance(result, StepFailed)
    assert result.error is error
    assert text(await world.step()) == "topped up"


async def test_a_cancel_goes_through_and_benches_nobody() -> None:
    world = World([[asyncio.Event()], "one"], ["two"])
    step = asyncio.create_task(world.step())
    await asyncio.sleep(0)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step
    assert world.asked == [1, 0]
    assert text(await world.step()) == "one"


@pytest.mark.rules("A3.25", "A3.31")
async def test_a_key_that_is_free_now_goes_before_one_that_has_to_pause() -> None:
    world = World(["one"], ["two"], ["three"])
    one, two, three = world.providers
    one.pause, two.pause, three.pause = 20.0, 10.0, 15.0
    assert world.ring.pause_s(100) == 10.0
    two.pause = 0.0
    assert world.ring.pause_s(100) == 0.0
    assert text(await world.step()) == "two"
    two.pause = 10.0
    assert text(await world.step()) == "one", "when all have to pause, the order is theirs"
    for key in (ONE, TWO, THREE):
        world.bench.add(MODEL, key, quota())
    assert world.ring.pause_s(100) == 0.0, "the step fails at once and says why"
    plain = {ONE: ScriptedProvider(model=MODEL), TWO: Pausing(pause_s=9.0)}
    assert KeyRing(plain, bench=Bench(world.clock)).pause_s(1) == 0.0, "not all have pauses"


async def test_models_are_asked_of_the_first_usable_key() -> None:
    class Listing(Pausing):
        def __init__(self, name: str) -> None:
            super().__init__()
            self.name = name

        async def models(self) -> tuple[str, ...]:
            return (self.name,)

    bench = Bench(FakeClock())
    ring = KeyRing({ONE: Listing("one"), TWO: Listing("two")}, bench=bench)
    assert await ring.models() == ("one",)
    bench.add(MODEL, ONE, wrong())
    assert await ring.models() == ("two",)
    bench.add(MODEL, TWO, wrong())
    assert await ring.models() == ("one",)


async def test_closing_closes_all_even_when_one_cannot() -> None:
    class Broken(Pausing):
        async def aclose(self) -> None:
            await super().aclose()
            raise UsageError("It does not close.")

    providers = [Pausing(), Broken(), Pausing()]
    ring = KeyRing(dict(zip((ONE, TWO, THREE), providers, strict=True)), bench=Bench(FakeClock()))
    with pytest.raises(UsageError):
        await ring.aclose()
    assert [provider.closed for provider in providers] == [1, 1, 1]


def test_a_ring_is_of_one_model_and_has_a_key() -> None:
    other: Callable[[], Pausing] = lambda: Pausing(model=Model(provider="acme", id="other"))  # noqa: E731
    with pytest.raises(UsageError, match="one provider of the same model"):
        KeyRing({})
    with pytest.raises(UsageError, match="acme/anvil-1"):
        KeyRing({ONE: Pausing(), TWO: other()})


def test_the_bench_of_the_process_is_one_and_bounded() -> None:
    assert shared_bench() is shared_bench(SystemClock())
    clock = FakeClock()
    bench = shared_bench(clock)
    assert bench is shared_bench(clock)
    assert bench is not shared_bench(FakeClock())
    for number in range(1025):
        assert bench.add(MODEL, f"key {number}", wrong())
    assert bench.find(MODEL, "key 0") is None
    assert bench.find(MODEL, "key 1") is not None
    longest = bench.add(MODEL, "key 5", wrong())
    assert longest is not None
    assert math.isinf(longest.until_s)
    assert bench.add(MODEL, "key 5", ProviderUnavailable("down")) is None


def test_the_longer_of_two_reasons_holds() -> None:
    bench = Bench(FakeClock())
    bench.add(MODEL, ONE, rate(30.0))
    bench.add(MODEL, ONE, rate(5.0))
    row = bench.find(MODEL, ONE)
    assert row is not None
    assert row.until_s == 30.0
    bench.add(MODEL, ONE, quota())
    row = bench.find(MODEL, ONE)
    assert row is not None
    assert row.reason == "quota"
