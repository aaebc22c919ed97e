"""The figures of workspaces: each beside a floor of the same run.

Ours and the floor take turns, and shown are medians; a ratio is the median over the turns. Run it
on a machine that does nothing else.
"""

from typing import Final

from figure import Part, report
from workspace.checkpoint import show_checkpoints
from workspace.search import show_searches
from workspace.symbols import show_symbols
from workspace.walk import show_walks

PARTS: Final[dict[str, Part]] = {
    "walk": show_walks,
    "search": show_searches,
    "symbols": show_symbols,
    "checkpoint": show_checkpoints,
}

if __name__ == "__main__":
    report("The figures of workspaces.", PARTS)
