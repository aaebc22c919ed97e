"""Numbered slots that are given out and come back."""


class Slots:
    """A fixed number of slots; the lowest free one is given first."""

    def __init__(self, count):
        self._free = list(range(count))

    def take(self):
        """The lowest free slot; `None` when all are taken."""
        if not self._free:
            return None
        return self._free.pop(0)

    def give_back(self, slot):
        """Make a slot free again; giving one back twice does nothing."""
        self._free.append(slot)

    @property
    def free(self):
        """How many are free."""
        return len(self._free)
