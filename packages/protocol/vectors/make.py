"""Writes the golden vectors beside itself; with `--check` says which are out of date.

Python and TypeScript read the files: each holds the frames of a stream and the view they must
reduce to. A change of a view here is a change of the reducer: raise `REDUCER_VERSION` with it.
"""

import json
import sys
from pathlib import Path
from typing import Any

from talk import TALK
from tool import TOOL

__all__ = ["main"]

HERE = Path(__file__).parent


def main() -> int:
    """Write the files, or compare them; 1 when one differs."""
    made = {f"{case.__name__}.json": case().vector() for case in (*TALK, *TOOL)}
    check = "--check" in sys.argv[1:]
    stale = sorted({path.name for path in HERE.glob("*.json")} - made.keys())
    for name, vector in made.items():
        path = HERE / name
        text = _text(vector)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(name)
            if not check:
                path.write_text(text, encoding="utf-8", newline="\n")
    for name in stale:
        sys.stdout.write(f"{'out of date' if check else 'written'}: {name}\n")
    return 1 if check and stale else 0


def _text(vector: dict[str, Any]) -> str:
    """JSON with one frame, and one field of the view, a line: a change reads well as a diff."""
    lines: list[str] = []
    for key, value in vector.items():
        if key == "frames":
            lines.append(f'"frames": [\n{_rows([_json(frame) for frame in value])}\n]')
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
