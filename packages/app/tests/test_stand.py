"""How the built-in model stands, as people are told."""

import pytest

from towline.local import Speed, Work
from towline.local_provider import LocalProvider
from towline.models import Choice, Models
from towline.stand import Stand
from towline_protocol import LocalModelState


class Running:
    """A model that says what the test has it say."""

    def __init__(self, *looks: Work | None) -> None:
        self.alive = True
        self._looks = list(looks)

    async def look(self) -> Work | None:
        return self._looks.pop(0)


def _work(read: int, of: int, written: int = 0, *, busy: bool = True) -> Work:
    return Work(busy=busy, read_tokens=read, prompt_tokens=of, written_tokens=written)


async def test_the_fetch_is_told_in_bytes_with_what_it_has_to_say() -> None:
    stand = Stand()
    assert (await stand.tell()).state == "off"
    stand.begin()
    stand.fetching(275, 640, "hub")
    stand.note("Another process is fetching the model.")
    assert await stand.tell() == LocalModelState(
        state="fetching",
        done_bytes=275,
        total_bytes=640,
        source="hub",
        message="Another process is fetching the model.",
    )
    stand.loading()
    assert (await stand.tell()) == LocalModelState(state="loading")
    stand.failed("Free some space and run this again.")
    told = await stand.tell()
    assert (told.state, told.message) == ("failed", "Free some space and run this again.")


async def test_reading_is_told_in_percent_and_writing_in_tokens_a_second() -> None:
    now = 10.0
    speed = Speed(read_tokens=900, read_per_s=60.0, write_per_s=9.26, took_s=1.0)
    stand = Stand(lambda: now)
    running = Running(
        _work(0, 2000),
        _work(800, 2000),
        _work(2000, 2000, 4),
        _work(2000, 2000, 24),
        None,
        _work(0, 0, busy=False),
    )
    stand.ready(running, speed)
    assert await stand.tell() == LocalModelState(state="reading")
    assert await stand.tell() == LocalModelState(state="reading", percent=40)
    assert await stand.tell() == LocalModelState(state="writing", tokens_s=9.3)
    now = 12.0
    assert await stand.tell() == LocalModelState(state="writing", tokens_s=10.0)
    assert await stand.tell() == LocalModelState(state="ready")
    assert await stand.tell() == LocalModelState(state="ready")
    running.alive = False
    assert (await stand.tell()).state == "off"
    stand.stopped()
    assert (await stand.tell()).state == "off"


@pytest.mark.rules("A2.91")
async def test_a_model_that_nobody_asked_for_is_off() -> None:
    models = Models(Choice(model="openai/gpt-5", why=""))
    assert await models.local_state() == LocalModelState(state="off")
    await models.aclose()
    provider = LocalProvider()
    assert (await provider.stand.tell()).state == "off"
    await provider.aclose()
