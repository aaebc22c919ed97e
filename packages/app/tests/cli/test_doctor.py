"""`towline doctor`: what it says of a machine and a store, and with which exit code it ends."""

import asyncio
import json
import os
import socket
import sqlite3
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from towline.cli import doctor as ward
from towline.cli.main import app
from towline_agent import mint_now
from towline_agent.testing import FakeClock, Scripted, ScriptedProvider, ScriptedTransport
from towline_protocol import encode
from towline_server import RunFile, open_store
from towline_server.testing import AppClient, open_test_app, ran

Say = Callable[..., Result]


@pytest.fixture(name="home")
def home_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home with a store of one session."""
    home = tmp_path / "home"
    monkeypatch.setenv("TOWLINE_HOME", str(home))
    monkeypatch.setenv("TOWLINE_PORT", "0")
    monkeypatch.setenv("COLUMNS", "400")
    monkeypatch.setenv("PYTHON_KEYRING_BACKEND", "keyring.backends.fail.Keyring")
    for name in [
        name for name in os.environ if "API_KEY" in name or name.lower().endswith("_proxy")
    ]:
        monkeypatch.delenv(name)
    asyncio.run(_make(home))
    return home


async def _make(home: Path) -> None:
    store = await open_store(home / "data", mint=mint_now)
    async with open_test_app(ScriptedProvider("well"), root=home, store=store) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "hello")
        await client.until(session, ran(1))
    await store.close()


@pytest.fixture(name="say")
def say_fixture(home: Path) -> Say:
    """Runs `towline doctor` in that home."""
    del home
    return lambda *arguments: CliRunner().invoke(app, ("doctor", *arguments))


def _run_sql(home: Path, statement: str) -> None:
    with closing(sqlite3.connect(home / "data" / "towline.db", isolation_level=None)) as store:
        store.execute(statement)


def test_a_machine_in_order_is_said_to_be_so(say: Say) -> None:
    result = say()
    assert result.exit_code == ward.CLEAN, result.output
    for words in (
        "Python 3.", "can be written", "GB of room", "is free", "Keys are kept in", "web page",
        "SQLite finds the file whole", "newest schema", "names its log", "1 session(s) with",
        "No event lies in the future",
    ):  # fmt: skip
        assert words in result.output
    assert "fault" not in result.output.replace("0 fault(s)", "")


@pytest.mark.rules("C5.7")
def test_a_damaged_store_is_told_then_mended_then_whole(say: Say, home: Path) -> None:
    _run_sql(home, "UPDATE events SET data = x'00' WHERE seq = 5")
    found = say()
    assert found.exit_code == ward.FOUND
    assert "1 event(s) cannot be read (at 5). A repair would put a notice" in found.output
    assert "doctor --repair` mends 1 of them" in found.output
    mended = say("--repair")
    assert mended.exit_code == ward.CLEAN, mended.output
    assert "The store as it was before is kept at" in mended.output
    assert "The store is whole now." in mended.output
    (copy,) = (home / "data").glob("towline.db.before-repair-*")
    assert str(copy) in mended.output
    assert say().exit_code == ward.CLEAN
    again = say("--repair")
    assert (again.exit_code, again.output) == (ward.CLEAN, "There is nothing to mend.\n")


def test_a_file_that_was_cut_is_saved_as_far_as_it_goes(say: Say, home: Path) -> None:
    file = home / "data" / "towline.db"
    os.truncate(file, file.stat().st_size - 4096)
    assert say().exit_code == ward.FOUND
    mended = say("--repair")
    assert "row(s) are copied into a new file" in mended.output, mended.output
    assert "The damaged file is kept at" in mended.output
    assert say().exit_code == ward.CLEAN


@pytest.mark.rules("C5.3")
def test_a_repair_beside_a_server_is_refused_with_its_address_and_a_look_is_not(
    say: Say, home: Path
) -> None:
    async def beside() -> tuple[Result, Result]:
        store = await open_store(home / "data", mint=mint_now)
        store.announce("http://127.0.0.1:5")
        try:
            loop = asyncio.get_running_loop()
            look = await loop.run_in_executor(None, say)
            return look, await loop.run_in_executor(None, say, "--repair")
        finally:
            await store.close()

    look, refused = asyncio.run(beside())
    assert look.exit_code == ward.CLEAN
    assert refused.exit_code == ward.CANNOT
    assert "http://127.0.0.1:5" in refused.output
    assert "stop` stops your own server" in refused.output


def test_programs_get_json_of_a_look_a_repair_and_a_refusal(say: Say, home: Path) -> None:
    _run_sql(home, "UPDATE events SET data = x'00' WHERE seq = 5")
    report = json.loads(say("--json").output)
    assert report["faults"] == 1
    (fault,) = [one for one in report["findings"] if one["level"] == "fault"]
    assert fault["check"] == "log"
    assert fault["session"].startswith("ses_")
    repaired = json.loads(say("--repair", "--json").output)
    assert repaired["left"] == []
    assert Path(repaired["copy"]).is_file()
    (home / "config.toml").write_text("prot = 1")
    refused = say("--repair", "--json")
    assert refused.exit_code == ward.CANNOT
    assert "Unknown key 'prot'" in json.loads(refused.output)["error"]


def test_settings_that_cannot_be_read_are_a_fault_and_no_other_folder_is_mended(
    say: Say, home: Path
) -> None:
    (home / "config.toml").write_text("port = 'high'")
    look = say()
    assert look.exit_code == ward.FOUND
    assert "'port' in" in look.output
    assert "SQLite finds the file whole" in look.output
    assert say("--repair").exit_code == ward.CANNOT
    assert say("--copy", str(home / "copy.db")).exit_code == ward.CANNOT


def test_a_copy_is_written_once(say: Say, home: Path) -> None:
    target = home / "copy.db"
    done = say("--copy", str(target))
    assert done.exit_code == ward.CLEAN
    assert "To go back to it" in done.output
    assert target.stat().st_mode & 0o777 == 0o600
    again = say("--copy", str(target))
    assert again.exit_code == ward.CANNOT
    assert "is there already" in again.output


def test_a_store_that_is_gone_cannot_be_copied(say: Say, home: Path) -> None:
    (home / "data" / "towline.db").unlink()
    assert say("--copy", str(home / "copy.db")).exit_code == ward.CANNOT
    assert not (home / "copy.db").exists()
    look = say()
    assert look.exit_code == ward.FOUND
    assert "is missing" in look.output


def test_two_things_at_once_are_refused(say: Say) -> None:
    result = say("--repair", "--online")
    assert result.exit_code == 1


def test_folders_and_files_that_others_may_open_are_told(say: Say, home: Path) -> None:
    (home / "data").chmod(0o755)
    (home / "data" / "towline.db").chmod(0o644)
    result = say()
    assert result.exit_code == ward.CLEAN
    assert "is open to other users, who may read it: chmod 700" in result.output
    assert "Other users may open towline.db" in result.output


def test_a_data_folder_that_is_a_file_is_a_fault(
    say: Say, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (home / "file").touch()
    monkeypatch.setenv("TOWLINE_DATA_DIR", str(home / "file" / "data"))
    result = say()
    assert result.exit_code in (ward.FOUND, ward.CANNOT)
    assert "cannot be written" in result.output


def test_a_home_where_nothing_is_yet_is_in_order(
    say: Say, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_HOME", str(home / "new"))
    result = say()
    assert result.exit_code == ward.CLEAN
    assert "the first start makes it" in result.output
    assert "There is no store in" in result.output
    assert not (home / "new").exists()


@contextmanager
def _taken() -> Generator[int]:
    with socket.create_server(("127.0.0.1", 0)) as other:
        yield other.getsockname()[1]


def test_a_port_that_another_program_holds_is_told(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    with _taken() as port:
        monkeypatch.setenv("TOWLINE_PORT", str(port))
        result = say()
    assert result.exit_code == ward.CLEAN
    assert f"Port {port} at '127.0.0.1' is held by another program" in result.output


def test_an_address_that_is_not_of_this_machine_is_a_fault(
    say: Say, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOWLINE_HOST", "192.0.2.1")
    result = say()
    assert result.exit_code == ward.FOUND
    assert "is no address of this machine" in result.output


def test_the_file_of_a_server_that_died_is_told(say: Say, home: Path) -> None:
    gone = RunFile(url="http://127.0.0.1:9", pid=2**22 + 1, token="x")
    (home / "run.json").write_bytes(encode(gone))
    result = say()
    assert "names a server that does not answer" in result.output
    assert result.exit_code == ward.CLEAN


async def _ask(home: Path, *answers: Scripted | bytes, **environ: str) -> tuple[int, str, int]:
    text = StringIO()
    web = ScriptedTransport(*answers)
    told = await ward.examine(
        Console(file=text, width=400),
        online=True,
        environ={"TOWLINE_HOME": str(home), "TOWLINE_PORT": "0", **environ},
        clock=FakeClock(),
        transport=web,
    )
    return told, text.getvalue(), len(web.calls)


async def test_each_provider_with_a_key_is_asked_once_when_that_is_wished(home: Path) -> None:
    good = json.dumps({"data": [{"id": "gpt-5"}]}).encode()
    code, text, asked = await _ask(home, good, OPENAI_API_KEY="sk-one")
    assert asked == 1
    assert "There are keys: openai (environment)." in text
    assert "OpenAI answers; it offers 1 models." in text
    assert "sk-one" not in text
    refused = Scripted(status=401, parts=(b'{"error":{"message":"no"}}',))
    code, text, asked = await _ask(home, refused, OPENAI_API_KEY="sk-one")
    assert (code, asked) == (ward.FOUND, 1)


async def test_nobody_is_asked_without_that_wish(home: Path) -> None:
    text = StringIO()
    web = ScriptedTransport()
    await ward.examine(
        Console(file=text, width=400),
        environ={"TOWLINE_HOME": str(home), "OPENAI_API_KEY": "sk-one"},
        transport=web,
    )
    assert web.calls == []


async def test_events_of_the_future_mean_that_a_clock_is_wrong(home: Path) -> None:
    text = StringIO()
    code = await ward.examine(
        Console(file=text, width=400),
        environ={"TOWLINE_HOME": str(home), "TOWLINE_PORT": "0"},
        clock=FakeClock(now_ms=1_000_000_000_000),
    )
    assert code == ward.CLEAN
    assert "warning" in text.getvalue()
    assert "this machine's clock says 2001-09-09" in text.getvalue()
