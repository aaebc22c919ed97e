"""Settings: the defaults, then what the place says, then what the region of the place says."""

import configparser
from pathlib import Path

ROOT = Path(__file__).parents[1]


def read(place):
    """The settings of a place, as a mapping of sections."""
    parser = configparser.ConfigParser()
    parser.read(ROOT / "fleet" / "defaults.ini")
    parser.read(ROOT / "deploy" / "places" / f"{place}.ini")
    region = parser.get("place", "region", fallback=None)
    if region:
        parser.read(ROOT / "deploy" / "regions" / f"{region}.ini")
    return {name: dict(parser[name]) for name in parser.sections()}
