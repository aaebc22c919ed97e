"""`towline usage` on a screen of its own, from a store at rest and from a server."""

import json
from collections.abc import Iterable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from towline.cli.usage import show_usage
from towline.paths import find_paths
from towline_agent import mint_now
from towline_agent.testing import FakeClock
from towline_protocol import Usage, UsageError
from towline_server import open_store
from towline_server.store import usage
from towline_server.store.records import UsageCount


class Screen:
    """What a person sees, and a store."""

    def __init__(self, home: Path, width: int = 80) -> None:
        self.file = StringIO()
        self.console = Console(file=self.file, width=width)
        self.environ = {"TOWLINE_HOME": str(home)}

    async def used(self, session: str, counts: Iterable[UsageCount]) -> None:
        """Write what was used."""
        found = list(counts)
        store = await open_store(find_paths(self.environ).data_dir, mint=mint_now)
        await store.write(lambda connection: usage.add(connection, session, found))
        await store.close()

    async def show(
        self, by: str = "day", first: str | None = None, *, as_json: bool = False, **environ: str
    ) -> str:
        """`towline usage`."""
        code = await show_usage(
            self.console,
            by=by,
            first=first,
            last=None,
            as_json=as_json,
            environ={**self.environ, **environ},
            clock=FakeClock(),
        )
        assert code == 0
        return self.file.getvalue()


def count(day: str, cost: float | None = 1.25, model: str = "a/one") -> UsageCount:
    tokens = Usage(input=12_000, output=300, cache_read=1_000_000)
    return UsageCount(user="owner", day=day, model=model, usage=tokens, cost=cost)


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """A screen of 80 columns."""
    return Screen(tmp_path)


async def test_days_are_shown_newest_first_with_their_sum(screen: Screen) -> None:
    await screen.used("ses_1", [count("2027-01-14"), count("2027-01-15", cost=0.5)])
    shown = await screen.show()
    assert "From 2026-12-17 to 2027-01-15" in shown
    lines = [line.split() for line in shown.splitlines()[1:]]
    assert lines == [
        ["Day", "In", "Cached", "Out", "Requests", "Cost"],
        ["2027-01-15", "12k", "1M", "300", "1", "$0.5000"],
        ["2027-01-14", "12k", "1M", "300", "1", "$1.25"],
        ["All", "24k", "2M", "600", "2", "$1.75"],
    ]


@pytest.mark.rules("A4.49")
async def test_a_cost_that_nobody_knows_is_no_zero(tmp_path: Path) -> None:
    screen = Screen(tmp_path, width=40)
    await screen.used("ses_1", [count("2027-01-15", None, "b/two"), count("2027-01-15")])
    shown = await screen.show("model")
    lines = [line.split() for line in shown.splitlines()]
    assert ["b/two", "1.01M", "?"] in lines
    assert ["All", "2.02M", "$1.25+"] in lines
    assert "1 request has no known price" in " ".join(shown.split())
    assert all(len(line) <= 40 for line in shown.splitlines())


async def test_nothing_at_all_is_said_so(screen: Screen) -> None:
    assert "Nothing was used." in await screen.show()


async def test_a_bound_of_the_day_is_shown(screen: Screen) -> None:
    await screen.used("ses_1", [count("2027-01-15")])
    assert "Today: $1.25 of $5.00." in await screen.show(TOWLINE_DAILY_COST="5")


async def test_programs_get_the_report(screen: Screen) -> None:
    await screen.used("ses_1", [count("2027-01-15")])
    report = json.loads(await screen.show("session", as_json=True))
    assert report["rows"][0]["name"] == "ses_1"
    assert report["rows"][0]["usage"]["cache_read"] == 1_000_000
    assert report["today_cost"] == 1.25


@pytest.mark.parametrize(("by", "first"), [("week", None), ("day", "yesterday")])
async def test_what_there_is_not_is_told(screen: Screen, by: str, first: str | None) -> None:
    with pytest.raises(UsageError):
        await screen.show(by, first)
