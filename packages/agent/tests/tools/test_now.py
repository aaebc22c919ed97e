"""The tool `now`."""

import pytest

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.builtin.now import make_now
from towline_agent.tools.memory import MemoryContext
from towline_protocol import Text

NOON_MS = 1_782_907_200_000
"""2026-07-01 12:00 UTC, a Wednesday."""


async def _ask(text: str) -> str:
    made = make_now(lambda: NOON_MS)
    (block,) = (await made.run(MemoryContext(), made.check(text))).content
    assert isinstance(block, Text)
    return block.text


@pytest.mark.rules("A5.36")
@pytest.mark.parametrize(
    ("zone", "told"),
    [
        ("UTC", "Wednesday 2026-07-01T12:00:00+00:00 (UTC)"),
        ("Europe/Berlin", "Wednesday 2026-07-01T14:00:00+02:00 (Europe/Berlin)"),
        ("Pacific/Auckland", "Thursday 2026-07-02T00:00:00+12:00 (Pacific/Auckland)"),
    ],
)
async def test_the_time_is_told_in_the_zone_that_is_asked_for(zone: str, told: str) -> None:
    assert await _ask(f'{{"zone": "{zone}"}}') == told


@pytest.mark.rules("A5.36", "R19")
@pytest.mark.parametrize("text", ["", "null", "{}", '{"zone": null}'])
async def test_without_a_zone_it_is_the_local_time(text: str) -> None:
    assert "2026-07-0" in await _ask(text)


@pytest.mark.parametrize("zone", ["Nowhere", "", "../../etc/passwd", "Europe", "/etc/localtime"])
async def test_an_unknown_zone_is_told(zone: str) -> None:
    with pytest.raises(ToolInputInvalid, match="IANA name"):
        await _ask(f'{{"zone": "{zone}"}}')


def test_now_needs_no_leave_and_may_be_repeated() -> None:
    made = make_now()
    assert (made.effect, made.idempotent, made.threaded) == ("own", True, False)
