"""`towline sessions`, from a store at rest and from a server."""

import asyncio
import json
import os
import re
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from towline.cli.sessions import describe_session, show_sessions
from towline.paths import find_paths
from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import SessionId, SessionInfo, TurnId, encode
from towline_server import CursorExpired, RunFile, open_store
from towline_server.testing import AppClient, open_test_server

ROW = SessionInfo(
    id=SessionId("ses_1"),
    agent="towline",
    model="a/b",
    mode="ask",
    live=False,
    last_seq=3,
    title="Plans",
    created="2026-01-31T09:05:00.250Z",
    updated="2026-01-31T09:05:00.250Z",
)


async def _show(
    home: Path, *, after: str | None = None, limit: int = 20, as_json: bool = False
) -> str:
    screen = StringIO()
    console = Console(file=screen, width=200)
    environ = {"TOWLINE_HOME": str(home)}
    code = await show_sessions(console, limit=limit, after=after, as_json=as_json, environ=environ)
    assert code == 0
    return screen.getvalue()


async def _show_elsewhere(home: Path, limit: int) -> str:
    """The same beside this loop, which serves: the look for a server blocks."""

    def show() -> str:
        return asyncio.run(_show(home, limit=limit))

    return await asyncio.get_running_loop().run_in_executor(None, show)


async def test_where_none_ran_there_are_none(tmp_path: Path) -> None:
    assert (await _show(tmp_path)).startswith("There are none; ")
    with pytest.raises(CursorExpired):
        await _show(tmp_path, after="nonsense")


async def test_they_are_listed_page_by_page_whether_a_server_runs_or_not(tmp_path: Path) -> None:
    home = tmp_path / "home"
    store = await open_store(find_paths({"TOWLINE_HOME": str(home)}).data_dir, mint=mint_now)
    async with open_test_server(ScriptedProvider("a", "b"), root=tmp_path, store=store) as built:
        client = AppClient(built)
        for words in ("first plan", "second plan"):
            session = await client.create()
            await client.prompt(session, words)
            await client.until(session, lambda view: view.last_turn is not None)
        file = home / "run.json"
        file.write_bytes(encode(RunFile(url=built.url, pid=os.getpid(), token=built.token)))
        served = [await _show_elsewhere(home, limit) for limit in (20, 1)]
        file.unlink()
    await store.close()
    assert [await _show(home), await _show(home, limit=1)] == served
    whole, page = served
    second, first, hint = whole.splitlines()
    line = r"ses_\S+  \d{4}-\d\d-\d\d \d\d:\d\d  unread          "
    assert re.fullmatch(f"{line}second plan", second)
    assert re.fullmatch(f"{line}first plan", first)
    assert "chat --session ID" in hint
    cursor = re.search(r"sessions --after (\S+)`", page)
    assert cursor is not None
    assert (await _show(home, limit=1, after=cursor[1])).startswith(first)
    listed = json.loads(await _show(home, as_json=True))["sessions"]
    assert [row["title"] for row in listed] == ["second plan", "first plan"]


@pytest.mark.parametrize(
    ("row", "state"),
    [
        ({"pending": 1, "turn": TurnId("trn_1")}, "waits for you"),
        ({"turn": TurnId("trn_1")}, "works"),
        ({"closed": True}, "closed"),
        ({"unread": True}, "unread"),
        ({}, ""),
    ],
)
def test_a_line_says_what_a_session_needs(row: dict[str, object], state: str) -> None:
    shown = describe_session(msgspec.structs.replace(ROW, **row))
    assert re.fullmatch(rf"ses_1  \S+ \d\d:\d\d  {state:<14}  Plans", shown)
