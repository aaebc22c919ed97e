"""Prints the settings of a place."""

import sys

from fleet.settings import read

for section, values in read(sys.argv[1]).items():
    for name, value in values.items():
        print(f"{section}.{name} = {value}")
