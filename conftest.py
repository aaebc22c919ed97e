"""What every test of every distribution shares.

Tests that need more than Python carry a marker. Where the machine lacks it they are skipped with
one loud line, and `TOWLINE_REQUIRE=chromium,node` turns each such skip into a failure.

Tests run in two processes at once. What asks the local model stays in one of them, so that the
model is loaded once and answers one at a time.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final

import pytest
from hypothesis import settings
from xdist.remote import Producer  # pyright: ignore[reportMissingTypeStubs]
from xdist.scheduler import LoadScopeScheduling  # pyright: ignore[reportMissingTypeStubs]

from towline_agent.workspaces.landlock import MIN_ABI, landlock_abi

ROOT = Path(__file__).parent
FIGURES: Final = "figures"
"""The property of a test under which its report carries what the test has counted."""

# Machines are slow in different ways, so no example has a time of its own; a run on a build
# machine tries the same examples every time, so that a red one can be had again.
settings.register_profile("towline", deadline=None, derandomize="CI" in os.environ)
settings.register_profile("quick", settings.get_profile("towline"), max_examples=20)
settings.load_profile("towline")


def _has_chromium() -> bool:
    return any(shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))


def _has_node() -> bool:
    return bool(shutil.which("node")) or (ROOT / ".venv" / "bin" / "node").exists()


@cache
def _has_sandbox() -> bool:
    found = shutil.which("bwrap")
    if found is None:
        return False
    words = "--unshare-pid --unshare-net --ro-bind / / --dev /dev --proc /proc true"
    argv = [found, *words.split()]
    return subprocess.run(argv, capture_output=True, timeout=30, check=False).returncode == 0  # noqa: S603


def _has_landlock() -> bool:
    return sys.platform == "linux" and landlock_abi() >= MIN_ABI


NEEDS = {
    "chromium": (_has_chromium, "NO CHROMIUM on the path: `apt-get install chromium` to run this."),
    "node": (_has_node, "NO NODE on the path: `uv sync --group web` to run this."),
    "sandbox": (
        _has_sandbox,
        "NO SANDBOX: `apt-get install bubblewrap` to run this, where namespaces may be made.",
    ),
    "landlock": (_has_landlock, "NO LANDLOCK: this needs Linux 6.2 with landlock switched on."),
}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip, or fail, what this machine cannot run."""
    required = os.environ.get("TOWLINE_REQUIRE", "").split(",")
    for name, (found, reason) in NEEDS.items():
        if item.get_closest_marker(name) is not None and not found():
            if name in required:
                pytest.fail(f"{reason} TOWLINE_REQUIRE names {name!r}.", pytrace=False)
            pytest.skip(reason)


@cache
def _asks_model(file: str) -> bool:
    return "mark.model" in (ROOT / file).read_text(encoding="utf-8")


class _OneAtTheModel(LoadScopeScheduling):
    """Hands out one test after the other, but the files that ask the model to one process."""

    def _split_scope(self, nodeid: str) -> str:
        return "model" if _asks_model(nodeid.partition("::")[0]) else nodeid


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> LoadScopeScheduling | None:
    """Take the place of `--dist loadgroup`, whose marks are lost on the way in pytest 9.2."""
    return _OneAtTheModel(config, log) if config.getoption("dist") == "loadgroup" else None


@pytest.fixture
def show_figures(record_property: Callable[[str, object], None]) -> Callable[[str], None]:
    """Has what a test counted stand in the summary; it comes there from any process."""

    def show(text: str) -> None:
        record_property(FIGURES, text)

    return show


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print what tests have counted."""
    reports = (one for kind in ("passed", "failed") for one in terminalreporter.getreports(kind))
    told = [
        text
        for report in reports
        if report.when == "call"
        for name, text in report.user_properties
        if name == FIGURES
    ]
    if told:
        terminalreporter.section(FIGURES)
    for text in told:
        terminalreporter.line(str(text))
