"""What `towline run` prints of what others wrote."""

from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from towline.cli.run import RunScreen, run_once, say_loading
from towline.local import LocalModel, LocalModelError
from towline.local_provider import LocalProvider
from towline_protocol import (
    DENY,
    CallId,
    MessageId,
    Option,
    PermissionId,
    PermissionRequested,
    Preview,
    TextDelta,
)

_HIDDEN = "rm [bold]\u202egpj.x\u200b\x1b[2K :bug:"
_SHOWN = "rm [bold]<U+202E>gpj.x<U+200B>␛[2K :bug:"


async def test_a_request_spells_out_what_hides_in_it() -> None:
    console = Console(file=StringIO(), width=200)
    request = PermissionRequested(
        permission=PermissionId("prm_1"),
        call=CallId("call_1"),
        tool="run_program",
        title=_HIDDEN,
        reason="\u2066why",
        preview=Preview(kind="command", text=_HIDDEN, truncated=True),
        digest="d" * 64,
        options=(Option(id=DENY, label="Deny"),),
        expires_at="2999-01-01T00:00:00.000Z",
    )
    assert await RunScreen(console).ask(request) == DENY
    assert isinstance(console.file, StringIO)
    title, preview, _ = console.file.getvalue().splitlines()
    assert title == f"{_SHOWN}  (<U+2066>why)"
    assert preview == _SHOWN


@pytest.mark.parametrize(
    ("terminal", "shown"), [(True, "a👩\u200d💻␛[2K<U+202E>"), (False, "a👩\u200d💻\x1b[2K\u202e")]
)
def test_a_terminal_gets_no_controls_and_a_pipe_gets_the_text(terminal: bool, shown: str) -> None:
    console = Console(file=StringIO(), force_terminal=terminal)
    text = "a👩\u200d💻\x1b[2K\u202e"
    RunScreen(console).show(TextDelta(message=MessageId("msg_1"), block=0, at=0, text=text))
    assert isinstance(console.file, StringIO)
    assert console.file.getvalue() == shown


class _Unreachable(LocalProvider):
    """The embedded model on a machine that cannot run it."""

    async def start(self) -> LocalModel:
        raise LocalModelError("It is not there.")


async def test_what_is_told_of_the_local_model_goes_not_where_the_answer_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("TOWLINE_HOME", str(tmp_path))
    monkeypatch.setattr("towline.models.LocalProvider", _Unreachable)
    answer = StringIO()
    with pytest.raises(LocalModelError):
        await run_once("Hi", "any.gguf", auto=False, console=Console(file=answer))
    assert answer.getvalue() == ""
    assert capsys.readouterr().err == "Loading the local model, which takes some seconds.\n"


def test_a_second_copy_of_the_model_is_told_of() -> None:
    assert "second copy" in say_loading(beside_server=True)
    assert "second copy" not in say_loading(beside_server=False)
