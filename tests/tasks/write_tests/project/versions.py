"""Version numbers such as `1.10.2`, and `2.0-beta`, which comes before `2.0`."""


def parse(text):
    """The numbers of a version and whether it is final.

    Raises:
        ValueError: It is no version.
    """
    text = text.strip()
    if text.startswith("v"):
        text = text[1:]
    numbers, dash, word = text.partition("-")
    if dash and not word:
        raise ValueError(f"{text!r} ends with a dash")
    return tuple(int(one) for one in numbers.split(".")), not dash


def newer(one, other):
    """Whether a version is newer than another; `1.0` and `1.0.0` are the same."""
    return _key(one) > _key(other)


def _key(text):
    numbers, final = parse(text)
    while numbers and numbers[-1] == 0:
        numbers = numbers[:-1]
    return numbers, final
