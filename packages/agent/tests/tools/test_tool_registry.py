"""The sets of tools: our own, installed ones, and those that settings name."""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.registry import FoundTools, find_tools

CODE = '''
from towline_agent import make_tool, tool


@tool
def weather(city: str) -> str:
    """The weather in a city."""
    return "sunny"


def plain(city: str) -> str:
    """A function that is a tool."""
    return city


@tool
def launch() -> str:
    """A tool without parameters."""
    return "up"


def make_tools():
    """A function that makes tools."""
    return [weather, plain]


def fail():
    """A broken one."""
    raise RuntimeError("secret words")


def leave():
    """Would end the process."""
    raise SystemExit(3)


def read_file(path: str) -> str:
    """Has the name of one of ours."""
    return path


both = [weather, plain]
number = 7
'''

POINTS = """
[towline.tools]
acme = acme_tools:make_tools
"""


@pytest.fixture(autouse=True)
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A distribution with entry points, as an installer leaves it on the path."""
    (tmp_path / "acme_tools.py").write_text(CODE)
    info = tmp_path / "acme_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: acme-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(POINTS)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    importlib.invalidate_caches()
    yield tmp_path
    sys.modules.pop("acme_tools", None)


def names(found: FoundTools) -> dict[str, list[str]]:
    """The tools of each set."""
    return {made.name: [tool.name for tool in made.tools] for made in found.sets}


@pytest.mark.rules("A4.62")
def test_our_own_tools_come_first_and_installed_ones_behind_them() -> None:
    found = find_tools()
    assert names(found)["acme"] == ["weather", "plain"]
    assert list(names(found)) == ["coding", "web", "basic", "acme"]
    assert [tool.name for tool in found.tools][:-2] == [tool.name for tool in builtin_tools()]
    assert found.notices == ()


@pytest.mark.rules("A4.64")
def test_each_set_can_be_switched_off_and_is_then_not_loaded() -> None:
    assert list(names(find_tools(["-acme"]))) == ["coding", "web", "basic"]
    assert "acme_tools" not in sys.modules
    assert list(names(find_tools(["-coding"]))) == ["web", "basic", "acme"]
    assert find_tools(["-coding", "-web", "-basic", "-acme"]).tools == ()


@pytest.mark.rules("A4.63")
@pytest.mark.parametrize(
    ("setting", "made"),
    [
        ("acme_tools:weather", ["weather"]),
        ("acme_tools:plain", ["plain"]),
        ("acme_tools:launch", ["launch"]),
        ("acme_tools:both", ["weather", "plain"]),
        ("acme_tools:make_tools", ["weather", "plain"]),
    ],
)
def test_settings_name_a_tool_a_function_a_list_or_a_maker(setting: str, made: list[str]) -> None:
    found = find_tools(["-acme", setting])
    assert names(found)[setting] == made
    assert found.notices == ()


@pytest.mark.rules("A4.65")
@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("acme_tools:fail", "RuntimeError"),
        ("acme_tools:number", "'int'"),
        ("acme_tools:absent", "absent"),
        ("acme_nowhere:tools", "acme_nowhere"),
        ("acme_tools:read_file", "Two tools are called 'read_file'"),
        ("acme_tools:both", "Two tools are called 'weather'"),
        ("no words at all", "no words at all"),
    ],
)
def test_a_broken_set_is_a_notice_and_the_others_stay(setting: str, words: str) -> None:
    found = find_tools([setting])
    assert list(names(found)) == ["coding", "web", "basic", "acme"]
    (notice,) = found.notices
    assert words in notice
    assert "secret words" not in notice


@pytest.mark.rules("A4.65")
def test_a_set_that_would_end_the_process_is_a_notice_and_a_persons_interrupt_is_none(
    acme: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (acme / "acme_leaves.py").write_text("raise SystemExit(3)")
    (acme / "acme_stops.py").write_text("raise KeyboardInterrupt")
    for setting in ("acme_leaves:tools", "acme_tools:leave"):
        (notice,) = find_tools([setting]).notices
        assert setting in notice
        assert "SystemExit" in notice
    with pytest.raises(KeyboardInterrupt):
        find_tools(["acme_stops:tools"])
