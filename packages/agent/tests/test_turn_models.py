"""Several models and several keys: who is asked next, and when."""

import msgspec
import pytest

from towline_agent.agent import Agent
from towline_agent.errors import (
    AuthenticationFailed,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
)
from towline_agent.providers.base import Model, StepFailed
from towline_agent.providers.keys import Bench, KeyRing
from towline_agent.testing import (
    FakeClock,
    Script,
    ScriptedHost,
    ScriptedProvider,
    call,
    say,
    scripted_plan,
)
from towline_agent.tools.function import tool
from towline_protocol import (
    Fallback,
    Notice,
    StepStarted,
    TurnCompleted,
    TurnFailed,
    Usage,
    Waiting,
)

ONE = Model(provider="p", id="one")
TWO = Model(provider="q", id="two", window=100_000, price_input=1.0, price_output=1.0)


def failed(kind: type[ProviderError], reason: str, **facts: object) -> StepFailed:
    return StepFailed(error=kind("No.", reason=reason), **facts)  # type: ignore[arg-type]


def limited() -> StepFailed:
    return failed(RateLimited, "rate_limit")


async def run(
    first: tuple[Script, ...], second: tuple[Script, ...]
) -> tuple[ScriptedHost, ScriptedProvider, ScriptedProvider]:
    one = ScriptedProvider(*first, model=ONE)
    two = ScriptedProvider(*second, model=TWO)
    host = ScriptedHost()
    await host.run(scripted_plan(one, look, fallbacks=(two,)))
    return host, one, two


@tool(effect="read")
async def look() -> str:
    """Look."""
    return "seen"


def models(host: ScriptedHost) -> list[str]:
    return [event.model for event in host.events if isinstance(event, StepStarted)]


@pytest.mark.rules("A3.35", "A4.59")
async def test_when_no_model_serves_the_error_says_what_the_one_before_met() -> None:
    gone = failed(ModelNotFound, "model_not_found")
    two = ScriptedProvider(StepFailed(error=AuthenticationFailed("There is no key.")), model=TWO)
    agent = Agent(ScriptedProvider(gone, model=ONE), fallbacks=[two])
    with pytest.raises(AuthenticationFailed) as caught:
        await agent.run("Hi")
    assert caught.value.__cause__ is gone.error


@pytest.mark.rules("A3.35")
@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        (QuotaExhausted, "quota"),
        (QuotaExhausted, "daily_limit"),
        (QuotaExhausted, "model_not_on_plan"),
        (ModelNotFound, "model_not_found"),
    ],
)
async def test_the_next_model_serves_what_the_first_cannot(
    kind: type[ProviderError], reason: str
) -> None:
    host, one, two = await run((failed(kind, reason),), (call("look"), "Done."))
    assert len(one.requests) == 1
    (switch,) = [event for event in host.events if isinstance(event, Fallback)]
    assert (switch.from_, switch.to) == ("p/one", "q/two")
    assert switch.fault.reason == reason
    assert models(host) == ["p/one", "q/two", "q/two"]  # it stays for the turn
    assert [request.model for request in two.requests] == ["two", "two"]
    assert two.requests[0].max_tokens == 8192  # by the facts of the model that is asked now
    assert isinstance(host.events[-1], TurnCompleted)


@pytest.mark.rules("A3.16", "A3.35")
@pytest.mark.parametrize("reason", ["overloaded", "server"])
async def test_a_model_that_is_down_is_tried_again_before_the_next_one_is_asked(
    reason: str,
) -> None:
    down = failed(ProviderUnavailable, reason)
    host, one, two = await run((down, down, down, down), ("Up.",))
    assert (len(one.requests), len(two.requests)) == (4, 1)
    waits = [event.reason for event in host.events if isinstance(event, Waiting)]
    assert waits == ["retry", "retry", "retry"]


@pytest.mark.rules("A3.16", "A3.23")
async def test_the_next_model_is_asked_when_the_rate_limit_outlasts_its_waits() -> None:
    host, one, two = await run((limited(),) * 7, ("Up.",))
    assert (len(one.requests), len(two.requests)) == (7, 1)
    waits = [event.reason for event in host.events if isinstance(event, Waiting)]
    assert waits == ["rate_limit"] * 6
    assert isinstance(host.events[-1], TurnCompleted)


@pytest.mark.rules("A3.35")
@pytest.mark.parametrize(
    "failure",
    [
        failed(AuthenticationFailed, "auth"),
        failed(ProviderError, "request_rejected"),
        failed(QuotaExhausted, "quota", streamed=True),
    ],
)
async def test_what_another_model_would_not_mend_ends_the_turn(failure: StepFailed) -> None:
    host, _, two = await run((failure,), ("never",))
    assert two.requests == []
    assert isinstance(host.events[-1], TurnFailed)


@pytest.mark.rules("A3.35", "A4.48")
async def test_the_last_model_in_the_chain_says_what_is_wrong() -> None:
    spent = failed(QuotaExhausted, "quota", usage=Usage(input=7))
    host, _, _ = await run((spent,), (failed(ModelNotFound, "model_not_found"),))
    end = host.events[-1]
    assert isinstance(end, TurnFailed)
    assert end.fault.code == "provider_model_not_found"
    assert end.usage == Usage(input=7)


