"""Wraps and indents text."""


def wrap(text, *, width, indent=""):
    """Lines of at most `width` characters, broken at spaces.

    Args:
        text: Words.
        width: Characters of a line; a longer word gets a line of its own.
        indent: Put before all lines but the first.
    """
    lines = []
    for word in text.split():
        lead = indent if len(lines) > 1 else ""
        if lines and len(lead) + len(lines[-1]) + 1 + len(word) <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return "\n".join([*lines[:1], *(indent + line for line in lines[1:])])
