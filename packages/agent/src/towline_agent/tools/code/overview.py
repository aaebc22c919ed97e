"""A project in a page: put together from the names of its files and what its manifests say."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePosixPath
from typing import Final

from towline_agent.tools.code.manifests import MANIFESTS, read_manifest

__all__ = ["OVERVIEW_CHARS", "find_manifests", "find_readme", "show_overview"]

OVERVIEW_CHARS: Final = 4000
"""Characters of an overview: a page, not the project."""

_MANIFESTS_READ: Final = 12
_MANIFEST_DEPTH: Final = 2
_MANIFEST_CHARS: Final = 1200
_README_LINES: Final = 8
_README_CHARS: Final = 500
_FOLDERS_SHOWN: Final = 30
_TEST_FOLDERS: Final = frozenset({"test", "tests", "__tests__", "spec", "specs", "e2e"})
_TEST_FILE: Final = re.compile(
    r"test_.*\.py|.*_test\.(py|go)|.*\.(test|spec)\.[cm]?[jt]sx?|.*Tests?\.java|conftest\.py"
)
_LANGUAGES: Final = {
    ".py": "Python", ".pyi": "Python", ".js": "JavaScript", ".jsx": "JavaScript",
    ".mjs": "JavaScript", ".cjs": "JavaScript", ".ts": "TypeScript", ".tsx": "TypeScript",
    ".mts": "TypeScript", ".go": "Go", ".rs": "Rust", ".java": "Java", ".kt": "Kotlin",
    ".c": "C", ".h": "C", ".cc": "C++", ".cpp": "C++", ".hpp": "C++", ".cs": "C#", ".rb": "Ruby",
    ".php": "PHP", ".swift": "Swift", ".sh": "Shell", ".bash": "Shell", ".sql": "SQL",
    ".html": "HTML", ".css": "CSS", ".scss": "CSS", ".vue": "Vue", ".svelte": "Svelte",
    ".md": "Markdown", ".rst": "reStructuredText", ".json": "JSON", ".yaml": "YAML",
    ".yml": "YAML", ".toml": "TOML", ".lua": "Lua", ".ex": "Elixir", ".exs": "Elixir",
    ".hs": "Haskell", ".scala": "Scala", ".dart": "Dart", ".r": "R", ".jl": "Julia",
}  # fmt: skip


def find_manifests(paths: Iterable[str]) -> list[str]:
    """The manifests worth reading, those of the root first."""
    found = [
        path
        for path in paths
        if PurePosixPath(path).name in MANIFESTS and path.count("/") <= _MANIFEST_DEPTH
    ]
    return sorted(found, key=lambda path: (path.count("/"), path))[:_MANIFESTS_READ]


def find_readme(paths: Iterable[str]) -> str | None:
    """The README of the root, if there is one."""
    found = (path for path in paths if re.fullmatch(r"readme(\.\w+)?", path, re.IGNORECASE))
    return min(found, default=None)


def show_overview(paths: Sequence[str], texts: Mapping[str, str], *, truncated: bool) -> str:
    """The page, `OVERVIEW_CHARS` at most.

    Args:
        paths: All files, relative to the folder.
        texts: The texts of those that `find_manifests` and `find_readme` named.
        truncated: Whether there are more files than these.
    """
    readme = find_readme(paths)
    blocks = [
        _show_files(paths, truncated),
        *(_show_manifest(path, texts[path]) for path in texts if path != readme),
        _show_tests(paths),
        _show_readme(readme, texts.get(readme, "")) if readme else "",
    ]
    last = blocks[-2:]
    room = OVERVIEW_CHARS - sum(len(block) + 2 for block in last)
    shown: list[str] = []
    for block in blocks[:-2]:
        room -= len(block) + 2
        if room < 0:
            shown.append("[more manifests are left out; read them by themselves]")
            break
        shown.append(block)
    page = "\n\n".join(block for block in (*shown, *last) if block)
    return page[:OVERVIEW_CHARS]


def _show_files(paths: Sequence[str], truncated: bool) -> str:
    if not paths:
        return "There are no files here."
    counts = Counter(
        language
        for path in paths
        if (language := _LANGUAGES.get(PurePosixPath(path).suffix.lower())) is not None
    )
    languages = ", ".join(f"{language} {count}" for language, count in counts.most_common(10))
    folders = Counter(path.partition("/")[0] for path in paths if "/" in path)
    names = sorted(folders)[:_FOLDERS_SHOWN]
    more = ", ..." if len(folders) > len(names) else ""
    at_root = sorted(path for path in paths if "/" not in path)[:_FOLDERS_SHOWN]
    shown = ", ".join(f"{name}/ ({folders[name]})" for name in names)
    least = "More than " if truncated else ""
    lines = [
        f"{least}{len(paths)} files: {languages or 'no known language'}",
        f"folders: {shown}{more}" if names else "",
        f"files at the top: {', '.join(at_root)}" if at_root else "",
    ]
    return "\n".join(line[:_MANIFEST_CHARS] for line in lines if line)


def _show_manifest(path: str, text: str) -> str:
    lines = read_manifest(path, text)
    return "\n".join((f"{path}:", *(f"  {line}" for line in lines)))[:_MANIFEST_CHARS]


def _show_tests(paths: Sequence[str]) -> str:
    tests = [
        path
        for path in paths
        if _TEST_FILE.fullmatch(PurePosixPath(path).name)
        or (
            not _TEST_FOLDERS.isdisjoint(PurePosixPath(path).parts[:-1])
            and PurePosixPath(path).suffix in (".rs", ".java", ".ts", ".js")
        )
    ]
    if not tests:
        return "tests: none found"
    folders = Counter(str(PurePosixPath(path).parent) for path in tests).most_common(6)
    told = ", ".join(f"{folder}/ ({count})" for folder, count in folders)
    return f"tests: {len(tests)} files, most in {told}"[:_MANIFEST_CHARS]


def _show_readme(path: str, text: str) -> str:
    lines = [line.rstrip() for line in text.splitlines() if line.strip()][:_README_LINES]
    return "\n".join((f"{path} begins:", *lines))[:_README_CHARS]
