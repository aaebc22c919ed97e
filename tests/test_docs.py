"""The pages, held against the code they speak of."""

import re
import runpy
from pathlib import Path

import msgspec
import pytest

from towline_agent.testing import ScriptedProvider, call
from towline_protocol import (
    CONTROL_FRAMES,
    FAULT_CODES,
    OPERATIONS,
    Delta,
    StoredEvent,
    ToolResult,
    Unknown,
    block_text,
)
from towline_server.config import CONFIG_KEYS

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
CONTRACT = (DOCS / "contract.md").read_text(encoding="utf-8")


def rows(heading: str) -> dict[str, list[str]]:
    """The rows of the table under a heading, by the word in their first cell."""
    part = re.split(rf"^#+ {heading}$", CONTRACT, maxsplit=1, flags=re.MULTILINE)[1]
    part = re.split(r"^#+ ", part, maxsplit=1, flags=re.MULTILINE)[0]
    found: dict[str, list[str]] = {}
    for line in part.splitlines():
        first = re.match(r"\| `([\w]+)`", line)
        if first is not None:
            found[first.group(1)] = [cell.strip() for cell in line.strip("|").split("|")]
    return found


def fields(info: msgspec.inspect.StructType) -> str:
    names = (f.encode_name + ("" if f.required else "?") for f in info.fields)
    return ", ".join(f"`{name}`" for name in names)


@pytest.mark.parametrize(("heading", "union"), [("Stored", StoredEvent), ("Not stored", Delta)])
def test_every_event_has_a_row_with_its_fields(heading: str, union: object) -> None:
    infos = msgspec.inspect.multi_type_info(getattr(union, "__args__"))  # noqa: B009 - a union has it
    found = {
        str(info.tag): fields(info)
        for info in infos
        if isinstance(info, msgspec.inspect.StructType) and info.cls is not Unknown
    }
    assert {name: cells[1] for name, cells in rows(heading).items()} == found


def test_every_control_frame_has_a_row_with_its_fields() -> None:
    infos = {name: msgspec.inspect.type_info(kind) for name, kind in CONTROL_FRAMES.items()}
    found = {
        name: fields(info)
        for name, info in infos.items()
        if isinstance(info, msgspec.inspect.StructType)
    }
    assert {name: cells[1] for name, cells in rows("The stream").items()} == found


def test_every_operation_has_a_row_that_says_what_it_is() -> None:
    found = {
        row.name: [
            f"`{row.name}`{'*' if row.idempotent else ''}",
            f"`{row.method} {row.path}`",
            row.summary,
            ", ".join([str(row.status), *(f"`{code}`" for code in row.faults)]),
        ]
        for row in OPERATIONS.values()
    }
    assert rows("Operations") == found


def test_every_fault_has_a_row_with_its_status_and_retry() -> None:
    found = {row.code: [str(row.status), f"`{row.retry}`"] for row in FAULT_CODES.values()}
    assert {name: cells[1:3] for name, cells in rows("Faults").items()} == found


def test_every_setting_has_a_row() -> None:
    page = (DOCS / "getting-started.md").read_text(encoding="utf-8")
    keys = re.findall(r"^\| `(\w+)` \| [^|]+ \| [^|]+ \|$", page, re.MULTILINE)
    assert sorted(keys) == list(CONFIG_KEYS)


def test_every_variable_of_the_environment_is_told() -> None:
    page = (DOCS / "getting-started.md").read_text(encoding="utf-8")
    used: set[str] = set()
    for path in ROOT.glob("packages/*/src/**/*.py"):
        if path.stem != "testing" and path.parent.stem != "testing":
            used |= set(re.findall(r'"(TOWLINE_[A-Z_]+[A-Z])"', path.read_text(encoding="utf-8")))
    used -= {f"TOWLINE_{key.upper()}" for key in CONFIG_KEYS}
    assert used == set(re.findall(r"^\| `(TOWLINE_[A-Z_]+)`", page, re.MULTILINE))


@pytest.mark.parametrize("name", ["readme_ten_lines", "readme_agent"])
def test_the_readme_shows_programs_that_a_test_runs(name: str) -> None:
    program = (ROOT / "docs_src" / f"{name}.py").read_text(encoding="utf-8")
    assert f"```python\n{program}```" in (ROOT / "README.md").read_text(encoding="utf-8")


def test_the_agent_of_the_readme_runs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    provider = ScriptedProvider(call("weather", city="Lisbon"), "It is sunny.")
    asked: list[str] = []

    def connect(model: str) -> ScriptedProvider:
        asked.append(model)
        return provider

    monkeypatch.setattr("towline_agent.providers.catalog.connect", connect)
    runpy.run_path(str(ROOT / "docs_src" / "readme_agent.py"))
    assert capsys.readouterr().out == "It is sunny.\n"
    assert asked == ["anthropic/claude-opus-5-5"]
    (result,) = provider.requests[1].messages[-1].content
    assert isinstance(result, ToolResult)
    assert block_text(result.content) == "Sunny in Lisbon."


def test_the_files_that_the_architecture_names_are_there() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    named = re.findall(r"`(towline\w*(?:/\w+)+(?:\.py|/))`", text)
    assert len(named) > 5
    missing = [name for name in named if not list(ROOT.glob(f"packages/*/src/{name}"))]
    assert missing == []
