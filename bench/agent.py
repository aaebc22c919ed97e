"""CPU of whole agent loops: ours, a bare one written by hand, and those of other libraries.

Each figure is the CPU time of a fresh process that runs one case of one peer (`peers/run.py`)
against a server in a process of its own (`agent_server.py`). The peers of a case take turns;
shown are medians, and the ratio is the median over the turns.
"""

import argparse
import os
import statistics
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

HERE: Final = Path(__file__).parent
ROOT: Final = HERE.parent
PEERS_ENV: Final = ROOT / ".venv" / "bench-peers"
OURS: Final = ("us", "bare")
NEEDED: Final = ("floor", *OURS)
PEERS: Final = ("us", "bare", "openai", "agents", "pydantic")
TURNS: Final = (7, 3)
"""Processes of a case: of ours and the bare loop, and of each other library, which are slow."""
QUICK_TURNS: Final = (3, 1)
TIMEOUT_S: Final = 120
IMPORT_GOAL_MS: Final = 25
DISTRIBUTIONS_GOAL: Final = 11
IMPORTS: Final = {
    "floor": "asyncio, msgspec",
    "us": "towline_agent",
    "bare": "asyncio, aiohttp, msgspec",
    "openai": "openai",
    "agents": "agents",
    "pydantic": "pydantic_ai, pydantic_ai.models.openai",
}


class Row(NamedTuple):
    """A case and how it is shown."""

    case: str
    label: str
    unit: str
    per_s: float
    """From CPU seconds of one repeat to the unit."""
    goal: float | None = None
    """The most that ours may be of the bare loop's."""
    more: int = 1
    """Times the usual turns of ours and the bare loop, where one process tells little."""


ROWS: Final = (
    Row("burst", "answer of 2,000 chunks, burst", "µs a chunk", 1e6 / 2000, 3.0),
    # It sleeps nearly always, and what a machine takes to wake it differs by half from run to run.
    Row("paced", "the same, a chunk a millisecond", "µs a chunk", 1e6 / 2000, 1.3, more=3),
    Row("loop", "10 rounds of 3 parallel tools", "ms a round", 1e3 / 10, 2.0),
    Row("long", "the same after 200 messages", "ms a round", 1e3 / 10, 2.0),
    Row("many", "100 short runs at once", "ms for 100", 1e3, 2.0),
    Row("start", "process, import, one short run", "ms", 1e3),
)


class Failed(Exception):
    """A process that measures broke."""


def environment() -> dict[str, str]:
    """Ours, but modules are compiled once: an import that compiles measures the compiler."""
    return {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}


def python_of(peer: str) -> str:
    return sys.executable if peer in NEEDED else str(PEERS_ENV / "bin" / "python")


def figure(peer: str, arguments: list[str]) -> float:
    """What a fresh process prints."""
    run = subprocess.run(
        [python_of(peer), *arguments],
        env=environment(),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    try:
        return float(run.stdout)
    except ValueError:
        raise Failed(run.stderr.strip()[-400:] or "It printed nothing.") from None


def in_turns(
    peers: list[str], turns: tuple[int, int], arguments: dict[str, list[str]]
) -> dict[str, list[float]]:
    """The figures of each peer, one a turn; another library that breaks is left out."""
    found: dict[str, list[float]] = {peer: [] for peer in peers}
    for turn in range(turns[0]):
        first = turn % len(peers)
        for peer in peers[first:] + peers[:first]:
            if peer in found and (peer in NEEDED or turn < turns[1]):
                try:
                    found[peer].append(figure(peer, arguments[peer]))
                except (Failed, subprocess.TimeoutExpired) as error:
                    if peer in NEEDED:
                        raise SystemExit(f"{peer} broke: {error}") from error
                    del found[peer]
                    print(f"LEFT OUT of this line: {peer}, for it broke: {error}")
    return found


def show_case(row: Row, peers: list[str], turns: tuple[int, int], url: str) -> None:
    script = str(HERE / "peers" / "run.py")
    often = (turns[0] * row.more, turns[1])
    found = in_turns(peers, often, {peer: [script, peer, row.case, url] for peer in peers})
    shown = {
        peer: f"{statistics.median(seconds) * row.per_s:.2f}" for peer, seconds in found.items()
    }
    last = ""
    if {"us", "bare"} <= found.keys():
        pairs = zip(found["us"], found["bare"], strict=True)
        ratio = statistics.median(ours / floor for ours, floor in pairs)
        last = f"{ratio:8.2f}  {verdict(ratio, row.goal)}"
    show(row.label, row.unit, [shown.get(peer, "-") for peer in peers], last)


def show_imports(peers: list[str], turns: tuple[int, int]) -> None:
    """CPU of an import above that of what any such library needs."""
    names = ["floor", *peers]
    code = "import {}; import time; print(time.process_time())"
    commands = {name: ["-c", code.format(IMPORTS[name])] for name in names}
    in_turns(names, (1, 1), commands)  # compiles the modules
    found = in_turns(names, turns, commands)
    floor_s = statistics.median(found["floor"])
    above = {name: (statistics.median(s) - floor_s) * 1000 for name, s in found.items()}
    last = f"{'':8}  {verdict(above['us'], IMPORT_GOAL_MS)}" if "us" in above else ""
    figures = [f"{above[peer]:.1f}" if peer in above else "-" for peer in peers]
    show("import, above asyncio and msgspec", "ms", figures, last)


def show_distributions() -> None:
    """The third-party distributions that `towline-agent` brings along, its extras left out."""
    command = [uv(), "tree", "--quiet", "--frozen", "--no-dev", "--package", "towline-agent"]
    run = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True)
    needed = (line for line in run.stdout.splitlines() if "(extra:" not in line)
    names = {line.strip("│├└─ ").split(" ")[0] for line in needed}
    others = sorted(name for name in names if name and not name.startswith(("towline", "(")))
    goal = verdict(len(others), DISTRIBUTIONS_GOAL)
    print(f"\ntowline-agent brings {len(others)} third-party distributions ({goal}):")
    print(f"  {', '.join(others)}")


