"""The rules of this house that no linter knows."""

import ast
import hashlib
import importlib
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import grimp
import pytest

from towline_server.config import CONFIG_KEYS

ROOT = Path(__file__).parents[1]
FACES = ("towline", "towline_agent", "towline_client", "towline_protocol", "towline_server")

MAX_LINES = 500
"""A file that grows beyond this holds two concerns."""

SOURCE_ROOTS = ("packages", "tests", "bench", "examples", "docs_src", "web/src", "web/test")
SKIPPED = {"node_modules", "recordings", "dist", "vectors", "__pycache__", ".venv", "fixtures"}

TASKS = ROOT / "tests" / "tasks"
"""Its projects are what an agent is to mend: they are as they are."""

RIMS = {
    "towline_server/api/app.py": "a request handler",
    "towline_agent/calls.py": "a tool call",
    "towline_agent/consent.py": "the judge of others, a part of a tool call",
    "towline_agent/turn.py": "a turn",
    "towline_client/bridge/threads.py": "a thread that hands it to the one who waits",
    "towline_agent/workspaces/threads.py": "a thread that hands it to the one who waits",
    "towline_server/push/wake_ups.py": "the supervisor of the task that calls people",
    "towline_server/sessions/runner.py": "the supervisor of a session's task",
}
"""Where any exception may be caught, and the rim that it is."""

PAGES = (
    "AGENTS.md",
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "README.md",
    "SECURITY.md",
    "docs/concepts.md",
    "docs/contract.md",
    "docs/getting-started.md",
    "docs/library.md",
    "docs/models.md",
    "docs/network.md",
    "docs/rules.md",
)


def _files(*suffixes: str, roots: tuple[str, ...] = SOURCE_ROOTS) -> Iterator[Path]:
    for root in roots:
        for path in sorted((ROOT / root).rglob("*")):
            if path.is_relative_to(TASKS) and "project" in path.parts:
                continue
            if path.suffix in suffixes and not SKIPPED & set(path.relative_to(ROOT).parts):
                yield path


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _nodes(path: Path) -> tuple[ast.AST, ...]:
    return tuple(ast.walk(_tree(path)))


MODULES = sorted(
    path for path in ROOT.glob("packages/*/src/**/*.py") if "__pycache__" not in path.parts
)
TESTS = [path for path in _files(".py") if "tests" in path.parts]
TEXTS = sorted(
    {
        *_files(".py", ".ts", ".tsx", ".toml", ".md", ".css", ".html", ".mjs", ".sql"),
        *_files(".toml", ".md", ".txt", roots=("docs", "changelog.d")),
        *_files(".html", ".mjs", ".json", ".ts", ".css", roots=("web/public", "web/scripts")),
        *(path for path in ROOT.iterdir() if path.suffix in {".md", ".toml", ".py"}),
        ROOT / "Makefile",
        ROOT / ".ci" / "run",
    }
)

by_name = pytest.mark.parametrize("path", MODULES, ids=_name)


def _public(tree: ast.Module) -> list[str] | None:
    """A module's `__all__`."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return list(ast.literal_eval(value))
            case _:
                pass
    return None


def _sort_key(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest: the order the linter keeps imports in."""
    return (0 if name.isupper() else 1 if name[0].isupper() else 2, name)


def test_no_file_is_longer_than_the_wall() -> None:
    long = {
        _name(path): count
        for path in _files(".py", ".ts", ".tsx")
        if not path.name.endswith(".gen.ts")
        and (count := len(path.read_text(encoding="utf-8").splitlines())) > MAX_LINES
    }
    assert long == {}


@by_name
def test_a_module_says_what_is_public_in_order(path: Path) -> None:
    tree = _tree(path)
    public = _public(tree)
    defined = [
        node.name
        for node in tree.body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
    ]
    if public is None:
        assert defined == [], "it needs an `__all__`"
        return
    assert public == sorted(set(public), key=_sort_key)


