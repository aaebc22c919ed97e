"""Tools by name."""

import pytest

from towline_agent.tools.function import make_tool, tool
from towline_agent.tools.toolset import Toolset
from towline_protocol import UsageError


def read_file(path: str) -> str:
    """Read."""
    return path


@tool(name="list_dir", effect="read")
async def listing() -> str:
    """List."""
    return ""


@pytest.mark.rules("A4.43")
def test_functions_and_tools_are_kept_in_order() -> None:
    tools = Toolset([listing, read_file])
    assert list(tools) == ["list_dir", "read_file"]
    assert len(tools) == 2
    assert tools["list_dir"] is listing
    assert tools.get("other") is None
    assert repr(tools) == "Toolset(list_dir, read_file)"


@pytest.mark.rules("A4.45")
def test_a_name_that_is_there_twice_is_refused() -> None:
    with pytest.raises(UsageError, match="'read_file'"):
        Toolset([read_file, read_file])


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize("name", ["", "with space", "a" * 65, "ümlaut", "my.server"])
def test_a_name_that_some_provider_refuses_is_refused_here(name: str) -> None:
    with pytest.raises(UsageError, match="64 letters"):
        make_tool(name, "", {}, read_file)


@pytest.mark.rules("A4.16")
@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("readfile", "Did you mean 'read_file'? The tools are: read_file, list_dir."),
        ("Read_File", "Did you mean 'read_file'?"),
        ("zzz", "There is no tool 'zzz'. The tools are: read_file, list_dir."),
    ],
)
def test_an_unknown_tool_is_told_with_the_nearest_name(name: str, told: str) -> None:
    assert told in Toolset([read_file, listing]).explain_missing(name)


def test_an_empty_set_says_that_there_are_no_tools() -> None:
    assert "no tools at all" in Toolset().explain_missing("x")
