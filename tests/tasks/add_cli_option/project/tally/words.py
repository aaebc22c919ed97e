"""Counting words."""

import re
from collections import Counter


def count_words(text):
    """Pairs of word and count, the most frequent first, equal ones by the alphabet."""
    counts = Counter(re.findall(r"[a-z']+", text.lower()))
    return sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
