"""What to begin with in a project, and paths for `@`: small guesses out of its files' names."""

from collections.abc import Callable, Iterable
from typing import Final

__all__ = ["rank_paths", "suggest_starts"]

_TESTS: Final = frozenset({"tests", "test", "spec", "pytest.ini", "tox.ini", "conftest.py"})
_CODE: Final = frozenset(
    {"pyproject.toml", "package.json", "Cargo.toml", "go.mod", "pom.xml", "Makefile", "setup.py"}
)
_MOST: Final = 4  # what a phone shows above its keyboard


def suggest_starts(names: Iterable[str]) -> tuple[str, ...]:
    """Prompts that make sense in a folder; never none.

    Args:
        names: What stands in the folder itself.
    """
    found = frozenset(names)
    code = bool(found & _CODE)
    wanted = (
        (bool(found), "Tell me what is in this folder and how it hangs together."),
        (bool(found & _TESTS), "Run the tests and tell me what fails, and why."),
        (code and "AGENTS.md" not in found, "/init"),
        (".git" in found, "What has changed since the last commit?"),
        (code, "Find something small that is broken, and mend it."),
        (not found, "Begin a small Python project here, with a test."),
    )
    return tuple(words for holds, words in wanted if holds)[:_MOST]


def rank_paths(
    paths: Iterable[str],
    typed: str,
    limit: int,
    changed_ns: Callable[[str], int] = lambda path: 0,
) -> tuple[str, ...]:
    """The paths that somebody may mean, the best first.

    What begins with the typed letters goes before a name that begins with them, before a path that
    has them somewhere, before one that has them in their order. Among equals what is hidden (a dot
    begins a part of it) goes last. Then come those that were changed last, as long as nothing was
    typed, and shorter ones.

    Args:
        paths: All there are.
        typed: What was typed so far.
        limit: How many at most.
        changed_ns: Tells when a path was changed last, in nanoseconds.
    """
    wanted = typed.casefold()
    ranked: list[tuple[int, bool, int, int, str]] = []
    for path in paths:
        rank = _rank(path.casefold(), wanted)
        if rank is not None:
            hidden = path.startswith(".") or "/." in path
            age = 0 if wanted else -changed_ns(path)
            ranked.append((rank, hidden, age, len(path), path))
    return tuple(path for *_, path in sorted(ranked)[:limit])


def _rank(path: str, wanted: str) -> int | None:
    if path.startswith(wanted):
        return 0
    if path.rstrip("/").rpartition("/")[2].startswith(wanted):
        return 1
    if wanted in path:
        return 2
    letters = iter(path)
    return 3 if all(letter in letters for letter in wanted) else None
