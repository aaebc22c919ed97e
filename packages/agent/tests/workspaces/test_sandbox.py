"""Programs in a sandbox: what they reach, and what is said where there is none."""

import asyncio
import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from towline_agent.errors import ToolError
from towline_agent.workspaces import processes, sandbox
from towline_agent.workspaces.base import ProgramResult
from towline_agent.workspaces.landlock import NETWORK_ABI, landlock_abi, landlock_words
from towline_agent.workspaces.local import LocalWorkspace
from towline_agent.workspaces.processes import list_processes
from towline_agent.workspaces.sandbox import (
    Confinement,
    Sandbox,
    bubblewrap_argv,
    find_secret_places,
)
from towline_agent.workspaces.scratch import make_scratch
from towline_protocol import Process, UsageError

LIMIT_S = 60

KINDS = [
    pytest.param("bubblewrap", marks=pytest.mark.sandbox),
    pytest.param("landlock", marks=pytest.mark.landlock),
]


@pytest.fixture(autouse=True)
def apart(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """What a test makes of the sandbox counts for it alone."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path_factory.mktemp("scratch")))
    before = list(sandbox._found)  # pyright: ignore[reportPrivateUsage]
    yield
    sandbox._found[:] = before  # pyright: ignore[reportPrivateUsage]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    """Each sandbox that this machine may have, in turn."""
    _offer(sandbox._probe() if request.param == "bubblewrap" else Sandbox("landlock"))  # pyright: ignore[reportPrivateUsage]
    return request.param


def _offer(found: Sandbox) -> None:
    """Let this be the best sandbox that there is."""
    sandbox._found[:] = [found]  # pyright: ignore[reportPrivateUsage]


@pytest.fixture
def outside() -> Iterator[Path]:
    """A folder that is not below `/tmp`, which would be another one inside."""
    with TemporaryDirectory(dir="/var/tmp", prefix="towline-test-") as folder:
        yield Path(folder).resolve()


@pytest.fixture
def home(outside: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder with keys in it, beside the root."""
    place = outside / "home"
    (place / ".ssh").mkdir(parents=True)
    (place / ".ssh" / "id_ed25519").write_text("the private key")
    (place / ".netrc").write_text("the private word")
    (place / ".bashrc").write_text("no secret")
    monkeypatch.setenv("HOME", str(place))
    return place


@pytest.fixture
def root(outside: Path) -> Path:
    place = outside / "root"
    place.mkdir()
    return place


def _names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


async def _run(
    root: Path,
    *argv: str,
    network: bool = False,
    hidden: tuple[str, ...] = (),
    timeout_s: float = LIMIT_S,
    outside: frozenset[str] = frozenset(),
) -> ProgramResult:
    async def start(process: Process) -> None: ...

    async with asyncio.timeout(2 * LIMIT_S):
        workspace = LocalWorkspace(root, hidden=hidden).grant(outside)
        return await workspace.run(
            argv, timeout_s=timeout_s, on_start=start, on_output=lambda _: None, network=network
        )


@pytest.mark.rules("A5.21")
@pytest.mark.usefixtures("kind")
async def test_it_writes_in_its_folder_and_nowhere_else(root: Path, home: Path) -> None:
    script = f"""
    echo mine > file; mkdir -p a/b; mv file a/b/; rm -r a; echo kept > kept
    echo x > {home}/.bashrc
    echo x > {home.parent}/beside
    : > {home}/.profile
    mkdir {home}/folder
    rm {home}/.bashrc
    truncate -s 0 {home}/.bashrc
    """
    result = await _run(root, "sh", "-c", script)
    assert result.exit_code != 0
    assert (root / "kept").read_text() == "kept\n"
    assert _names(home) == [".bashrc", ".netrc", ".ssh"]
    assert (home / ".bashrc").read_text() == "no secret"
    assert not (home.parent / "beside").exists()


@pytest.mark.rules("A5.21")
@pytest.mark.usefixtures("kind")
async def test_a_place_outside_that_was_granted_can_be_written(root: Path) -> None:
    other = root.parent / "other"
    other.mkdir()
    result = await _run(root, "sh", "-c", f"echo x > {other}/file", outside=frozenset({str(other)}))
    assert result.exit_code == 0
    assert (other / "file").read_text() == "x\n"


@pytest.mark.rules("A5.21")
@pytest.mark.usefixtures("kind")
async def test_it_cannot_read_where_keys_and_our_own_data_lie(root: Path, home: Path) -> None:
    data = root.parent / "data"
    data.mkdir()
    (data / "store.db").write_text("our private store")
    inside = root / "data"
    inside.mkdir()
    (inside / "run.json").write_text("our private token")
    (root / "link").symlink_to(home / ".ssh")
    places = (
        *(home / ".ssh/id_ed25519", home / ".netrc", data / "store.db", inside / "run.json"),
        root / "link" / "id_ed25519",
    )
    command = ("cat", *map(str, places))
    result = await _run(root, *command, hidden=(str(data), str(inside)))
    assert result.exit_code != 0
    assert "private" not in result.output.replace("private-", "")
    assert (home / ".ssh/id_ed25519").read_text() == "the private key"


@pytest.mark.rules("A5.21")
@pytest.mark.usefixtures("kind")
async def test_a_folder_among_temporary_files_is_as_good(tmp_path: Path) -> None:
    result = await _run(tmp_path, "sh", "-c", 'pwd; echo a > a; echo b > "$TMPDIR/b"; cat a')
    assert result.output == f"{tmp_path}\na\n"
    assert (tmp_path / "a").read_text() == "a\n"


@pytest.mark.rules("A5.21")
@pytest.mark.usefixtures("kind")
async def test_it_reads_what_is_no_secret(root: Path) -> None:
    assert (await _run(root, "cat", "/etc/passwd")).exit_code == 0


CONNECT = "import socket, sys; socket.create_connection(('127.0.0.1', int(sys.argv[1])), 5)"


@pytest.mark.rules("A5.21")
async def test_it_has_no_network_unless_it_was_given_it(root: Path, kind: str) -> None:
    if kind == "landlock" and landlock_abi() < NETWORK_ABI:
        pytest.skip("NO LANDLOCK FOR TCP: this kernel is older than 6.7.")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        refused = await _run(root, sys.executable, "-c", CONNECT, port)
        assert refused.exit_code == 1
        allowed = await _run(root, sys.executable, "-c", CONNECT, port, network=True)
        assert allowed.exit_code == 0, allowed.output


_TALK = """
import socket
server = socket.create_server(("127.0.0.1", 0))
socket.create_connection(server.getsockname()).close()
print("talked")
"""


@pytest.mark.sandbox
@pytest.mark.rules("A5.21")
async def test_within_bubblewrap_a_program_can_talk_to_itself(root: Path) -> None:
    assert (await _run(root, sys.executable, "-c", _TALK)).output == "talked\n"


@pytest.mark.rules("A5.23")
@pytest.mark.usefixtures("kind")
async def test_no_process_of_ours_shows_it_our_environment(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-private")
    code = f"""
import glob
for name in [*glob.glob("/proc/[0-9]*/environ"), "/proc/{os.getpid()}/environ"]:
    try:
        print(open(name, "rb").read())
    except OSError as error:
        print(type(error).__name__)
"""
    environment = {**os.environ}
    assert environment["OPENAI_API_KEY"] == "sk-private"
    result = await _run(root, sys.executable, "-c", code)
    assert result.exit_code == 0
    assert "sk-private" not in result.output
    assert str(os.environ.get("PATH")) in result.output, "its own environment it can read"


@pytest.mark.rules("A5.21")
async def test_temporary_files_are_its_own_and_stay_for_the_next_program(
    root: Path, kind: str
) -> None:
    script = 'echo "$TMPDIR"; echo words > "$TMPDIR/note"; mktemp'
    result = await _run(root, "sh", "-c", script)
    assert result.exit_code == 0
    assert (await _run(root, "sh", "-c", 'cat "$TMPDIR/note"')).output == "words\n"
    other = root.parent / "other"
    other.mkdir()
    assert (await _run(other, "sh", "-c", 'cat "$TMPDIR/note"')).exit_code == 1
    assert result.output.startswith("/tmp\n") is (kind == "bubblewrap")


@pytest.mark.rules("A5.21", "A5.18")
@pytest.mark.usefixtures("kind")
async def test_why_something_failed_is_told_where_the_sandbox_is_in_the_way(
    root: Path, home: Path
) -> None:
    result = await _run(root, "sh", "-c", f"echo x > {home}/file")
    assert result.exit_code != 0
    assert "[sandbox: no network unless asked for, and writes only in the folder" in result.output
    assert "[sandbox" not in (await _run(root, "false")).output


@pytest.mark.rules("A5.T11")
@pytest.mark.usefixtures("kind")
async def test_ends_and_failed_starts_are_told_as_without_it(root: Path) -> None:
    assert await _run(root, "sh", "-c", "exit 3") == ProgramResult(exit_code=3, output="")
    killed = await _run(root, "sh", "-c", "kill -9 $$")
    assert killed.exit_code in (-9, 128 + 9)
    with pytest.raises(ToolError, match="There is no program 'no-such-program' here"):
        await _run(root, "no-such-program")
    with pytest.raises(ToolError, match="no file or folder"):
        await _run(root / "gone", "true")


@pytest.mark.rules("A5.19")
@pytest.mark.usefixtures("kind")
async def test_the_whole_tree_ends_at_the_limit(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processes, "_GRACE_S", 0.1)
    word = f"1{os.getpid()}.5"
    inner = f"trap '' TERM; sleep {word} & sleep {word}"
    script = f"trap '' TERM; (setsid sh -c \"{inner}\" &); sleep {word}"
    result = await _run(root, "sh", "-c", script, timeout_s=0.3)
    assert result.exit_code is None
    assert [row for row in list_processes() if _has_word(row.pid, word)] == []


def _has_word(pid: int, word: str) -> bool:
    try:
        return word.encode() in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False


@pytest.mark.rules("A5.19")
@pytest.mark.usefixtures("kind")
async def test_it_is_asked_politely_first(root: Path) -> None:
    script = "trap 'touch tidied; exit 0' TERM; while :; do sleep 0.01; done"
    assert (await _run(root, "sh", "-c", script, timeout_s=0.3)).exit_code is None
    assert (root / "tidied").exists()


@pytest.mark.rules("A5.22")
def test_a_person_is_told_what_keeps_a_program_in(root: Path) -> None:
    confinement = Confinement(str(root))
    _offer(Sandbox("bubblewrap", options=("bwrap",)))
    assert confinement.tell(network=False) == ""
    assert confinement.tell(network=True) == "It may use the network."
    _offer(Sandbox("landlock"))
    assert "only TCP is closed" in confinement.tell(network=False)
    _offer(Sandbox("none", "bubblewrap is not installed"))
    for network in (False, True):
        told = confinement.tell(network=network)
        assert told.startswith("No sandbox (bubblewrap is not installed)")
    off = Confinement(str(root), mode="off")
    assert off.tell(network=False).startswith("No sandbox (it is switched off)")


@pytest.mark.rules("A5.22")
async def test_without_the_sandbox_that_is_required_nothing_runs(root: Path) -> None:
    _offer(Sandbox("none", "bubblewrap is not installed"))
    workspace = LocalWorkspace(root, sandbox="required")
    with pytest.raises(ToolError, match=r"require a sandbox, and bubblewrap is not installed"):
        workspace.confinement.tell(network=False)

    async def start(process: Process) -> None:
        raise AssertionError

    with pytest.raises(ToolError, match="require a sandbox"):
        await workspace.run(("touch", "x"), timeout_s=9, on_start=start, on_output=print)
    assert not (root / "x").exists()
    with pytest.raises(UsageError, match="choose one of auto, off, required"):
        LocalWorkspace(root, sandbox="yes")


BROKEN = "#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n"


@pytest.mark.rules("A5.21", "A5.22")
async def test_a_sandbox_that_breaks_runs_nothing_and_the_next_best_is_used_then(
    root: Path, tmp_path: Path
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(BROKEN)
    broken.chmod(0o755)
    _offer(Sandbox("bubblewrap", options=(str(broken),)))
    with pytest.raises(ToolError) as refused:
        await _run(root, "touch", "x")
    assert "The sandbox failed (setting up uid map: Permission denied)" in refused.value.message
    assert "Try again" in refused.value.message
    assert not (root / "x").exists()
    now = Confinement(str(root)).find()
    assert now.kind != "bubblewrap"
    assert "setting up uid map" in now.why
    assert (await _run(root, "touch", "x")).exit_code == 0


@pytest.mark.rules("A5.21")
def test_a_bubblewrap_that_does_not_work_here_is_found_out_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = tmp_path / "bwrap"
    broken.write_text(BROKEN)
    broken.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    found = sandbox._probe()  # pyright: ignore[reportPrivateUsage]
    assert found.kind != "bubblewrap"
    if sys.platform == "linux":
        assert "setting up uid map: Permission denied" in found.why


def test_what_lies_above_is_mounted_before_what_lies_below() -> None:
    argv = bubblewrap_argv(
        ("bwrap",),
        root="/home/me/project",
        scratch="/tmp/s",
        hidden=(("/home/me/project/.data", True), ("/home/me", True), ("/tmp/other", True)),
        shown=("/tmp/venv",),
    )
    line = " ".join(argv)
    assert line.startswith("bwrap --unshare-pid --unshare-ipc --unshare-uts --die-with-parent ")
    assert "--unshare-net" in argv
    order = [
        "--ro-bind / /",
        "--bind /tmp/s /tmp",
        "--tmpfs /home/me ",
        "--bind /home/me/project /home/me/project",
        "--tmpfs /home/me/project/.data",
    ]
    places = [line.index(words) for words in order]
    assert places == sorted(places)
    assert "--ro-bind-try /tmp/venv /tmp/venv" in line
    assert "/tmp/other" not in line, "there is nothing of it inside"
    assert argv[-3:] == ("--chdir", "/home/me/project", "--")


def test_secret_places_are_found_where_they_really_are(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir()
    home = tmp_path / "home"
    home.mkdir()
    (home / ".aws").symlink_to(real)
    (home / ".netrc").write_text("")
    (home / ".ssh").symlink_to(tmp_path / "nowhere")
    found = dict(find_secret_places(home, (str(tmp_path / "gone"),)))
    assert found[str(real)] is True
    assert found[str(home / ".netrc")] is False
    assert not [place for place in found if "gone" in place or "nowhere" in place]


@pytest.mark.rules("A5.21")
def test_landlock_allows_all_but_the_way_to_what_is_hidden(tmp_path: Path) -> None:
    for name in ("home/.ssh", "home/open", "home/deep/secret", "root"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home" / "link").symlink_to(tmp_path / "home" / ".ssh")
    words = landlock_words(
        writable=(str(tmp_path / "root"),),
        hidden=(str(tmp_path / "home/.ssh"), str(tmp_path / "home/deep/secret")),
        network=False,
        abi=3,
    )
    files, tcp, scopes, *rules = words
    assert (int(files), tcp, scopes) == (2**15 - 1, "0", "0")
    readable = {place for bits, place in zip(rules[::2], rules[1::2], strict=True) if int(bits) & 4}
    below = {place for place in readable if place.startswith(str(tmp_path))}
    assert below == {str(tmp_path / "home/open"), str(tmp_path / "root")}
    assert not any(str(tmp_path).startswith(place.rstrip("/") + "/") for place in readable)
    assert landlock_words(writable=(), hidden=(), network=True, abi=7)[:3] == (files, "0", "3")
    assert landlock_words(writable=(), hidden=(), network=False, abi=7)[:3] == (files, "3", "3")


def test_temporary_files_are_put_in_no_folder_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make = make_scratch
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    place = Path(make("/root"))
    assert place.parent.parent == tmp_path
    assert {path.stat().st_mode & 0o777 for path in (place, place.parent)} == {0o700}
    assert make("/root") == str(place) != make("/other")
    place.parent.chmod(0o777)
    with pytest.raises(ToolError, match="not ours alone"):
        make("/root")
    place.parent.rename(tmp_path / "moved")
    place.parent.symlink_to(tmp_path / "moved")
    with pytest.raises(ToolError, match="not ours alone"):
        make("/root")
