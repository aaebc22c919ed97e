"""A report of figures: what was measured, beside what, and what was to be reached."""

import argparse
import os
import statistics
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

__all__ = ["Goal", "Part", "compare", "report", "show", "show_note"]

Part = Callable[..., Any]
"""Shows its figures; it is given `quick`, whether there is little time."""


def report(title: str, parts: Mapping[str, Part]) -> None:
    """Show the figures of the parts that the command line asks for, and the load meanwhile."""
    parser = argparse.ArgumentParser(description=title)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--only", help=f"some of {','.join(parts)}")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [*parts]
    unknown = sorted(set(names) - set(parts))
    if unknown:
        raise SystemExit(f"--only knows no {', '.join(unknown)}; it knows {', '.join(parts)}.")
    load = os.getloadavg()[0]
    _line("", "", ("ours", "floor", "ratio"), "goal")
    for name in names:
        parts[name](quick=options.quick)
    show_note(f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")


class Goal(NamedTuple):
    """What a figure is held to."""

    bound: float
    """The bound itself."""
    least: bool = False
    """Whether the figure must reach it; else it must stay below."""

    def judge(self, value: float) -> str:
        """The goal in words, and whether it was met."""
        met = value >= self.bound if self.least else value <= self.bound
        return f"{'at least' if self.least else 'at most'} {self.bound:g}: " + (
            "met" if met else "MISSED"
        )


def compare(
    turns: int, ours: Callable[[], float], floor: Callable[[], float]
) -> tuple[float, float, float]:
    """Medians of both and of their ratio; they take turns, and each turn begins with the other."""
    pairs: list[tuple[float, float]] = []
    for turn in range(turns):
        if turn % 2:
            first = ours()
            pairs.append((first, floor()))
        else:
            last = floor()
            pairs.append((ours(), last))
    return (
        statistics.median(a for a, _ in pairs),
        statistics.median(b for _, b in pairs),
        statistics.median(a / b for a, b in pairs),
    )


def show(
    label: str,
    unit: str,
    ours: float,
    *,
    floor: float | None = None,
    ratio: float | None = None,
    goal: Goal | None = None,
) -> None:
    """Print a line; the goal is for the ratio if there is one, else for our figure."""
    judged = ours if ratio is None else ratio
    cells = (_number(ours), _number(floor), "" if ratio is None else f"{ratio:.2f}")
    _line(label, unit, cells, "" if goal is None else goal.judge(judged))


def show_note(text: str) -> None:
    """Print a line of words."""
    print(f"  {text}", flush=True)


def _number(value: float | None) -> str:
    if value is None:
        return ""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


def _line(label: str, unit: str, cells: Sequence[str], last: str) -> None:
    print(f"{label:46}{unit:>14}{''.join(f'{cell:>12}' for cell in cells)}  {last}", flush=True)
