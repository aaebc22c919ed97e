"""The figures of the server: each beside a floor of the same run, and with what is to be reached.

Processes are fresh, ours and the floor's take turns, and shown are medians; a ratio is the median
over the turns. Run it on a machine that does nothing else: what is measured by the clock cannot
tell our work from that of others.
"""

from typing import Final

from figure import Part, report
from server.append import show_appends
from server.deliver import show_deliveries, show_lag
from server.memory import show_memory
from server.replay import show_replay
from server.start import show_start

PARTS: Final[dict[str, Part]] = {
    "deliver": show_deliveries,
    "append": show_appends,
    "lag": show_lag,
    "replay": show_replay,
    "memory": show_memory,
    "start": show_start,
}


if __name__ == "__main__":
    report("The figures of the server.", PARTS)
