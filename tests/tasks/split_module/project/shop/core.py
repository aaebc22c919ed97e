"""Everything about the shop."""

from dataclasses import dataclass, field

VAT = {"book": 7, "lamp": 19}


@dataclass
class Stock:
    """What is there, by kind."""

    counts: dict = field(default_factory=dict)

    def put(self, kind, count):
        """Add some."""
        self.counts[kind] = self.counts.get(kind, 0) + count

    def take(self, kind, count):
        """Take some away.

        Raises:
            LookupError: There are not so many.
        """
        if self.counts.get(kind, 0) < count:
            raise LookupError(kind)
        self.counts[kind] -= count


def with_vat(cents, kind):
    """The price with the tax of its kind."""
    return cents + round(cents * VAT[kind] / 100)


def discount(cents, count):
    """The price of several; ten and more cost a tenth less."""
    whole = cents * count
    return whole - whole // 10 if count >= 10 else whole


def sell(stock, kind, count, cents):
    """Take some out of the stock and give the price."""
    stock.take(kind, count)
    return with_vat(discount(cents, count), kind)
