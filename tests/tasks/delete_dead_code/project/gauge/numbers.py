"""Numbers."""

import math
import statistics

from gauge.old_format import read_old


def parse(text):
    """The numbers of a text, one on each line."""
    return [float(line) for line in text.splitlines() if line.strip()]


def parse_old(text):
    """The numbers of a text of version 1, which nobody has any more."""
    return read_old(text)


def mean(values):
    """The mean."""
    return statistics.fmean(values)


def geometric_mean(values):
    """The geometric mean."""
    return math.exp(_mean_of_logs(values))


def _mean_of_logs(values):
    return mean([math.log(value) for value in values])
