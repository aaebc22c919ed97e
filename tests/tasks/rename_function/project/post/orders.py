"""Orders of several parcels."""

from post import prices


def total(parcels):
    """The price of all parcels, each a pair of kilos and zone."""
    return round(sum(prices.calc(kilos, zone) for kilos, zone in parcels), 2)
