"""The tools `search_dependency` and `add_dependency`."""

import tomllib
from typing import Any

import pytest

from towline_agent.errors import ToolError
from towline_agent.tools.builtin.dependencies import make_dependency_tools
from towline_agent.tools.code.package_index import PackageIndex, Project, Release
from towline_agent.tools.code.requirements import add_requirement, choose_release
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Tool
from towline_agent.workspaces.memory import MemoryWorkspace

PROJECT = Project(
    "rich",
    (
        Release("15.0rc1", ">=3.9", False, "2026-05-01", ""),
        Release("14.2.0", ">=3.13", False, "2026-04-01", ""),
        Release("14.1.0", ">=3.9", True, "2026-03-01", ""),
        Release("14.0.0", ">=3.9", False, "2026-02-01", ""),
        Release("13.9", "", False, "", ""),
    ),
)


class FakeIndex(PackageIndex):
    """Knows `rich` alone."""

    def __init__(self) -> None:
        self.host = "index.test"
        self.asked: list[str] = []

    async def project(self, name: str) -> Project:
        self.asked.append(name)
        if name != "rich":
            raise ToolError(f"There is no package {name!r} on index.test.")
        return PROJECT

    async def summary(self, release: Release) -> str:
        return f"Text of {release.version}"


@pytest.fixture
def index() -> FakeIndex:
    return FakeIndex()


@pytest.fixture
def tools(index: FakeIndex) -> tuple[Tool, Tool]:
    async def find() -> PackageIndex:
        return index

    return make_dependency_tools(find)


@pytest.mark.rules("A5.T9")
async def test_a_package_is_told_with_versions_summary_and_pythons(
    tools: tuple[Tool, Tool], ask: Any
) -> None:
    assert await ask(MemoryContext(), tools[0], name="rich") == (
        "rich 14.2.0 (2026-04-01) on index.test\n"
        "Summary, by its authors: Text of 14.2.0\n"
        "Requires Python >=3.13\n"
        "5 releases, the first 13.9\n"
        "Versions: 15.0rc1, 14.2.0, 14.1.0 (yanked), 14.0.0, 13.9"
    )


@pytest.mark.rules("A5.T9")
async def test_the_host_that_is_asked_can_be_ruled_on(tools: tuple[Tool, Tool]) -> None:
    search, add = tools
    assert search.look is not None
    assert add.look is not None
    look = await search.look(MemoryContext(), {"name": "rich"})
    assert [(part.kind, part.subject, part.effect) for part in look.parts] == [
        ("host", "index.test", "read")
    ]
    context = MemoryContext(MemoryWorkspace({"pyproject.toml": "[project]\n"}))
    look = await add.look(context, add.check('{"name": "rich"}'))
    assert [(part.kind, part.subject, part.effect) for part in look.parts] == [
        ("path", "pyproject.toml", "write"),
        ("host", "index.test", "read"),
    ]


async def test_a_package_is_asked_for_once_a_conversation(
    tools: tuple[Tool, Tool], index: FakeIndex, ask: Any
) -> None:
    context = MemoryContext(MemoryWorkspace({"pyproject.toml": "[project]\n"}))
    await ask(context, tools[0], name="rich")
    await ask(context, tools[1], name="rich")
    assert index.asked == ["rich"]


@pytest.mark.rules("A5.T10")
async def test_a_dependency_is_added_with_the_newest_release_that_fits_the_projects_python(
    make_context: Any, tools: tuple[Tool, Tool], run_tool: Any
) -> None:
    before = (
        '[project]\nrequires-python = ">=3.11"  # ours\ndependencies = [\n  "yarl",  # why\n]\n'
    )
    context = make_context({"pyproject.toml": before, "uv.lock": ""})
    output = await run_tool(context, tools[1], name="rich")
    after = (await context.workspace.read("pyproject.toml")).data.decode()
    assert after == before.replace("why\n", 'why\n  "rich>=14.0.0",\n')
    text = output.content[0].text
    assert text.startswith("Added 'rich>=14.0.0'. Nothing is installed yet: run 'uv sync'")
    assert '+  "rich>=14.0.0",' in text
    assert [change.path for change in output.changes] == ["pyproject.toml"]


@pytest.mark.rules("A5.T10")
async def test_a_package_that_the_index_has_not_is_refused_and_nothing_changes(
    make_context: Any, tools: tuple[Tool, Tool], ask: Any
) -> None:
    context = make_context({"pyproject.toml": "[project]\n"})
    with pytest.raises(ToolError, match="no package 'ritch'"):
        await ask(context, tools[1], name="ritch")
    assert (await context.workspace.read("pyproject.toml")).data == b"[project]\n"


