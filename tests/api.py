"""Writes each distribution's public signatures to `packages/X/api.txt`.

A change of the API is then a diff that somebody commits. With `--check` it names the files that are
out of date. It reads the sources and imports nothing, so a broken module cannot hide.
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

__all__ = ["FACES", "main", "read_all", "signatures"]

ROOT = Path(__file__).parents[1]

FACES = {
    "agent": "towline_agent",
    "app": "towline",
    "client": "towline_client",
    "protocol": "towline_protocol",
    "server": "towline_server",
}
"""Distribution's folder to import name."""


def main() -> int:
    """Write the files, or compare them; 1 when one differs."""
    check = "--check" in sys.argv[1:]
    stale = [name for name in FACES if not _is_fresh(name, write=not check)]
    for name in stale:
        sys.stdout.write(f"{'out of date' if check else 'written'}: packages/{name}/api.txt\n")
    return 1 if check and stale else 0


def _is_fresh(name: str, *, write: bool) -> bool:
    path = ROOT / "packages" / name / "api.txt"
    text = signatures(name)
    if path.exists() and path.read_text(encoding="utf-8") == text:
        return True
    if write:
        path.write_text(text, encoding="utf-8")
    return False


def signatures(name: str) -> str:
    """The public signatures of one distribution: those of its face and of its `testing` module."""
    face = FACES[name]
    root = ROOT / "packages" / name / "src"
    lines: list[str] = []
    for module in (face, f"{face}.testing"):
        path = _path(root, module)
        if path is None:
            continue
        names = read_all(ast.parse(path.read_text(encoding="utf-8")))
        lines += [f"# {module}", ""]
        for public in names:
            lines += [*_find(root, module, public), ""]
    return "\n".join(lines).rstrip("\n") + "\n"


def read_all(tree: ast.Module) -> list[str]:
    """The names in a module's `__all__`; none when it has none."""
    for node in tree.body:
        match node:
            case (
                ast.Assign(targets=[ast.Name(id="__all__")], value=value)
                | ast.AnnAssign(target=ast.Name(id="__all__"), value=ast.expr() as value)
            ):
                return list(ast.literal_eval(value))
            case _:
                pass
    return []


def _path(root: Path, module: str) -> Path | None:
    base = root.joinpath(*module.split("."))
    for path in (base.with_suffix(".py"), base / "__init__.pyi", base / "__init__.py"):
        if path.exists():
            return path
    return None


def _find(root: Path, module: str, name: str) -> list[str]:
    """What defines a name, through as many faces as it takes."""
    path = _path(root, module)
    if path is None:
        return [f"{name} = <from {module}>"]
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        match node:
            case ast.ImportFrom(module=str(source), names=aliases):
                for alias in aliases:
                    if (alias.asname or alias.name) == name:
                        return _find(root, source, alias.name)
            case ast.ClassDef() if node.name == name:
                return list(_class(node))
            case ast.FunctionDef() | ast.AsyncFunctionDef() if node.name == name:
                return [_function(node)]
            case ast.Assign(targets=[ast.Name(id=target)]) if target == name:
                return [f"{name} = {_value(node.value)}"]
            case ast.AnnAssign(target=ast.Name(id=target)) if target == name:
                return [_attribute(node)]
            case _:
                pass
    return [f"{name} = <not found in {module}>"]


def _class(node: ast.ClassDef) -> Iterator[str]:
    heads = [*map(ast.unparse, node.bases)]
    heads += [ast.unparse(word) for word in node.keywords]
    yield f"class {node.name}({', '.join(heads)})" if heads else f"class {node.name}"
    for part in node.body:
        match part:
            case ast.AnnAssign(target=ast.Name(id=name)) if not name.startswith("_"):
                yield f"    {_attribute(part)}"
            case ast.Assign(targets=[ast.Name(id=name)]) if not name.startswith("_"):
                yield f"    {name} = {_value(part.value)}"
            case ast.FunctionDef() | ast.AsyncFunctionDef() if _is_public(part.name):
                for mark in part.decorator_list:
                    yield f"    @{ast.unparse(mark)}"
                yield f"    {_function(part)}"
            case _:
                pass


def _is_public(name: str) -> bool:
    return not name.startswith("_") or (name.startswith("__") and name.endswith("__"))


def _function(node: ast.FunctionDef | ast.AsyncFunctionDef) -> str:
    start = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    answer = f" -> {ast.unparse(node.returns)}" if node.returns is not None else ""
    return f"{start} {node.name}({ast.unparse(node.args)}){answer}"


def _attribute(node: ast.AnnAssign) -> str:
    value = "" if node.value is None else f" = {_value(node.value)}"
    return f"{ast.unparse(node.target)}: {ast.unparse(node.annotation)}{value}"


def _value(node: ast.expr) -> str:
    """A value, a long one in short: what stands in a table is its own business, a union is not."""
    text = ast.unparse(node)
    return text if len(text) <= 80 or isinstance(node, ast.BinOp) else "..."


if __name__ == "__main__":
    sys.exit(main())
