from towline.local.facts import QWEN_CODER
from towline.local.notice import describe_local_model
from towline.local.server import Speed


def test_a_person_is_told_what_runs_that_it_is_small_how_fast_and_what_brings_a_strong_one() -> (
    None
):
    told = describe_local_model(QWEN_CODER, Speed(400, 72.6, 16.9, 6.0))
    assert len(told) == 4
    assert "Qwen2.5-Coder 1.5B" in told[0]
    assert "small and can be wrong" in told[1]
    assert "reads about 73 and writes about 17 tokens a second" in told[2]
    assert "`export ANTHROPIC_API_KEY=…`" in told[3]


def test_the_speed_is_left_out_where_it_was_not_measured() -> None:
    told = describe_local_model(QWEN_CODER)
    assert len(told) == 3
    assert not any("tokens a second" in line for line in told)
