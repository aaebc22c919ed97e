"""What a parcel costs."""

ZONES = {1: 1.0, 2: 1.5, 3: 2.25}


def calc(kilos, zone=1):
    """The price of a parcel in euros."""
    return round((3.5 + 0.8 * kilos) * ZONES[zone], 2)


def recalc(prices, percent):
    """All prices, raised by so many percent."""
    return [round(price * (1 + percent / 100), 2) for price in prices]
