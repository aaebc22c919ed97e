"""Prints the price of one parcel: quote.py KILOS ZONE"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from post import calc

print(calc(float(sys.argv[1]), int(sys.argv[2])))