def verdict(value: float, goal: float | None) -> str:
    if goal is None:
        return "no goal"
    return f"at most {goal:g}: {'met' if value <= goal else 'MISSED'}"


def show(label: str, unit: str, figures: list[str], last: str) -> None:
    cells = "".join(f"{cell:>10}" for cell in figures)
    print(f"{label:34}{unit:>11}{cells}  {last}", flush=True)


def uv() -> str:
    return str(Path(sys.executable).with_name("uv"))


def make_peers_env() -> str | None:
    """Install the other libraries by their lock; says why that failed, `None` if it did not."""
    command = [uv(), "sync", "--quiet", "--locked", "--project", str(HERE / "peers")]
    more = {"UV_PROJECT_ENVIRONMENT": str(PEERS_ENV), "UV_COMPILE_BYTECODE": "1"}
    python = {"UV_PYTHON": sys.executable, "UV_PYTHON_DOWNLOADS": "never"}
    try:
        run = subprocess.run(
            command,
            env={**environment(), **more, **python},
            stderr=subprocess.PIPE,
            text=True,
            timeout=600,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return str(error)
    return None if run.returncode == 0 else " ".join(run.stderr.split())[:300]


@contextmanager
def serving() -> Generator[str]:
    command = [sys.executable, str(HERE / "agent_server.py")]
    pipe = subprocess.PIPE  # the server ends when its standard input does
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as server:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}/v1"


def choose(only: str | None) -> list[str]:
    """The peers to measure, without those that cannot be installed."""
    peers: list[str] = [*PEERS] if only is None else only.split(",")
    unknown = sorted(set(peers) - set(PEERS))
    if unknown:
        raise SystemExit(f"--only knows no {', '.join(unknown)}; it knows {', '.join(PEERS)}.")
    if set(peers) <= set(OURS):
        return peers
    problem = make_peers_env()
    if problem is None:
        return peers
    print(f"THE OTHER LIBRARIES ARE LEFT OUT, for they could not be installed: {problem}")
    return [peer for peer in peers if peer in OURS]


def main() -> None:
    parser = argparse.ArgumentParser(description="CPU of whole agent loops, side by side.")
    parser.add_argument("--quick", action="store_true", help="fewer processes")
    parser.add_argument("--only", help=f"some of {','.join(PEERS)}")
    parser.add_argument("--cases", help=f"some of {','.join(row.case for row in ROWS)},import")
    options = parser.parse_args()
    turns = QUICK_TURNS if options.quick else TURNS
    cases = options.cases.split(",") if options.cases else [*(row.case for row in ROWS), "import"]
    peers = choose(options.only)
    if not peers:
        raise SystemExit("Nothing is left to measure.")
    paced = turns[0] * max(row.more for row in ROWS)
    print(
        f"CPU time, medians of {turns[0]} fresh processes ({paced} paced; {turns[1]} of other "
        "libraries)"
    )
    show("", "", peers, " us/bare  goal")
    with serving() as url:
        for row in ROWS:
            if row.case in cases:
                show_case(row, peers, turns, url)
    if "import" in cases:
        show_imports(peers, turns)
    show_distributions()


if __name__ == "__main__":
    main()
