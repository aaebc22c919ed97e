"""Spans of hours: pairs of a begin and an end, the end not included."""


def merge(spans):
    """Join spans that overlap or touch; the result is sorted."""
    merged = []
    for begin, end in sorted(spans):
        if merged and begin < merged[-1][1]:
            merged[-1] = (merged[-1][0], end)
        else:
            merged.append((begin, end))
    return merged


def free(spans, opens, closes):
    """The spans between opening and closing that nobody has taken."""
    left = []
    at = opens
    for begin, end in merge(spans):
        if begin > at:
            left.append((at, begin))
        at = max(at, end)
    if at < closes:
        left.append((at, closes))
    return left
