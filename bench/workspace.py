"""The figures of workspaces: each beside a floor of the same run.

Ours and the floor take turns, and shown are medians; a ratio is the median over the turns. Run it
on a machine that does nothing else.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any, Final

from server.figure import show_head, show_note
from workspace.checkpoint import show_checkpoints
from workspace.search import show_searches
from workspace.symbols import show_symbols
from workspace.walk import show_walks

PARTS: Final[dict[str, Callable[..., Any]]] = {
    "walk": show_walks,
    "search": show_searches,
    "symbols": show_symbols,
    "checkpoint": show_checkpoints,
}
"""Each part shows its figures; it is given `quick`, whether there is little time."""


def main() -> None:
    parser = argparse.ArgumentParser(description="The figures of workspaces.")
    parser.add_argument("--quick", action="store_true", help="fewer turns")
    parser.add_argument("--only", help=f"some of {','.join(PARTS)}")
    options = parser.parse_args()
    names = options.only.split(",") if options.only else [*PARTS]
    unknown = sorted(set(names) - set(PARTS))
    if unknown:
        raise SystemExit(f"--only knows no {', '.join(unknown)}; it knows {', '.join(PARTS)}.")
    load = os.getloadavg()[0]
    show_head()
    for name in names:
        PARTS[name](quick=options.quick)
    show_note(f"{os.cpu_count()} cores; load {load:.1f} before, {os.getloadavg()[0]:.1f} after")


if __name__ == "__main__":
    main()
