"""Prints a poem in narrow lines."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from inkwell import wrap

POEM = "the sea is never still and yet it stays"

print(wrap(POEM, 12, True))