@pytest.mark.parametrize("name", FACES)
def test_a_face_is_one_file_of_names(name: str) -> None:
    (path,) = ROOT.glob(f"packages/*/src/{name}/__init__.py")
    stub = path.with_suffix(".pyi")  # where some names are imported late: what type checkers read
    path = stub if stub.exists() else path
    tree = _tree(path)
    named: list[str] = []
    for node in tree.body[1:]:
        match node:
            case ast.ImportFrom(module=str(module), names=aliases):
                if module.startswith(f"{name}."):
                    named += [alias.asname or alias.name for alias in aliases]
            case (
                ast.Assign(targets=[ast.Name(id="__all__")])
                | ast.AnnAssign(target=ast.Name(id="__all__"))
                | ast.Expr(value=ast.Constant())
            ):
                pass
            case ast.Assign(targets=[ast.Name(id="__version__")]):
                named.append("__version__")
            case _:
                pytest.fail(f"{_name(path)}:{node.lineno} is neither an import nor `__all__`")
    assert sorted(named) == sorted(_public(tree) or [])


@pytest.mark.parametrize("name", ["towline_agent", "towline_protocol", "towline_server"])
def test_a_face_that_imports_late_has_the_names_of_its_stub(name: str) -> None:
    face = importlib.import_module(name)
    assert face.__file__ is not None
    path = Path(face.__file__)
    stub = _tree(path.with_suffix(".pyi"))
    assert face.__all__ == _public(stub)
    assert _homes(_tree(path)) | face._LATE == _homes(stub)
    for home, names in face._LATE.items():
        found = importlib.import_module(home)
        assert {n: getattr(face, n) for n in names} == {n: getattr(found, n) for n in names}
    with pytest.raises(AttributeError, match="no attribute 'nobody'"):
        _ = face.nobody


def _homes(tree: ast.Module) -> dict[str, tuple[str, ...]]:
    """The names of a face by the modules of the package that define them."""
    return {
        node.module: tuple(alias.name for alias in node.names)
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        and node.module is not None
        and node.module.startswith("towline")
    }


@by_name
def test_every_public_name_is_documented(path: Path) -> None:
    tree = _tree(path)
    public = set(_public(tree) or [])
    missing: list[str] = []
    for node, under in zip(tree.body, [*tree.body[1:], None], strict=True):
        match node:
            case ast.ClassDef() if node.name in public:
                missing += _undocumented(node)
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name in public:
                missing += [] if _is_documented(node) else [node.name]
            case (
                ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name))
            ) if name in public and not _is_string(under):
                missing.append(name)
            case _:
                pass
    said = {name.partition(".")[2] for name in _documented(tree)}  # an override needs no new words
    missing = [name for name in missing if name.partition(".")[2] not in said]
    assert missing == [], "a string is missing under them, or a docstring in them"
    assert ast.get_docstring(tree)


def _documented(tree: ast.Module) -> Iterator[str]:
    """The attributes of a module's classes that have words under them."""
    for node in tree.body:
        if isinstance(node, ast.ClassDef):
            for part, under in itertools.pairwise(node.body):
                match part:
                    case ast.AnnAssign(target=ast.Name(id=name)) if _is_string(under):
                        yield f"{node.name}.{name}"
                    case _:
                        pass


def _undocumented(node: ast.ClassDef) -> Iterator[str]:
    """A class and its public attributes and methods, as far as nothing is said of them."""
    if not ast.get_docstring(node):
        yield node.name
    for part, under in zip(node.body, [*node.body[1:], None], strict=True):
        match part:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind) if not name.startswith(
                "_"
            ) and "ClassVar" not in ast.unparse(kind):
                if not _is_string(under):
                    yield f"{node.name}.{name}"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if not part.name.startswith("_"):
                if not _is_documented(part):
                    yield f"{node.name}.{part.name}"
            case _:
                pass


