"""What every workspace does alike: the real one and its twin in memory."""

from pathlib import Path

import pytest

from towline_agent.errors import ToolDenied, ToolError
from towline_agent.workspaces.base import ProgramResult, Workspace
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.memory import MemoryWorkspace
from towline_protocol import Process

FILES = {"b.txt": b"\x00\xffwords", "a.txt": b"", "src/main.py": b"print(1)", "src/deep/x": b"x"}


@pytest.fixture(params=["local", "memory"])
def workspace(request: pytest.FixtureRequest, tmp_path: Path) -> Workspace:
    if request.param == "memory":
        programs = {"printf": ProgramResult(exit_code=0, output="a b")}
        return MemoryWorkspace(FILES, programs, root=str(tmp_path))
    for name, data in FILES.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(data)
    return LocalWorkspace(tmp_path)


@pytest.mark.rules("A5.1")
async def test_a_path_is_read_from_the_root(workspace: Workspace, tmp_path: Path) -> None:
    assert workspace.root == str(tmp_path)
    for path in ("src/main.py", "./src//main.py", "src/deep/../main.py", f"{tmp_path}/src/main.py"):
        assert (await workspace.read(path)).data == b"print(1)"
    assert (await workspace.read("b.txt")).data == FILES["b.txt"]


@pytest.mark.rules("A5.T2")
async def test_a_folder_is_walked_sorted_by_path(workspace: Workspace, tmp_path: Path) -> None:
    for path in (".", "", str(tmp_path), "src/.."):
        walk = await workspace.walk(path, deep=False)
        listed = [(entry.name, entry.kind, entry.size) for entry in walk.entries]
        assert listed == [("a.txt", "file", 0), ("b.txt", "file", 7), ("src", "dir", 0)]
        assert not walk.truncated
    assert [entry.name for entry in (await workspace.walk("src/")).entries] == [
        "deep",
        "deep/x",
        "main.py",
    ]


@pytest.mark.rules("A5.3")
@pytest.mark.parametrize("path", ["..", "../x", "src/../../x", "/", "/etc/passwd", "../{root}2/x"])
async def test_a_path_that_leads_outside_is_denied(
    workspace: Workspace, tmp_path: Path, path: str
) -> None:
    path = path.format(root=tmp_path.name)
    for use in (workspace.read, workspace.walk):
        with pytest.raises(ToolDenied) as denied:
            await use(path)
        assert denied.value.message == (
            f"{path!r} leads outside the folder {str(tmp_path)!r}; use a path inside it."
        )


async def test_what_is_missing_or_of_the_wrong_kind_is_told(workspace: Workspace) -> None:
    for use in (workspace.read, workspace.walk):
        with pytest.raises(ToolError, match="There is no file or folder 'src/none'"):
            await use("src/none")
    with pytest.raises(ToolError, match="'src' is a folder, not a file"):
        await workspace.read("src")
    with pytest.raises(ToolError, match=r"'a\.txt' is no folder"):
        await workspace.walk("a.txt")


async def test_a_program_runs_after_its_start_was_told(workspace: Workspace) -> None:
    said: list[str] = []

    async def start(process: Process) -> None:
        assert process.pid == process.group
        said.append("start")

    result = await workspace.run(
        ("printf", "%s %s", "a", "b"), timeout_s=30, on_start=start, on_output=said.append
    )
    assert result == ProgramResult(exit_code=0, output="a b")
    assert said == ["start", "a b"]


async def test_an_unknown_program_is_told(workspace: Workspace) -> None:
    async def start(process: Process) -> None: ...

    for argv, told in ((("no-such",), "no program 'no-such'"), ((), "no program")):
        with pytest.raises(ToolError, match=told):
            await workspace.run(argv, timeout_s=30, on_start=start, on_output=print)


async def test_the_twin_runs_functions_and_keeps_what_ran() -> None:
    async def double(argv: tuple[str, ...]) -> ProgramResult:
        return ProgramResult(exit_code=int(argv[1]) * 2, output="")

    async def start(process: Process) -> None: ...

    twin = MemoryWorkspace(programs={"double": double})
    result = await twin.run(("double", "4"), timeout_s=1, on_start=start, on_output=print)
    assert result.exit_code == 8
    assert twin.ran == [("double", "4")]
