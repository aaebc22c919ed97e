"""The lines of JSON that ruff writes, as far as they are used."""

import msgspec

__all__ = ["RuffEdit", "RuffFix", "RuffRow", "RuffSpot", "read_rows"]


class RuffSpot(msgspec.Struct, frozen=True):
    """A place in a text."""

    row: int = 1
    """The line, from 1."""
    column: int = 1
    """The character in it, from 1."""


class RuffEdit(msgspec.Struct, frozen=True):
    """A piece of text put in the place of another."""

    location: RuffSpot
    """Where the old one begins."""
    end_location: RuffSpot
    """Where it ends."""
    content: str = ""
    """The new one."""


class RuffFix(msgspec.Struct, frozen=True):
    """What would mend a finding."""

    edits: tuple[RuffEdit, ...] = ()
    """All of it."""
    applicability: str = ""
    """`safe`, `unsafe`, or another word for what is only to be shown."""


class RuffRow(msgspec.Struct, frozen=True):
    """A finding."""

    message: str = ""
    """What it says."""
    code: str | None = None
    """The rule's code."""
    filename: str = ""
    """The file, absolute."""
    location: RuffSpot = RuffSpot()
    """Where it begins."""
    end_location: RuffSpot = RuffSpot()
    """Where it ends."""
    fix: RuffFix | None = None
    """What would mend it."""


def read_rows(output: bytes) -> list[RuffRow]:
    """What `--output-format json-lines` wrote; a line that is cut off is left out."""
    rows: list[RuffRow] = []
    for line in output.splitlines():
        try:
            rows.append(msgspec.json.decode(line, type=RuffRow))
        except msgspec.DecodeError:
            continue
    return rows
