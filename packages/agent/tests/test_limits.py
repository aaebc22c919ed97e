"""The bounds of a turn, and cutting to them."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.agent import Agent
from towline_agent.limits import (
    MAX_RESULT_CHARS,
    Slot,
    Spent,
    cut_result,
    first_sentence,
    result_cap,
)
from towline_agent.providers.base import Model
from towline_agent.testing import ScriptedProvider
from towline_protocol import Image, Limits, ResultBlock, Text, Usage, block_text

PICTURE = Image(media_type="image/png", data="AAAA")


@pytest.mark.rules("A4.8")
@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (Limits(max_steps=4), None),
        (Limits(max_steps=3), "max_steps"),
        (Limits(max_steps=4, max_tokens=111), None),
        (Limits(max_steps=4, max_tokens=110), "budget"),
        (Limits(max_steps=4, max_cost=0.6), None),
        (Limits(max_steps=4, max_cost=0.5), "budget"),
        (Limits(max_steps=3, max_cost=0.5), "max_steps"),
    ],
)
def test_a_bound_is_over_when_it_is_reached(limits: Limits, reason: str | None) -> None:
    usage = Usage(input=10, output=20, cache_read=30, cache_write=50, reasoning=15)
    spent = Spent(steps=3)
    spent.add(usage, 0.5)
    assert spent.over(limits) == reason


@pytest.mark.rules("A4.49")
def test_a_cost_that_is_unknown_once_stays_unknown() -> None:
    spent = Spent()
    assert spent.cost == 0.0
    spent.add(Usage(input=1), 0.25)
    spent.add(Usage(output=2), 0.25)
    assert (spent.usage, spent.cost) == (Usage(input=1, output=2), 0.5)
    spent.add(Usage(input=1), None)
    spent.add(Usage(input=1), 0.25)
    assert spent.cost is None


@pytest.mark.rules("A4.8")
def test_a_budget_is_held_against_what_is_known_to_be_spent() -> None:
    spent = Spent()
    spent.add(Usage(input=1), None)
    spent.add(Usage(input=1), 0.25)
    assert spent.over(Limits(max_cost=0.5)) is None
    spent.add(Usage(input=1), 0.25)
    assert spent.cost is None
    assert spent.over(Limits(max_cost=0.5)) == "budget"


@pytest.mark.rules("A4.48", "A4.49")
@pytest.mark.parametrize(("price", "cost"), [(None, None), (1.0, None), (0.0, 0.0)])
async def test_an_answer_that_was_cut_off_has_cost_something_unless_the_model_is_free(
    price: float | None, cost: float | None
) -> None:
    model = Model(provider="p", id="m", price_input=price, price_output=price)
    provider = ScriptedProvider([asyncio.Event()], model=model)
    result = await Agent(provider, limits=Limits(wall_s=0.01)).run("Hi")
    assert (result.stop_reason, result.cost) == ("time_limit", cost)


@pytest.mark.rules("A4.19", "A4.20")
@pytest.mark.parametrize(
    ("window", "cap"),
    [(None, 50_000), (8192, 4915), (83_333, 49_999), (83_334, 50_000), (10**6, 50_000)],
)
def test_a_result_may_fill_a_share_of_the_window(window: int | None, cap: int) -> None:
    assert result_cap(window) == cap
    assert MAX_RESULT_CHARS == 50_000


@pytest.mark.rules("R49")
def test_a_cut_keeps_head_and_tail_and_says_how_much_is_missing() -> None:
    (block,) = cut_result((Text(text="a" * 500 + "b" * 500),), 164)
    assert isinstance(block, Text)
    assert block.text == "a" * 50 + "\n[… 900 characters left out …]\n" + "b" * 50


def test_what_fits_is_not_touched() -> None:
    content = (Text(text="a" * 50), PICTURE, Text(text="b" * 50))
    assert cut_result(content, 100) is content
    assert cut_result((), 0) == ()


BLOCKS = st.lists(
    st.one_of(st.text(max_size=90).map(lambda text: Text(text=text)), st.just(PICTURE)), max_size=8
)


@pytest.mark.rules("A4.19", "S33")
@given(blocks=BLOCKS, cap=st.integers(64, 300))
def test_a_cut_result_keeps_to_the_cap_with_one_marker(blocks: list[ResultBlock], cap: int) -> None:
    content = tuple(blocks)
    whole = block_text(content)
    cut = cut_result(content, cap)
    text = block_text(cut)
    assert len(text) <= cap
    assert cut.count(PICTURE) == content.count(PICTURE)
    if len(whole) <= cap:
        assert cut == content
        return
    keep = cap - 64
    head, tail = whole[: keep // 2], whole[len(whole) - (keep - keep // 2) :]
    assert text == f"{head}\n[… {len(whole) - keep} characters left out …]\n{tail}"
    assert all(block.text for block in cut if isinstance(block, Text))


@pytest.mark.rules("A4.29")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("", None),
        (" \n\t", None),
        ("Done", "Done"),
        ("Done.", "Done."),
        ("It is 3.5 m. And more.", "It is 3.5 m."),
        ("Is it?\nYes!", "Is it?"),
        ("  a \n b.c  d! e", "a b.c d!"),
        ("x" * 300, "x" * 200),
        ("x" * 199 + ". y", "x" * 199 + "."),
        ("x" * 200 + ". y", "x" * 200),
        ("a " * 5000 + "z.", ("a " * 5000)[:200]),
        ("x" * 199 + ".y", "x" * 199 + "."),
    ],
)
def test_the_first_sentence_is_short(text: str, sentence: str | None) -> None:
    assert first_sentence(text) == sentence


@given(text=st.text(alphabet="ab.! \n", max_size=600))
def test_a_first_sentence_begins_the_text_and_has_no_line_ends(text: str) -> None:
    sentence = first_sentence(text)
    words = " ".join(text.split())
    assert (sentence is None) == (not words)
    if sentence is not None:
        assert words.startswith(sentence)
        assert len(sentence) <= 200
        assert "\n" not in sentence


@pytest.mark.rules("A2.91")
async def test_a_slot_lets_in_as_many_as_it_has_places() -> None:
    slot = Slot(2)
    async with asyncio.timeout(5), slot:
        assert slot.waits_for is None
        async with slot:
            assert slot.waits_for == "slot"
            third = asyncio.create_task(slot.__aenter__())
            await asyncio.sleep(0)
            assert not third.done()
        await third
        assert slot.waits_for == "slot"
        await slot.__aexit__(None, None, None)
    assert slot.waits_for is None


async def test_a_hold_keeps_everybody_out_until_it_ends() -> None:
    slot = Slot(1)
    slot.hold("loading")
    assert slot.waits_for == "loading"
    waiting = asyncio.create_task(slot.__aenter__())
    await asyncio.sleep(0)
    assert not waiting.done()
    slot.release()
    async with asyncio.timeout(5):
        await waiting
    assert slot.waits_for == "slot"


async def test_who_leaves_the_line_takes_no_place() -> None:
    slot = Slot(1)
    async with slot:
        waiting = asyncio.create_task(slot.__aenter__())
        await asyncio.sleep(0)
        waiting.cancel()
        await asyncio.wait({waiting})
    assert slot.waits_for is None
