"""What installing the library brings along."""

import re
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

OURS = {"towline-agent", "towline-protocol"}


@pytest.mark.rules("A2.83")
def test_the_library_brings_at_most_eleven_distributions_of_others() -> None:
    found: set[str] = set()
    waiting = ["towline-agent"]
    while waiting:
        name = re.sub("[-_.]+", "-", waiting.pop()).lower()
        if name not in found:
            found.add(name)
            needs = [Requirement(text) for text in requires(name) or []]
            waiting += [
                need.name
                for need in needs
                if need.marker is None or need.marker.evaluate({"extra": ""})
            ]
    assert found > OURS
    assert len(found - OURS) <= 11, sorted(found)
