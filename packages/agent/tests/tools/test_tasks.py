"""The tasks that a project names."""

import json

import pytest

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.builtin.tasks import choose_task, find_tasks

MAKEFILE = """
.PHONY: test lint
CC := gcc
FLAGS = -O2
export PATH := bin:$(PATH)

test: build ## Run the tests
\tpytest
lint fmt:
\truff check
%.o: %.c
\t$(CC) -c $<
$(OUT): x
build/app: a.o
docs::
\tsphinx
.env:
\ttouch .env
"""

JUSTFILE = """
set shell := ["bash", "-c"]
version := "1"

# Build it all
build target='debug':
    cargo build

@test *args:
    cargo test {{args}}

_hidden:
    true

[private]
helper:
    true
"""

PYPROJECT = """
[project]
name = "x"
[project.scripts]
x-serve = "x.main:serve"
[tool.poe.tasks]
lint = "ruff check"
all.sequence = ["lint", "test"]
[tool.pdm.scripts]
start = {cmd = "flask run"}
_.env_file = ".env"
[tool.hatch.envs.default.scripts]
cov = "pytest --cov"
[tool.hatch.envs.docs.scripts]
build = "mkdocs build"
"""


def _told(files: dict[str, str], *names: str) -> list[tuple[str, tuple[str, ...]]]:
    return [(task.full_name, task.argv) for task in find_tasks(files, names)]


@pytest.mark.rules("A5.T11")
def test_the_targets_of_make_are_tasks_and_files_are_none() -> None:
    assert _told({"Makefile": MAKEFILE}) == [
        (f"make:{name}", ("make", name)) for name in ("test", "lint", "fmt", "docs")
    ]
    assert find_tasks({"Makefile": MAKEFILE})[0].about == "Run the tests"


@pytest.mark.rules("A5.T11")
def test_the_recipes_of_just_are_tasks() -> None:
    assert _told({"justfile": JUSTFILE}) == [
        ("just:build", ("just", "build")),
        ("just:test", ("just", "test")),
    ]
    assert find_tasks({"justfile": JUSTFILE})[0].about == "Build it all"


@pytest.mark.rules("A5.T11")
@pytest.mark.parametrize(
    ("lock", "runner"),
    [
        ("package-lock.json", "npm"),
        ("pnpm-lock.yaml", "pnpm"),
        ("yarn.lock", "yarn"),
        ("bun.lock", "bun"),
        ("none", "npm"),
    ],
)
def test_the_scripts_of_a_package_are_run_by_whoever_locked_it(lock: str, runner: str) -> None:
    package = json.dumps({"scripts": {"build": "vite build", "-x": "rm", "a\nb": "c", "": "d"}})
    assert _told({"package.json": package}, lock) == [(f"{runner}:build", (runner, "run", "build"))]
    named = json.dumps({"scripts": {"build": "x"}, "packageManager": "pnpm@9.1.0"})
    assert _told({"package.json": named}, "none") == [("pnpm:build", ("pnpm", "run", "build"))]


@pytest.mark.rules("A5.T11")
@pytest.mark.parametrize(
    ("lock", "first"), [("uv.lock", ("uv", "run")), ("poetry.lock", ("poetry", "run"))]
)
def test_python_projects_name_tasks_in_many_ways(lock: str, first: tuple[str, ...]) -> None:
    assert _told({"pyproject.toml": PYPROJECT}, lock) == [
        ("scripts:x-serve", (*first, "x-serve")),
        ("poe:lint", (*first, "poe", "lint")),
        ("poe:all", (*first, "poe", "all")),
        ("pdm:start", ("pdm", "run", "start")),
        ("hatch:cov", ("hatch", "run", "cov")),
        ("hatch:docs:build", ("hatch", "run", "docs:build")),
    ]


@pytest.mark.parametrize(
    "files",
    [
        {"package.json": "{"},
        {"package.json": "[]"},
        {"package.json": '{"scripts": []}'},
        {"package.json": '{"scripts": {"a": {"b": 1}}, "packageManager": 4}'},
        {"pyproject.toml": "[["},
        {"pyproject.toml": "project = 1\ntool = []"},
        {"pyproject.toml": "[tool]\npoe = 1\nhatch.envs.default = 2"},
        {"Makefile": "\0:\n::\n: :\n" + "a" * 10_000},
        {"justfile": ":\n@:\n" + "[" * 1000},
        {"package.json": "[" * 100_000},
    ],
)
def test_a_broken_file_names_nothing_or_what_can_be_read(files: dict[str, str]) -> None:
    assert all(task.argv for task in find_tasks(files))


def test_a_task_is_chosen_by_its_name_or_its_full_name() -> None:
    files = {"Makefile": "test:\nlint:\n", "package.json": '{"scripts": {"test": "jest"}}'}
    tasks = find_tasks(files)
    assert choose_task(tasks, "lint").argv == ("make", "lint")
    assert choose_task(tasks, "npm:test").argv == ("npm", "run", "test")
    with pytest.raises(ToolInputInvalid, match="name one of: make:test, npm:test"):
        choose_task(tasks, "test")
    with pytest.raises(ToolInputInvalid, match=r"no task 'lnt'; there are: lint\."):
        choose_task(tasks, "lnt")
    with pytest.raises(ToolInputInvalid, match="make:test, make:lint, npm:test"):
        choose_task(tasks, "deploy")
    with pytest.raises(ToolInputInvalid, match="names none"):
        choose_task((), "test")


def test_a_generated_file_names_not_more_than_can_be_told() -> None:
    text = "".join(f"target{n}:\n" for n in range(5000))
    assert len(find_tasks({"Makefile": text})) == 200
