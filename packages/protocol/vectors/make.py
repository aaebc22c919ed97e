"""Writes the golden vectors beside itself; with `--check` says which are out of date.

Python and TypeScript read the files. Those beside this script hold the frames of a stream and the
view they must reduce to: a change of a view is a change of the reducer, so raise `REDUCER_VERSION`
with it. Those of `presentation` and `outgoing` hold what is made of views for showing.
"""

import json
import sys
from pathlib import Path
from typing import Any

from cap import CAPS
from mark import MARKS
from network import NETWORK
from outgoing import OUTGOING
from presentation import PRESENTATION
from talk import TALK
from tool import TOOL

__all__ = ["main"]

HERE = Path(__file__).parent


def main() -> int:
    """Write the files, or compare them; 1 when one differs."""
    logs = (*TALK, *TOOL, *MARKS, *NETWORK, *CAPS)
    made = {f"{case.__name__}.json": case().vector() for case in logs}
    made |= {f"presentation/{case.__name__}.json": case() for case in PRESENTATION}
    made |= {f"outgoing/{case.__name__}.json": case() for case in OUTGOING}
    check = "--check" in sys.argv[1:]
    there = {
        path.relative_to(HERE).as_posix()
        for folder in (HERE, HERE / "presentation", HERE / "outgoing")
        for path in folder.glob("*.json")
    }
    stale = sorted(there - made.keys())
    for name, vector in made.items():
        path = HERE / name
        text = _text(vector)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.parent.mkdir(exist_ok=True)
                path.write_text(text, encoding="utf-8", newline="\n")
    for name in stale:
        sys.stdout.write(f"{'out of date' if check else 'written'}: {name}\n")
    return 1 if check and stale else 0


def _text(vector: dict[str, Any]) -> str:
    """JSON with one frame, and one field of the view, a line: a change reads well as a diff."""
    lines: list[str] = []
    for key, value in vector.items():
        if key in ("frames", "steps"):
            lines.append(f'"{key}": [\n{_rows([_json(row) for row in value])}\n]')
        elif key == "view":
            fields = [f"{_json(name)}: {_json(part)}" for name, part in value.items()]
            lines.append(f'"view": {{\n{_rows(fields)}\n}}')
        else:
            lines.append(f"{_json(key)}: {_json(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _rows(rows: list[str]) -> str:
    return ",\n".join(f"  {row}" for row in rows)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


if __name__ == "__main__":
    sys.exit(main())