@pytest.mark.rules("A3.16", "A3.31")
async def test_keys_come_before_waits_and_waits_before_models() -> None:
    clock = FakeClock()
    keys = [ScriptedProvider(*(limited(),) * 9, model=ONE) for _ in range(2)]
    ring = KeyRing({f"key-{n}": member for n, member in enumerate(keys)}, bench=Bench(clock))
    other = ScriptedProvider("Up.", model=TWO)
    host = ScriptedHost()
    plan = scripted_plan(ring, fallbacks=(other,), clock=clock)
    end = await host.run(plan)
    assert isinstance(end.event, TurnCompleted)
    assert [len(member.requests) for member in keys] == [7, 7]  # both, before each wait
    kinds = [
        event.reason if isinstance(event, Waiting) else type(event).__name__
        for event in host.events
        if isinstance(event, Waiting | Fallback)
    ]
    assert kinds == ["rate_limit"] * 6 + ["Fallback"]


class Busy(ScriptedProvider):
    """Knows its limits."""

    def __init__(self, *script: Script, pauses: list[float]) -> None:
        super().__init__(*script, model=ONE)
        self.pauses = pauses
        self.asked: list[int] = []

    def pause_s(self, tokens: int) -> float:
        """The next pause."""
        self.asked.append(tokens)
        return self.pauses.pop(0) if self.pauses else 0.0


@pytest.mark.rules("A3.24", "A3.25", "A4.2")
async def test_a_request_is_held_back_before_a_limit_is_hit_where_people_see_it() -> None:
    clock = FakeClock()
    provider = Busy("Done.", pauses=[5.0, 1.5])
    host = ScriptedHost("x" * 400)
    end = await host.run(scripted_plan(provider, clock=clock))
    assert clock.sleeps == [5.0, 1.5]
    assert provider.asked == [100, 100, 100]
    waits = [event.reason for event in host.events if isinstance(event, Waiting)]
    assert waits == ["pace", "pace"]
    assert end.spent.steps == 1


@pytest.mark.rules("A3.25")
async def test_one_that_says_it_has_no_limits_is_not_asked_until_it_has_some() -> None:
    class Free(Busy):
        has_limits = False

    clock = FakeClock()
    provider = Free("Done.", "Done again.", pauses=[5.0])
    assert (await ScriptedHost("Hi").run(scripted_plan(provider, clock=clock))).error is None
    assert provider.asked == []
    provider.has_limits = True
    await ScriptedHost("Hi").run(scripted_plan(provider, clock=clock))
    assert clock.sleeps == [5.0]


@pytest.mark.rules("A3.25")
async def test_nobody_is_held_back_for_ever() -> None:
    provider = Busy("Done.", pauses=[500.0] * 100)
    clock = FakeClock()
    await ScriptedHost().run(scripted_plan(provider, clock=clock))
    assert clock.sleeps == [120.0] * 6


@pytest.mark.rules("A3.35", "A3.34")
async def test_the_next_model_is_asked_when_all_keys_are_out_of_credit() -> None:
    clock = FakeClock()
    spent = failed(QuotaExhausted, "quota")
    keys = {f"key-{n}": ScriptedProvider(spent, model=ONE) for n in range(2)}
    other = ScriptedProvider("Up.", model=TWO)
    plan = scripted_plan(KeyRing(keys, bench=Bench(clock)), fallbacks=(other,), clock=clock)
    assert isinstance((await ScriptedHost().run(plan)).event, TurnCompleted)
    wrong = failed(AuthenticationFailed, "auth")
    keys = {f"bad-{n}": ScriptedProvider(wrong, model=ONE) for n in range(2)}
    plan = scripted_plan(KeyRing(keys, bench=Bench(clock)), fallbacks=(other,), clock=clock)
    assert isinstance((await ScriptedHost().run(plan)).event, TurnFailed)


@pytest.mark.rules("A4.49")
async def test_an_answer_that_nobody_counted_has_an_unknown_cost() -> None:
    said = say("Hi.", usage=Usage())
    host = ScriptedHost()
    end = await host.run(scripted_plan(ScriptedProvider(said, model=TWO)))
    assert end.spent.cost is None
    free = Model(provider="p", id="free", price_input=0.0, price_output=0.0)
    end = await ScriptedHost().run(
        scripted_plan(ScriptedProvider(say("Hi.", usage=Usage()), model=free))
    )
    assert end.spent.cost == 0.0


@pytest.mark.rules("A1.19")
async def test_what_is_left_out_of_every_request_is_told_once_a_turn() -> None:
    answers = [
        msgspec.structs.replace(call("look"), notices=("No effort here.",)) for _ in range(2)
    ]
    host, _, _ = await run(
        (*answers, msgspec.structs.replace(say("x"), notices=("No effort here.",))), ()
    )
    told = [event.message for event in host.events if isinstance(event, Notice)]
    assert told == ["No effort here."]
