"""The format of version 1: numbers with a semicolon after each."""


def read_old(text):
    """The numbers."""
    return [float(one) for one in text.split(";") if one.strip()]
