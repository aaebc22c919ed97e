"""Plans tours."""

from fleet.settings import read


def attempts(place):
    """How often a plan is tried in all."""
    return 1 + int(read(place)["planner"]["retries"])
