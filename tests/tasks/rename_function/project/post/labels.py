"""What is printed on a parcel."""

from post.prices import calc


def label(name, kilos, zone):
    """One line for a parcel."""
    return f"{name}: {kilos} kg, {calc(kilos, zone):.2f} EUR"
