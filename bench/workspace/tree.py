"""A folder like a project of some size, to work in."""

import tempfile
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

__all__ = ["FILES", "make_tree"]

FILES: Final = 20_000
"""Files in the tree; a quarter of them is what its `.gitignore` leaves out."""

_FOLDERS: Final = 400
_IGNORE: Final = """\
# made by tools
__pycache__/
*.py[cod]
*$py.class
*.so
build/
/dist/
*.egg-info/
.eggs/
*.egg
.venv/
venv/
ENV/
env.bak/
.tox/
.nox/
.coverage
.coverage.*
.cache
coverage.xml
*.cover
.hypothesis/
.pytest_cache/
.mypy_cache/
.ruff_cache/
htmlcov/
node_modules/
npm-debug.log*
yarn-error.log*
*.tsbuildinfo
.next
/out
*.log
!keep.log
.DS_Store
Thumbs.db
.idea/
.vscode/*
!.vscode/settings.json
*.sw?
*~
docs/_build/
/web/dist/
target
**/generated/*.json
"""


@contextmanager
def make_tree(files: int = FILES) -> Generator[Path]:
    """A folder with so many files, on the disk for as long as it is used."""
    with tempfile.TemporaryDirectory(prefix="towline-bench-") as name:
        root = Path(name)
        (root / ".gitignore").write_text(_IGNORE)
        left_out = files // 4
        made = 1
        for folder in range(_FOLDERS):
            where = root / f"part{folder % 20}" / f"package{folder}" / "source"
            where.mkdir(parents=True)
            more = root / "node_modules" / f"dependency{folder}" / "lib"
            more.mkdir(parents=True)
            for number in range((files - left_out - made) // (_FOLDERS - folder)):
                (where / f"module{number}.py").write_text(_source(folder, number))
                made += 1
            for number in range(left_out // (_FOLDERS - folder)):
                (more / f"index{number}.js").write_text("module.exports = 1;\n")
                left_out -= 1
                made += 1
        yield root


def _source(folder: int, number: int) -> str:
    names = "\n".join(f"    value{line} = {line * number}" for line in range(20))
    return f'"""Part {folder}."""\n\n\ndef work{number}() -> None:\n{names}\n'
