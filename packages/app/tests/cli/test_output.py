"""Output that cannot be written."""

import asyncio
import errno
import io
import sys

import pytest

from towline.cli.output import OUTPUT_FAILED, heeded_output


class _Full(io.StringIO):
    def write(self, text: str, /) -> int:
        del text
        raise OSError(errno.ENOSPC, "No space left on device")


async def _print_in_a_task() -> None:
    async def say() -> None:
        sys.stdout.write("hello\n")

    async with asyncio.TaskGroup() as group:
        group.create_task(say())


def test_a_failure_within_a_group_of_tasks_is_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdout", _Full())
    with pytest.raises(SystemExit) as ended, heeded_output():
        asyncio.run(_print_in_a_task())
    assert ended.value.code == OUTPUT_FAILED
    said = "towline: Standard output cannot be written (No space left on device).\n"
    assert capsys.readouterr().err == said


def test_without_standard_error_only_the_exit_code_tells(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stderr", _Full())
    with pytest.raises(SystemExit) as ended, heeded_output():
        sys.stderr.write("hello")
    assert ended.value.code == OUTPUT_FAILED
    assert capsys.readouterr().out == ""


def test_other_errors_of_a_group_stay_as_they_are_and_the_streams_come_back() -> None:
    before = sys.stdout, sys.stderr
    with pytest.raises(ExceptionGroup, match="mixed"), heeded_output():
        raise ExceptionGroup("mixed", [OSError(errno.EIO, "Input/output error")])
    assert (sys.stdout, sys.stderr) == before
