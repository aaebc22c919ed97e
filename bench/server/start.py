"""The start of `towline up`, and what it takes of memory when nothing happens."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

from figure import Goal, show

from server.process import fresh
from server.stored import fill

__all__ = ["show_start"]

SESSIONS: Final = 10_000
DISTRIBUTIONS: Final = ("towline_protocol", "towline_agent", "towline_client", "towline_server")
_PATIENCE_S: Final = 60.0
_TICKS: Final = os.sysconf("SC_CLK_TCK")


class _Start(NamedTuple):
    ready_s: float
    """From the command to the first answer."""
    cpu_s: float
    """CPU until then."""
    mib: float
    """Resident a second later."""


def _environ(**more: str) -> dict[str, str]:
    """Ours, but modules are compiled once: a start that compiles measures the compiler."""
    kept = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, **more}


def _import_ms(code: str, turns: int) -> float:
    """CPU milliseconds of a Python process that runs this code."""
    told: list[float] = []
    for _ in range(turns + 1):  # the first one compiles
        run = subprocess.run(
            [sys.executable, "-c", f"{code}; import time; print(time.process_time())"],
            env=_environ(),
            check=True,
            capture_output=True,
            text=True,
        )
        told.append(float(run.stdout) * 1000)
    return statistics.median(told[1:])


def _start(home: Path) -> _Start:
    environ = _environ(
        TOWLINE_HOME=str(home),
        OPENAI_API_KEY="sk-unused",
        TOWLINE_PORT="0",
        TOWLINE_MODEL="openai/none",
    )
    run_file = home / "run.json"
    began = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "towline", "up", "--background"],
        env=environ,
        cwd=home,
        stdout=subprocess.DEVNULL,
    ) as process:
        try:
            while not run_file.exists():
                if process.poll() is not None or time.perf_counter() - began > _PATIENCE_S:
                    raise SystemExit("`towline up` did not start; see above.")
                time.sleep(0.002)
            url = json.loads(run_file.read_text())["url"]
            with urllib.request.urlopen(f"{url}/readyz", timeout=_PATIENCE_S) as answer:
                answer.read()
            ready = time.perf_counter() - began
            cpu = _cpu_s(process.pid)
            time.sleep(1)
            return _Start(ready, cpu, _resident_mib(process.pid))
        finally:
            process.terminate()
            process.wait(_PATIENCE_S)


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def _resident_mib(pid: int) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS:")) / 1024


def _show_starts(words: str, starts: Sequence[_Start]) -> None:
    ready, cpu, mib = (statistics.median(each) for each in zip(*starts, strict=True))
    show(f"`towline up` to ready, {words}", "s", ready, goal=Goal(1))
    show("  its CPU", "s", cpu)
    show("  its memory when idle", "MiB", mib, goal=Goal(80))


def show_start(*, quick: bool) -> None:
    """Measure and print the start, with an empty store and with a full one, and the imports."""
    turns = 3 if quick else 7
    with tempfile.TemporaryDirectory() as empty, tempfile.TemporaryDirectory() as full:
        fresh(fill, Path(full) / "data", SESSIONS)
        _start(Path(empty))  # compiles the modules
        pairs = [(_start(Path(empty)), _start(Path(full))) for _ in range(turns)]
    _show_starts("nothing stored", [pair[0] for pair in pairs])
    _show_starts(f"{SESSIONS:,} sessions stored", [pair[1] for pair in pairs])
    bare = _import_ms("pass", turns)
    for name in DISTRIBUTIONS:
        above = _import_ms(f"import {name}", turns) - bare
        show(f"import {name}, above Python's own", "ms of CPU", above)
