"""`towline users`, `devices` and `pair`: on a store at rest, and through a server that runs."""

import asyncio
import io
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from towline.cli.attach import NoServer
from towline.cli.devices import describe_device
from towline.cli.main import app
from towline.cli.pair import draw_code, pair, show_link
from towline_agent import SystemClock, mint_now
from towline_agent.testing import ScriptedProvider
from towline_client import Client, Unauthorized
from towline_protocol import TokenInfo, TowlineError, encode
from towline_server import Accounts, BuiltApp, RunFile, StoreLocked, open_store
from towline_server.testing import open_test_server

WORD = "correct horse"
END_S = 60.0

Say = Callable[..., Result]


@pytest.fixture(name="home")
def home_fixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    monkeypatch.setenv("TOWLINE_HOME", str(home))
    monkeypatch.setenv("COLUMNS", "400")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    return home


@pytest.fixture(name="say")
def say_fixture(home: Path) -> Say:
    """Runs `towline` in a home of its own."""
    del home

    def run(*arguments: str, text: str = "") -> Result:
        result = CliRunner().invoke(app, arguments, input=text)
        assert WORD not in result.output
        assert WORD not in str(result.exception or "")
        return result

    return run


def _refused(result: Result) -> str:
    """The sentence with which a command ended."""
    assert isinstance(result.exception, TowlineError)
    return result.exception.message


async def _knows(home: Path, name: str, password: str) -> bool:
    store = await open_store(home / "data", mint=mint_now)
    accounts = Accounts(store, now_ms=SystemClock().now_ms, mint=mint_now)
    try:
        return await accounts.check_password(name, password)
    finally:
        accounts.passwords.close()
        await store.close()


def test_the_owner_gets_a_password_before_any_server_ran(say: Say, home: Path) -> None:
    assert "owner                admin  no password" in say("users", "list").output
    done = say("users", "password", text=f"{WORD}\nand no more\n")
    assert done.exit_code == 0
    assert done.output == "The password of owner is set. Paired devices stay in.\n"
    assert "owner                admin  has a password" in say("users", "list").output
    assert asyncio.run(_knows(home, "owner", WORD))


def test_users_come_and_go(say: Say, home: Path) -> None:
    assert say("users", "add", "ann", text=WORD).output == "ann may come in.\n"
    added = say("users", "add", "bob", "--admin", text=WORD)
    assert added.output == "bob may come in, as an admin.\n"
    listed = say("users", "list").output
    assert "ann                  user   has a password" in listed
    assert "bob                  admin  has a password" in listed
    assert "may come in no more" in say("users", "remove", "bob").output
    assert "bob" not in say("users", "list").output
    assert "`towline users add bob --restore`" in _refused(say("users", "add", "bob", text=WORD))
    assert say("users", "add", "bob", "--restore", text=WORD).exit_code == 0
    assert asyncio.run(_knows(home, "bob", WORD))


@pytest.mark.parametrize(
    ("arguments", "text", "says"),
    [
        (("add", "Ann"), WORD, "'Ann' is no user's name"),
        (("add", "ann"), "short", "A password has 8 to 1024 characters; this one has 5."),
        (("add", "ann"), "", "No password came"),
        (("add", "owner"), WORD, "There is a user 'owner' already"),
        (("password", "nobody"), WORD, "There is no user 'nobody'"),
        (("remove", "nobody"), "", "There is no user 'nobody'"),
        (("remove", "owner"), "", "'owner' cannot be removed"),
    ],
)
def test_what_cannot_be_is_said_in_a_sentence(
    say: Say, arguments: tuple[str, ...], text: str, says: str
) -> None:
    assert _refused(say("users", *arguments, text=text)).startswith(says)


def test_a_password_is_no_argument(say: Say) -> None:
    result = CliRunner().invoke(app, ["users", "password", "owner", "a word"])
    assert result.exit_code == 2
    assert "unexpected extra argument" in result.output


async def _admit(home: Path) -> str:
    """Pair a device and give its id."""
    store = await open_store(home / "data", mint=mint_now)
    accounts = Accounts(store, now_ms=SystemClock().now_ms, mint=mint_now)
    await accounts.admit("owner", "device", "a \x1b[31mphone")
    (token,) = (await accounts.list_tokens("owner")).tokens
    await store.close()
    return token.id


def test_devices_are_listed_as_they_are_and_revoked_by_their_id(say: Say, home: Path) -> None:
    assert "No device is paired" in say("devices", "list").output
    device = asyncio.run(_admit(home))
    listed = say("devices", "list").output
    time = r"\d{4}-\d\d-\d\d \d\d:\d\d"
    line = rf"{device}  device   since {time}, used {time}, until {time}  a ␛\[31mphone\n"
    assert re.fullmatch(line, listed)
    assert say("devices", "revoke", device).output == f"{device} is let in no more.\n"
    assert "`towline devices list`" in _refused(say("devices", "revoke", device))


def test_a_device_without_a_name_is_listed_as_such() -> None:
    at = "2026-01-31T09:05:00.250Z"
    token = TokenInfo(id="tok_1", name="device", kind="device", created=at, last_used=at)
    assert describe_device(token).endswith(", until it is revoked  (no name)")


async def test_a_server_that_cannot_be_found_keeps_its_store(home: Path) -> None:
    store = await open_store(home / "data", mint=mint_now)
    loop = asyncio.get_running_loop()
    result = await loop.run_in_executor(None, CliRunner().invoke, app, ["users", "list"])
    await store.close()
    assert isinstance(result.exception, StoreLocked)


@asynccontextmanager
async def _running(home: Path, root: Path) -> AsyncGenerator[BuiltApp]:
    """A server that programs of this home find."""
    async with open_test_server(ScriptedProvider(), root=root) as built:
        _announce(home, RunFile(url=built.url, pid=os.getpid(), token=built.token))
        yield built


