"""Money in cents."""


def format_cents(cents):
    """An amount for people, such as `-12.05`."""
    sign = "-" if cents < 0 else ""
    cents = abs(cents)
    return f"{sign}{cents // 100}.{cents % 100:02d}"
