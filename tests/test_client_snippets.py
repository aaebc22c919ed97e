"""The programs of the client's pages that stand in `docs_src/`, run against a scripted server."""

import asyncio
import runpy
from collections import deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn, refuse
from towline_protocol import MessageEnded, MessageId, MessageStarted, Preview, Text, TextDelta

ROOT = Path(__file__).parents[1]
SNIPPETS = ROOT / "docs_src"
PAGES = ("docs/client.md", "docs/own-client.md", "packages/client/README.md")


async def answer(turn: ScriptedTurn, text: str) -> None:
    if text == "Run the tests.":
        preview = Preview(kind="command", text="make test")
        call, option = await turn.ask("run_program", "make test", preview=preview)
        turn.end_call(call, option)
    await turn.say("It is ", "done.")


@dataclass(frozen=True)
class Case:
    """One run of a snippet."""

    printed: str
    lost: tuple[str, ...] = ()
    """Operations whose next reply is lost after they were carried out."""


CASES = {
    "client_script": Case("It is done.\n"),
    "client_program": Case("completed\n"),
    "client_person": Case("It is done.\n"),
    "own_events": Case("It is done.\nTurnCompleted\n"),
    "own_line": Case("(live)\nIt is done.\n(closed)\n"),
    "own_presentation": Case("It is done.\nIt is done.\n"),
    "own_say": Case("unknown - The script lost the reply.\n", lost=("send_prompt",)),
    "own_scrollback": Case("connecting 2\n"),
}
TESTS = "own_testing"
SERVER_TESTS = "own_server"


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str, ScriptedServer], None]:
    """Runs a snippet as its reader would, at home in an empty folder."""
    monkeypatch.setenv("HOME", str(tmp_path))

    def run_snippet(name: str, server: ScriptedServer) -> None:
        def transport(url: str) -> ScriptedTransport:
            assert url == "http://127.0.0.1:4747"
            return ScriptedTransport(server)

        monkeypatch.setattr("towline_client.http.HttpTransport", transport)
        runpy.run_path(str(SNIPPETS / f"{name}.py"), run_name="__main__")

    return run_snippet


def test_each_snippet_of_the_client_has_a_run_and_stands_on_a_page() -> None:
    names = {path.stem for start in ("client", "own") for path in SNIPPETS.glob(f"{start}_*.py")}
    assert names == CASES.keys() | {TESTS, SERVER_TESTS}
    pages = "".join((ROOT / page).read_text("utf-8") for page in PAGES)
    programs = {name: (SNIPPETS / f"{name}.py").read_text("utf-8") for name in names}
    assert [name for name in names if f"```python\n{programs[name]}```" not in pages] == []


@pytest.mark.parametrize("name", CASES)
def test_a_snippet_of_the_client_prints_what_its_page_says(
    name: str, run: Callable[[str, ScriptedServer], None], capsys: pytest.CaptureFixture[str]
) -> None:
    case, server = CASES[name], ScriptedServer(answer)
    server.lose.extend(case.lost)
    run(name, server)
    assert capsys.readouterr().out == case.printed
    assert {call.token for call in server.calls} == {"a token"}


@pytest.mark.parametrize("ends_meanwhile", [False, True])
def test_the_snippet_of_events_prints_all_of_a_message_that_a_cut_has_split(
    ends_meanwhile: bool,
    run: Callable[[str, ScriptedServer], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    message = MessageId("msg_1")

    async def split(turn: ScriptedTurn, text: str) -> None:
        turn.emit(MessageStarted(message=message, role="assistant"))
        turn.emit(TextDelta(message=message, block=0, at=0, text="It "))
        await asyncio.sleep(0)
        turn.session.hang_up()
        turn.emit(TextDelta(message=message, block=0, at=3, text="is "))
        if not ends_meanwhile:
            async with asyncio.timeout(30):
                await server.until_called("follow", 2)
            turn.emit(TextDelta(message=message, block=0, at=6, text="done."))
        turn.emit(MessageEnded(message=message, content=(Text(text="It is done."),)))

    server = ScriptedServer(split)
    run("own_events", server)
    assert capsys.readouterr().out == "It is done.\nTurnCompleted\n"
    assert server.count("follow") == 2


def said(server: ScriptedServer) -> list[list[str]]:
    """What stands in each session, by who said it."""
    return [[entry.role for entry in each.view.messages] for each in server.sessions.values()]


def test_a_prompt_that_nobody_knows_of_counts_once_when_it_is_sent_again(
    run: Callable[[str, ScriptedServer], None],
) -> None:
    server = ScriptedServer(answer)
    server.lose.append("send_prompt")
    run("own_say", server)
    keys = [call.headers["idempotency-key"] for call in server.calls if "/prompt" in call.path]
    assert len(keys) == 2
    assert len(set(keys)) == 1
    assert [entries.count("user") for entries in said(server)] == [1]


def test_a_prompt_that_was_refused_is_discarded(
    run: Callable[[str, ScriptedServer], None], capsys: pytest.CaptureFixture[str]
) -> None:
    server = ScriptedServer(answer)
    server.replies["send_prompt"] = deque([refuse("gone", "The session is closed.")])
    run("own_say", server)
    assert capsys.readouterr().out == "refused - The session is closed.\n"
    assert said(server) == [[]]


def test_the_tests_that_the_page_shows_pass() -> None:
    names = runpy.run_path(str(SNIPPETS / f"{TESTS}.py"))
    tests: list[Callable[[], Coroutine[Any, Any, None]]] = [
        value for name, value in names.items() if name.startswith("test_")
    ]
    assert len(tests) == 2
    for test in tests:
        asyncio.run(test())


def test_the_test_of_a_real_server_that_the_page_shows_passes(tmp_path: Path) -> None:
    names = runpy.run_path(str(SNIPPETS / f"{SERVER_TESTS}.py"))

    async def run_bounded() -> None:
        async with asyncio.timeout(60):
            await names["test_a_note_is_asked_for_and_made"](tmp_path)

    assert names["notes"] == []
    asyncio.run(run_bounded())
    assert names["notes"] == ["lemons"]  # by the tool that the real server ran