@pytest.mark.parametrize(
    ("arguments", "requirement"),
    [
        ({"version": ">=13,<14"}, '"rich>=13,<14"'),
        ({"version": "==15.0rc1"}, None),
        ({"version": ">=99"}, None),
        ({"version": "newest"}, None),
        ({"group": "dev"}, '"rich>=14.2.0"'),
    ],
)
async def test_versions_and_groups_are_heeded(
    tools: tuple[Tool, Tool], ask: Any, arguments: dict[str, str], requirement: str | None
) -> None:
    context = MemoryContext(MemoryWorkspace({"pyproject.toml": "[project]\n"}))
    if requirement is None:
        with pytest.raises(ToolError, match=r"no release of rich among|says no versions"):
            await ask(context, tools[1], name="rich", **arguments)
        return
    await ask(context, tools[1], name="rich", **arguments)
    text = (await context.workspace.read("pyproject.toml")).data.decode()
    data = tomllib.loads(text)
    place = data["dependency-groups"]["dev"] if "group" in arguments else data["project"]
    assert requirement in text
    assert place


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[project]\ndependencies = ["Rich>=1"]\n', r"there already, as 'Rich>=1'"),
        ('[tool.poetry.dependencies]\nrich = "^1"\n', "there already, as 'rich'"),
        ("[project]\ndynamic = ['dependencies']\n", "made at build time"),
        ("[tool.x]\na = 1\n", r"no \[project\] table"),
        ("[project\n", "no TOML"),
        ("[project]\ndependencies = 3\n", "no list"),
        ("project = 3\n", "no table"),
    ],
)
async def test_a_file_that_has_no_place_for_it_is_told(
    tools: tuple[Tool, Tool], ask: Any, text: str, words: str
) -> None:
    context = MemoryContext(MemoryWorkspace({"pyproject.toml": text}))
    with pytest.raises(ToolError, match=words):
        await ask(context, tools[1], name="rich")


async def test_another_file_is_refused(tools: tuple[Tool, Tool], ask: Any) -> None:
    context = MemoryContext(MemoryWorkspace({"requirements.txt": "a\n"}))
    with pytest.raises(ToolError, match="edited with edit_file"):
        await ask(context, tools[1], name="rich", path="requirements.txt")


LAYOUTS = {
    "one line": (
        '[project]\ndependencies = ["b", "z"]   # keep\n',
        '[project]\ndependencies = ["b", "rich>=1", "z"]   # keep\n',
    ),
    "in order with comments": (
        '[project]\ndependencies = [\n    "b",  # b\n    "z",  # z\n]\n',
        '[project]\ndependencies = [\n    "b",  # b\n    "rich>=1",\n    "z",  # z\n]\n',
    ),
    "in no order": (
        '[project]\ndependencies = [\n  "z",\n  "b"\n]\n',
        '[project]\ndependencies = [\n  "z",\n  "b",\n  "rich>=1"\n]\n',
    ),
    "none yet": (
        '[project]\nname = "x"  # x\n\n[tool.y]\nz = 1\n',
        '[project]\nname = "x"  # x\ndependencies = ["rich>=1"]\n\n[tool.y]\nz = 1\n',
    ),
    "poetry": (
        '[tool.poetry.dependencies]\npython = "^3.11"\n',
        '[tool.poetry.dependencies]\npython = "^3.11"\nrich = ">=1"\n',
    ),
}


@pytest.mark.rules("A5.T10")
@pytest.mark.parametrize(("before", "after"), LAYOUTS.values(), ids=LAYOUTS)
def test_the_layout_of_the_file_is_kept(before: str, after: str) -> None:
    assert add_requirement(before, "rich>=1", None) == after


def test_a_group_of_poetry_is_made() -> None:
    before = '[tool.poetry.dependencies]\npython = "^3.11"\n'
    data = tomllib.loads(add_requirement(before, "rich>=1", "dev"))
    assert data["tool"]["poetry"]["group"]["dev"]["dependencies"] == {"rich": ">=1"}


def test_only_pre_releases_are_better_than_nothing() -> None:
    project = Project("a", (Release("1.0rc1", "", False, "", ""),))
    assert choose_release(project, "").version == "1.0rc1"
    with pytest.raises(ToolError, match="the newest is none at all"):
        choose_release(Project("a", ()), "")