def _is_documented(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    marks = {ast.unparse(mark) for mark in node.decorator_list}
    return ast.get_docstring(node) is not None or bool(marks & {"override", "overload"})


def _is_string(node: ast.stmt | None) -> bool:
    match node:
        case ast.Expr(value=ast.Constant(value=str())):
            return True
        case _:
            return False


def test_no_modules_import_each_other_in_a_circle() -> None:
    graph = grimp.build_graph(*FACES, cache_dir=None)
    state: dict[str, int] = {}
    circle: list[str] = []

    def visit(module: str, path: list[str]) -> None:
        state[module] = 1
        for other in sorted(graph.find_modules_directly_imported_by(module)):
            if state.get(other) == 1 and not circle:
                circle.extend([*path[path.index(other) :], other])
            if other not in state:
                visit(other, [*path, other])
        state[module] = 2

    for module in sorted(graph.modules):
        if module not in state:
            visit(module, [module])
    assert circle == []


def test_the_floors_hold() -> None:
    command = Path(sys.executable).with_name("lint-imports")
    run = subprocess.run(
        [command, "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout


_BANNED = {
    # Each is written in two parts, so that this list does not find itself.
    "unfinished": re.compile(r"\b(TO" r"DO|FIX" r"ME|XX" r"X|HA" r"CK)\b|NotImplemented" r"Error"),
    "a path of one machine": re.compile(r"(?<![\w.~-])/(wo" r"rk|ro" r"ot|ho" r"me/\w+/src)/"),
    "a registry's host": re.compile(
        r"py" r"pi\.org|python" r"hosted\.org|npm" r"js\.org|deb\.deb" r"ian\.org"
    ),
}


@pytest.mark.parametrize("what", _BANNED)
def test_no_text_holds_what_is_banned(what: str) -> None:
    found = [
        f"{_name(path)}:{number}: {line.strip()}"
        for path in TEXTS
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if _BANNED[what].search(line)
    ]
    assert found == []


@by_name
def test_names_say_what_a_thing_is(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "helper", "common", "misc"}
    classes = [node.name for node in _nodes(path) if isinstance(node, ast.ClassDef)]
    assert [n for n in classes if re.search(r"^_?Base[A-Z]|(Impl|Manager|Helper)$", n)] == []


def test_any_exception_is_caught_at_the_rims_alone() -> None:
    caught = {
        path.as_posix().split("/src/", 1)[1]: f"line {node.lineno}"
        for path in MODULES
        for node in _nodes(path)
        if isinstance(node, ast.ExceptHandler) and _catches_all(node)
    }
    assert {path: line for path, line in caught.items() if path not in RIMS} == {}
    assert RIMS.keys() <= caught.keys(), "a rim that catches nothing needs no leave"


def _catches_all(node: ast.ExceptHandler) -> bool:
    """Whether it catches everything and keeps it."""
    kinds = ast.unparse(node.type) if node.type is not None else "Exception"
    broad = re.search(r"\b(Base)?Exception\b", kinds)
    return broad is not None and not isinstance(node.body[-1], ast.Raise)


def _calls(path: Path, *ends: str) -> Iterator[tuple[ast.Call, str]]:
    """The calls of what ends so, each with its dotted name; to write out every name takes long."""
    for node in _nodes(path):
        match node:
            case ast.Call(func=ast.Name(id=last) | ast.Attribute(attr=last)) if last.endswith(ends):
                yield node, ast.unparse(node.func)
            case _:
                pass


@pytest.mark.parametrize("path", TESTS, ids=_name)
def test_a_skip_gives_one_loud_reason(path: Path) -> None:
    for node, name in _calls(path, "skip", "skipif", "xfail", "SkipTest"):
        if name.endswith(("mark.skip", "mark.skipif", "mark.xfail", "pytest.skip", "SkipTest")):
            words = [*node.args, *(word.value for word in node.keywords if word.arg == "reason")]
            text = _said(words[-1], _tree(path)) if words else ""
            loud = re.search(r"\b[A-Z]{2,}\b", text)
            assert loud, f"{_name(path)}:{node.lineno}: begin with a word in capitals"
        assert not name.endswith("importorskip"), f"{_name(path)}:{node.lineno}"


def _said(node: ast.expr, tree: ast.Module) -> str:
    """What an expression says; a name says what it was given."""
    if isinstance(node, ast.Name):
        for part in ast.walk(tree):
            match part:
                case ast.Assign(targets=[ast.Name(id=name)], value=value) if name == node.id:
                    return ast.unparse(value)
                case _:
                    pass
    return ast.unparse(node)


@pytest.mark.parametrize("path", TESTS, ids=_name)
def test_no_test_sleeps(path: Path) -> None:
    sleeps = [
        f"{_name(path)}:{node.lineno}"
        for node, name in _calls(path, "sleep")
        if name in {"time.sleep", "asyncio.sleep", "sleep"} and ast.unparse(node.args[0]) != "0"
    ]
    assert sleeps == []


def test_the_lists_of_public_signatures_are_fresh() -> None:
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "api.py"), "--check"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, f"{run.stdout}run `make api`"


@pytest.mark.parametrize("page", PAGES)
def test_every_page_is_there_and_says_something(page: str) -> None:
    assert len((ROOT / page).read_text(encoding="utf-8")) > 200


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{page}: {target}"
        for page in PAGES
        for target in re.findall(r"\]\((?!https?:|#)([^)#]+)", (ROOT / page).read_text("utf-8"))
        if not ((ROOT / page).parent / target).exists()
    ]
    assert broken == []


@pytest.mark.parametrize(
    "target", ["up", "test", "check", "lint", "web", "types", "api", "docs", "bench"]
)
def test_make_knows_its_targets(target: str) -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    assert re.search(rf"^{target}:", makefile, re.MULTILINE)


def test_the_gates_can_be_run() -> None:
    gates = ROOT / ".ci" / "run"
    assert gates.stat().st_mode & 0o111
    text = gates.read_text(encoding="utf-8")
    assert "make test" in text
    assert "TOWLINE_REQUIRE=chromium,node,model" in text


def test_all_distributions_have_one_version() -> None:
    versions = {
        re.search(r'^version = "(.+)"', path.read_text(encoding="utf-8"), re.MULTILINE)
        for path in [ROOT / "pyproject.toml", *ROOT.glob("packages/*/pyproject.toml")]
    }
    assert len({found.group(1) for found in versions if found is not None}) == 1
    assert None not in versions


def test_the_built_page_is_made_of_the_sources_that_are_here() -> None:
    web = ROOT / "web"
    files = ["index.html", "package-lock.json", "package.json", "tsconfig.json", "vite.config.ts"]
    for folder in ("public", "src"):
        for path in (web / folder).rglob("*"):
            name = path.relative_to(web).as_posix()
            if path.is_file() and "/." not in name:
                files.append(name)
    state = hashlib.sha256()
    for name in sorted(files, key=str.encode):
        state.update(name.encode() + b"\0" + (web / name).read_bytes() + b"\0")
    (dist,) = ROOT.glob("packages/server/src/towline_server/web/dist/build.json")
    assert json.loads(dist.read_text("utf-8"))["sources"] == state.hexdigest(), "run `make web`"


def test_every_setting_has_an_effect() -> None:
    sources = "".join(
        path.read_text(encoding="utf-8") for path in MODULES if path.name != "config.py"
    )
    unused = [key for key in CONFIG_KEYS if not re.search(rf"config\.{key}\b", sources)]
    assert unused == [], "a setting that nothing reads must not be there"


@pytest.mark.rules("A4.27")
def test_what_can_lose_a_cancel_or_block_a_pool_is_banned(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text("import asyncio\n\nasyncio.wait_for\nasyncio.to_thread\n", encoding="utf-8")
    ruff = Path(sys.executable).with_name("ruff")
    found = subprocess.run(
        [ruff, "check", "--config", ROOT / "pyproject.toml", "--select", "TID251", program],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 1
    assert "asyncio.wait_for" in found.stdout
    assert "asyncio.to_thread" in found.stdout


SCOPES = {"TaskGroup", "timeout", "timeout_at", "CancelScope", "move_on_after", "fail_after"}


@pytest.mark.rules("A1.26")
@by_name
def test_no_generator_yields_inside_a_task_group_or_a_timeout(path: Path) -> None:
    wrong: list[int] = []
    for node in _nodes(path):
        if not isinstance(node, ast.AsyncFunctionDef):
            continue
        if any("contextmanager" in ast.unparse(mark) for mark in node.decorator_list):
            continue
        for scope in ast.walk(node):
            if not isinstance(scope, ast.AsyncWith | ast.With):
                continue
            opened = " ".join(ast.unparse(item.context_expr) for item in scope.items)
            if SCOPES & set(re.findall(r"\w+", opened)):
                wrong += [n.lineno for n in ast.walk(scope) if isinstance(n, ast.Yield)]
    assert wrong == []
