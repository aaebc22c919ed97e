"""Mail to customers."""

from fleet.settings import read


def attempts(place):
    """How often a mail is tried in all."""
    return 1 + int(read(place)["mail"]["retries"])
