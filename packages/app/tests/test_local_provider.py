"""The embedded model, as turns see it before it runs."""

import pytest

from towline.local_provider import LocalProvider


@pytest.mark.rules("A2.91")
async def test_a_turn_that_has_to_start_the_model_can_say_so() -> None:
    provider = LocalProvider()
    assert provider.slot.waits_for == "model_loading"
    await provider.aclose()
    assert provider.slot.waits_for == "model_loading"
