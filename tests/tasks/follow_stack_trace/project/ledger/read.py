"""Reading rows of a ledger."""

import csv
import io


def read_rows(text):
    """Each row as a date, a name and an amount in cents."""
    return [(date, name, parse_amount(amount)) for date, name, amount in csv.reader(io.StringIO(text))]


def parse_amount(text):
    """The cents of an amount such as `12.05`."""
    if "," in text:
        return float(text.replace(",", "")) * 100
    whole, _, part = text.partition(".")
    sign = -1 if whole.startswith("-") else 1
    return int(whole) * 100 + sign * int(part or 0)
