"""What stands on the screen of a plain chat: pieces, one after the other."""

from rich.console import Console
from rich.segment import Segment, Segments

from towline.cli.keyboard import Keyboard
from towline.cli.render import Piece, Screen, ask, echo, paint, paint_history, say, start_line
from towline.cli.visible import show_visible
from towline_protocol import SessionView

__all__ = ["Page"]


class Page:
    """Writes pieces as they stand: no wrapping, no markup, nothing left out."""

    def __init__(self, console: Console, keyboard: Keyboard) -> None:
        self.screen = Screen()
        """What has been written."""
        self._console = console
        self._keyboard = keyboard

    def begin(self, view: SessionView) -> None:
        """Show the end of a session that goes on."""
        self.screen, pieces = paint_history(view)
        self._write(pieces)

    def paint(self, view: SessionView, own: frozenset[str]) -> None:
        """Show what is new in a view; prompts with these keys were typed here."""
        self.screen, pieces = paint(self.screen, view, own=own)
        self._write(pieces)

    def say(self, text: str) -> None:
        """Write a line of one's own."""
        self.screen, pieces = say(self.screen, show_visible(text))
        self._write(pieces)

    def ask(self, text: str) -> None:
        """Write the start of a line that a person ends."""
        self.screen, pieces = ask(self.screen, text)
        self._write(pieces)

    def echo(self, text: str) -> None:
        """Show a line that was not typed here."""
        if not self._keyboard.terminal:
            self.screen, pieces = echo(self.screen, text)
            self._write(pieces)

    def start_line(self, *, typed: bool) -> None:
        """Stand at the start of a line, which a person's Enter may have done."""
        self.screen, pieces = start_line(self.screen, typed=typed)
        self._write(pieces)

    def _write(self, pieces: tuple[Piece, ...]) -> None:
        if not pieces:
            return
        self._keyboard.hide()
        encoding = self._console.encoding
        segments = [
            Segment(
                piece.text.encode(encoding, "replace").decode(encoding),
                self._console.get_style(piece.style) if piece.style else None,
            )
            for piece in pieces
        ]
        self._console.print(Segments(segments), end="", soft_wrap=True)
