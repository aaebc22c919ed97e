"""The tool `project_overview`."""

from pathlib import Path
from typing import Any

import pytest

from towline_agent.tools.builtin.project_overview import project_overview
from towline_agent.tools.code.manifests import MANIFESTS, read_manifest
from towline_agent.tools.code.overview import OVERVIEW_CHARS

PYPROJECT = """\
[project]
name = "acme"
version = "1.2"
description = "Kits of Acme"
requires-python = ">=3.11"
dependencies = ["rich>=13", "yarl"]
scripts = { acme = "acme.cli:main" }
optional-dependencies = { web = ["aiohttp"] }
[dependency-groups]
dev = ["pytest", { include-group = "docs" }]
[tool.pytest.ini_options]
testpaths = ["tests"]
"""
FILES = {
    "README.md": "# Acme\n\nKits.\n",
    "pyproject.toml": PYPROJECT,
    "Makefile": "VAR := 1\n.PHONY: test\ntest lint: dep\n\techo a: b\nbuild:\n",
    "web/package.json": (
        '{"name": "web", "scripts": {"test": "vitest run"}, "dependencies": {"preact": "1"}}'
    ),
    "src/acme/cli.py": "",
    "web/src/a.ts": "",
    "tests/test_cli.py": "",
    "web/src/a.test.ts": "",
}


@pytest.mark.rules("A5.T5")
async def test_a_page_tells_packages_entry_points_dependencies_tasks_and_tests(
    make_context: Any, ask: Any
) -> None:
    text = await ask(make_context(FILES), project_overview)
    assert (
        text
        == """\
8 files: Python 2, TypeScript 2, Markdown 1, TOML 1, JSON 1
folders: src/ (1), tests/ (1), web/ (3)
files at the top: Makefile, README.md, pyproject.toml

Makefile:
  make targets: test, lint, build

pyproject.toml:
  Python package acme 1.2: Kits of Acme
  requires Python: >=3.11
  entry points: acme = acme.cli:main
  dependencies: rich>=13, yarl
  extras: web
  group dev: pytest
  tools set up: pytest

web/package.json:
  JavaScript package web
  scripts: test: vitest run
  dependencies: preact

tests: 2 files, most in tests/ (1), web/src/ (1)

README.md begins:
# Acme
Kits."""
    )


@pytest.mark.rules("A5.T5")
@pytest.mark.parametrize(
    ("path", "text", "lines"),
    [
        (
            "Cargo.toml",
            '[package]\nname = "acme"\nversion = "0.1.0"\n[[bin]]\nname = "go"\n'
            '[dependencies]\nserde = "1"\n',
            ("Rust package acme 0.1.0", "binaries: go", "dependencies: serde"),
        ),
        (
            "go.mod",
            "module acme.test/kit\n\ngo 1.22\n\nrequire (\n\ta.test/x v1.0.0\n"
            "\tb.test/y v2.0.0 // indirect\n)\nrequire c.test/z v0.1.0\n",
            ("Go module acme.test/kit, go 1.22", "dependencies: a.test/x, c.test/z"),
        ),
        (
            "justfile",
            'set shell := ["sh"]\nversion := "1"\ntest *args:\n  pytest\n@lint: test\n  ruff\n',
            ("just recipes: test, lint",),
        ),
        ("requirements.txt", "# a\nrich>=13  # why\n-r other.txt\n", ("requirements: rich>=13",)),
        (
            "package.json",
            '{"name": "@a/b", "version": "1.0.0", "main": "i.js", "bin": {"b": "b.js"},'
            ' "workspaces": ["p/*"], "devDependencies": {"vite": "1"}}',
            (
                "JavaScript package @a/b 1.0.0",
                "entry points: i.js, b.js",
                "dev dependencies: vite",
                "workspaces: p/*",
            ),
        ),
    ],
)
def test_a_manifest_is_read(path: str, text: str, lines: tuple[str, ...]) -> None:
    assert read_manifest(path, text) == lines


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize(
    "text",
    ["", "{", "[", "\0", "[" * 50_000, "project = 3", '{"scripts": [1], "name": 4}', "a:" * 9],
)
def test_an_odd_manifest_does_no_harm(name: str, text: str) -> None:
    assert all(len(line) < 1000 for line in read_manifest(name, text))


def test_a_broken_manifest_says_so() -> None:
    assert read_manifest("a/pyproject.toml", "[project") == (
        "it can't be read: its syntax is broken",
    )


@pytest.mark.rules("A5.T5")
async def test_a_huge_project_is_one_page(make_context: Any, ask: Any) -> None:
    needs = ", ".join(f'"package-with-a-long-name-{n}"' for n in range(500))
    files = {f"p{n:02}/pyproject.toml": f"[project]\ndependencies = [{needs}]\n" for n in range(40)}
    files |= {f"d{n}/a.py": "" for n in range(200)} | {"README.md": "word " * 5000}
    text = await ask(make_context(files), project_overview)
    assert len(text) <= OVERVIEW_CHARS
    assert "README.md begins:" in text
    assert "tests: none found" in text
    assert "[more manifests are left out" in text


async def test_an_empty_folder_and_a_link_that_leads_outside(
    make_disk: Any, ask: Any, tmp_path: Path
) -> None:
    context = make_disk({})
    assert (await ask(context, project_overview)).startswith("There are no files here.")
    (tmp_path.parent / f"{tmp_path.name}.md").write_text("secret")
    (tmp_path / "README.md").symlink_to(tmp_path.parent / f"{tmp_path.name}.md")
    assert "secret" not in await ask(context, project_overview)
