"""The figures of the server: each beside a floor of the same run, and with what is to be reached.

Processes are fresh, ours and the floor's take turns, and shown are medians; a ratio is the median
over the turns. Run it on a machine that does nothing else: what is measured by the clock cannot
tell our work from that of others.
"""

import argparse
import os
from collections.abc import Callable
from typing import Any, Final

from server.append import show_appends
from server.deliver import show_deliveries, show_lag
from server.figure import show_head, show_note
from server.memory import show_memory
from server.replay import show_replay
from server.start import show_start

PARTS: Final[dict[str, Callable[..., Any]]] = {
    "deliver": show_deliveries,
    "append": show_appends,
    "lag": show_lag,
    "replay": show_replay,
    "memory": show_memory,
    "start": show_start,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="The figures of the server.")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
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
