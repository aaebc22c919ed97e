"""The programs of the client's page and README: each is run, against a scripted server."""

import re
from pathlib import Path
from typing import Any

import pytest

from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_protocol import Preview

ROOT = Path(__file__).parents[3]


def _programs(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```$", (ROOT / page).read_text("utf-8"), re.M | re.S)


async def _answer(turn: ScriptedTurn, text: str) -> None:
    if text == "Run the tests.":
        preview = Preview(kind="command", text="make test")
        call, option = await turn.ask("run_program", "make test", preview=preview)
        turn.end_call(call, option)
    await turn.say("It is done.")


_PRINTED = {
    "docs/client.md": [
        "It is done.\n",
        "completed\n",
        "It is done.\n",
        "0 sessions\nchanged: ses_0001\n",
    ],
    "packages/client/README.md": ["It is done.\n"],
}


def test_every_program_of_the_pages_is_run_here() -> None:
    assert {page: len(_programs(page)) for page in _PRINTED} == {
        page: len(printed) for page, printed in _PRINTED.items()
    }


@pytest.mark.parametrize(
    ("page", "number"),
    [(page, number) for page, printed in _PRINTED.items() for number in range(len(printed))],
)
def test_a_program_of_the_pages_prints_what_it_should(
    page: str, number: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    server = ScriptedServer(_answer)

    def transport(url: str) -> ScriptedTransport:
        assert url == "http://127.0.0.1:4747"
        return ScriptedTransport(server)

    monkeypatch.setattr("towline_client.http.HttpTransport", transport)
    place: dict[str, Any] = {"__name__": "__main__"}
    exec(compile(_programs(page)[number], page, "exec"), place)
    assert capsys.readouterr().out == _PRINTED[page][number]
    assert {call.token for call in server.calls} == {"a token"}