def _announce(home: Path, found: RunFile) -> None:
    home.mkdir(parents=True, exist_ok=True)
    (home / "run.json").write_bytes(encode(found))


async def _invoke(*arguments: str, text: str = "") -> Result:
    def run() -> Result:
        return CliRunner().invoke(app, arguments, input=text)

    return await asyncio.get_running_loop().run_in_executor(None, run)


async def test_a_server_that_runs_is_asked(home: Path, tmp_path: Path) -> None:
    async with _running(home, tmp_path) as built:
        accounts = built.access.accounts
        assert (await _invoke("users", "add", "ann", text=WORD)).exit_code == 0
        assert await accounts.check_password("ann", WORD)
        assert (await _invoke("users", "password", text=WORD)).exit_code == 0
        assert (await _invoke("users", "password", text=f"{WORD} 2")).exit_code == 0  # no old one
        assert await accounts.check_password("owner", f"{WORD} 2")
        assert "ann " in (await _invoke("users", "list")).output
        assert (await _invoke("users", "remove", "ann")).exit_code == 0
        assert not await accounts.check_password("ann", WORD)
        refused = await _invoke("users", "add", "ann", text=WORD)
        assert "was a user 'ann' once" in _refused(refused)
        login = await built.access.login("owner", f"{WORD} 2", name="laptop")
        listed = (await _invoke("devices", "list")).output
        assert "  login    since " in listed
        assert login.token not in listed
        gone = await _invoke("devices", "revoke", listed.split()[0])
        assert gone.exit_code == 0
        everywhere = await _invoke("users", "password", "--everywhere", text=WORD)
        assert everywhere.output.endswith("Every device and program was let go.\n")
        assert not (home / "data").exists()


async def test_a_program_logs_in_and_makes_a_token_of_its_own(tmp_path: Path) -> None:
    async with open_test_server(ScriptedProvider(), root=tmp_path) as built:
        await built.access.accounts.set_password("owner", WORD)
        async with Client(built.url) as client:
            with pytest.raises(Unauthorized, match="The name or the password is wrong"):
                await client.account.login("a wrong one")
            login = await client.account.login(WORD, name="script")
        async with Client(built.url, login.token) as client:
            made = await client.account.create_token("bot", lifetime_s=60)
            names = [token.name for token in (await client.account.list_tokens()).tokens]
            assert names == ["script", "bot"]
            await client.account.change_password("owner", f"{WORD} 2", old=WORD)
        async with Client(built.url, made.token) as client:
            assert (await client.me()).admin
            await client.account.revoke_token(made.id)
            with pytest.raises(Unauthorized):
                await client.me()


async def test_a_link_is_printed_and_says_whose_account_it_opens(
    home: Path, tmp_path: Path
) -> None:
    async with _running(home, tmp_path) as built:
        printed = (await _invoke("pair")).output
    assert f"Open   {built.url}/#code=" in printed
    assert "It works once, for 10 minutes." in printed
    assert "Whoever opens it comes in as 'owner'" in printed
    assert "█" not in printed  # a file or a pipe has no camera


@pytest.mark.parametrize(
    ("url", "drawn"),
    [
        ("http://127.0.0.1:4747", False),
        ("http://[::1]:4747", False),
        ("http://localhost:4747", False),
        ("https://desk.example.org", True),
        ("http://192.168.1.5:4747", True),
    ],
)
def test_a_code_is_drawn_where_another_device_can_open_the_link(url: str, *, drawn: bool) -> None:
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=200, highlight=False)
    show_link(console, f"{url}/#code=ABCD-EFGH", "ABCD-EFGH")
    printed = screen.getvalue()
    assert ("█" in printed) is drawn
    assert ("up --host 0.0.0.0" in printed) is not drawn  # what to do, where none can


def test_a_drawn_code_is_a_square_of_half_blocks() -> None:
    lines = draw_code("http://127.0.0.1:4747/#code=ABCD-EFGH").splitlines()
    assert {len(line) for line in lines} == {len(lines) * 2 - 1}
    assert set("".join(lines)) == set("█▀▄ ")


async def test_without_a_server_there_is_no_link(home: Path) -> None:
    environ = {"TOWLINE_HOME": str(home)}
    with pytest.raises(NoServer, match=r"No server of yours runs; start one with `.*up`"):
        await pair(Console(), environ)


def _type(environ: dict[str, str], *typed: str) -> str:
    """Run `towline users password` at a terminal; gives what the terminal showed."""
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "towline", "users", "password"],
        env=environ,
        stdin=follower,
        stdout=follower,
        stderr=follower,
        start_new_session=True,
    )
    os.close(follower)
    shown = b""
    words = list(typed)
    until = time.monotonic() + END_S
    while time.monotonic() < until:
        if select.select([leader], [], [], 0.05)[0]:
            try:
                chunk = os.read(leader, 4096)
            except OSError:  # the other end is closed
                break
            shown += chunk
            if words and chunk.rstrip().endswith(b":"):
                os.write(leader, f"{words.pop(0)}\n".encode())
        elif process.poll() is not None:
            break
    process.wait(END_S)
    os.close(leader)
    return shown.decode()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "says"),
    [
        ((WORD, WORD), "The password of owner is set."),
        ((WORD, "another"), "The two passwords differ; nothing was changed."),
    ],
)
def test_at_a_terminal_it_is_typed_twice_and_not_shown(
    headless_environ: dict[str, str], typed: tuple[str, ...], says: str
) -> None:
    shown = _type(headless_environ, *typed)
    assert says in shown
    assert WORD not in shown
