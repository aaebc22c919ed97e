"""The SQL of the store, by name: in `sql/*.sql`, a `-- name:` line stands above each statement."""

import re
from importlib.resources import files
from typing import Final

__all__ = ["load_migrations", "load_statements", "split_script"]

_FOLDER: Final = files("towline_server.store") / "sql"
_NAME: Final = re.compile(r"^-- name: (\w+)$", re.MULTILINE)
_MIGRATION: Final = re.compile(r"(\d{4})_(\w+)\.sql")


def load_statements(file: str) -> dict[str, str]:
    """The statements of `sql/<file>.sql`, by their names."""
    parts = _NAME.split((_FOLDER / f"{file}.sql").read_text(encoding="utf-8"))
    return {name: body.strip() for name, body in zip(parts[1::2], parts[2::2], strict=True)}


def load_migrations() -> list[tuple[int, str, str]]:
    """Number, name and SQL of each migration, oldest first."""
    found: list[tuple[int, str, str]] = []
    for entry in (_FOLDER / "migrations").iterdir():
        match = _MIGRATION.fullmatch(entry.name)
        if match is not None:
            found.append((int(match[1]), match[2], entry.read_text(encoding="utf-8")))
    return sorted(found)


def split_script(script: str) -> list[str]:
    """The statements of a script; each must end with `;` at the end of a line.

    `executescript` would commit a transaction that is open, so a migration is run one by one.
    """
    return [part.strip() for part in re.split(r";\s*$", script, flags=re.MULTILINE) if part.strip()]
