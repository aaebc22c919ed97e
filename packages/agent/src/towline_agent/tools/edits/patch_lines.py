"""A patch's lines while it is read, with their numbers."""

from typing import Final, NoReturn

from towline_agent.errors import ToolInputInvalid

__all__ = ["NO_END", "PatchLines"]

NO_END: Final = "\\"
"""How the line begins that says that the one before it has no line end."""

_SHOWN_CHARS: Final = 80


class PatchLines:
    """Hands out lines one by one.

    Args:
        lines: All of them, without their ends.
    """

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._at = 0

    @property
    def number(self) -> int:
        """The number of the next line, from 1."""
        return self._at + 1

    @property
    def next(self) -> str | None:
        """The next line, left where it is; `None` at the end."""
        return self._lines[self._at] if self._at < len(self._lines) else None

    @property
    def is_over(self) -> bool:
        """Whether there is no next line."""
        return self._at >= len(self._lines)

    @property
    def after(self) -> str:
        """The line behind the next one; empty at the end."""
        return self._lines[self._at + 1] if self._at + 1 < len(self._lines) else ""

    def take(self) -> str:
        """The next line; an empty one at the end."""
        line = self.next or ""
        self._at += 1
        return line

    def go_back(self, number: int) -> None:
        """Read on at the line with this number."""
        self._at = number - 1

    def skip_empty(self) -> None:
        """Leave out lines with nothing in them."""
        while self.next is not None and not self.next.strip():
            self._at += 1

    def refuse(self, why: str, number: int | None = None) -> NoReturn:
        """Raise for the next line, or the one with this number.

        Args:
            why: What is wrong, and what to write.
            number: The line's number.
        """
        number = number or self.number
        line = self._lines[number - 1] if number <= len(self._lines) else None
        told = "its end" if line is None else f"{line[:_SHOWN_CHARS]!r}"
        raise ToolInputInvalid(f"Line {number} of the patch ({told}): {why}.")
