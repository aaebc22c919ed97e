"""The command that scores a real model, with a scripted one in its place."""

import tempfile
from pathlib import Path

import pytest
from tasks.run import choose_tasks, main, run_tasks
from tasks.script import TaskScript

from towline_agent import LOCAL_MODEL_FACTS, ProviderUnavailable, StepFailed
from towline_agent.testing import ScriptedProvider

pytestmark = pytest.mark.slow


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


async def test_the_command_scores_what_a_model_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (task,) = choose_tasks(["answer_from_file"])
    gone = StepFailed(error=ProviderUnavailable("It is gone.", retryable=False))
    right = await run_tasks([task], TaskScript(task))
    wrong = await run_tasks([task], ScriptedProvider("It has no name."))
    lost = await run_tasks([task], ScriptedProvider(gone))
    assert [(row.passed, row.steps, row.tokens) for row in right] == [(True, 2, 30)]
    assert [(row.passed, row.why) for row in wrong] == [
        (False, r"did not say '\\bKestrel\\b', '\\b840\\b'")
    ]
    assert [(row.passed, row.why) for row in lost] == [(False, "ProviderUnavailable: It is gone.")]
    assert "answer_from_file       passed      2       30" in capsys.readouterr().err
    assert _names(tmp_path) == [], "a copy was left behind"


def test_the_command_says_clearly_what_keeps_it_from_running(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("HOME", "TOWLINE_MODEL_DIR", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    assert main(["--task", "no_such"]) == 2
    assert "There is no task 'no_such'; there are add_cli_option" in capsys.readouterr().err
    assert main(["--unconfined", "--model", LOCAL_MODEL_FACTS.name]) == 2
    assert "There is no model. Name one" in capsys.readouterr().err
    assert main(["--list", "--easy"]) == 0
    assert "answer_from_file\n" in capsys.readouterr().out
