"""What `towline run` prints: the answer where answers go, all else beside it."""

import os
import sys
from typing import Final, Protocol

from rich.console import Console
from rich.markup import escape

from towline.cli.answer import choose_option, invite_answer
from towline.cli.reading import read_in_thread
from towline.cli.visible import show_line, show_prose, show_visible
from towline_agent import AgentResult
from towline_protocol import (
    DENY,
    Event,
    Notice,
    PermissionRequested,
    PermissionResolved,
    StepStarted,
    TextDelta,
    ToolEnded,
    ToolProposed,
    Waiting,
    encode,
)

__all__ = ["JsonLines", "Output", "RunScreen"]

_LINE_BYTES: Final = 4096
_DENIED_HINT: Final = (
    "· What asks is denied where nobody can answer; `--mode accept_edits`, `--mode auto` or a rule "
    "in permissions.toml lets more pass."
)


class Output(Protocol):
    """Where a run is shown. Nothing that it is given makes it raise."""

    denied: int
    """Calls that were denied since nobody was there to allow them."""

    def show(self, event: Event) -> None:
        """Take in an event."""
        ...

    def end(self, result: AgentResult[None] | None) -> None:
        """The run is over; `None` when it failed."""
        ...


class RunScreen:
    """Lines for people.

    On a terminal the text stands as it comes. A file or another program gets the last message
    alone, once the run has ended: what a model says on its way there is progress.

    Args:
        answer: Standard output.
        told: Standard error.
    """

    def __init__(self, answer: Console, told: Console) -> None:
        self.denied = 0
        """Calls that were denied since nobody was there to allow them."""
        self._answer = answer
        self._told = told
        self._titles: dict[str, str] = {}
        self._reasons: dict[str, str] = {}
        self._in_text = False

    def show(self, event: Event) -> None:
        """Print what an event tells, if it tells anything."""
        match event:
            case TextDelta():
                self._text(event.text)
            case ToolProposed():
                self._titles[event.call] = event.title
            case PermissionRequested():
                self._reasons[event.call] = event.reason or ""
            case ToolEnded():
                self._ended(event)
            case PermissionResolved(by="nobody"):
                self.denied += 1
            case Waiting():
                self.line(f"· waiting ({show_line(event.reason)})")
            case Notice():
                self.line(f"· {show_visible(event.message)}")
            case StepStarted() if self._in_text:
                self._end_text()
            case _:
                pass

    def end(self, result: AgentResult[None] | None) -> None:
        """End the line that streamed text stands in; write the answer where it did not stream."""
        self._end_text()
        if self.denied:
            self.line(_DENIED_HINT)
        if result is not None and not self._answer.is_terminal and result.final_message:
            self._answer.file.write(result.final_message.rstrip("\n") + "\n")
            self._answer.file.flush()

    def line(self, text: str) -> None:
        """Say something that is no part of the answer."""
        self._end_text()
        shown = f"[dim]{escape(text)}[/dim]"
        self._told.print(shown, soft_wrap=True, emoji=False)

    async def ask(self, request: PermissionRequested) -> str:
        """Ask the person at the terminal."""
        self._end_text()
        title, reason = show_line(request.title), show_line(request.reason or "")
        head = f"[bold]{escape(title)}[/bold]  ({escape(reason)})"
        self._told.print(head, soft_wrap=True, emoji=False)
        preview = show_visible(request.preview.text)
        self._told.print(preview, soft_wrap=True, markup=False, emoji=False, highlight=False)
        if request.preview.truncated:
            self._told.print("Part of it is not shown, so it is denied.")
            return DENY
        for option in request.options:
            if option.rule is not None:
                rule = show_line(f"{option.label} stores: {option.rule}")
                self._told.print(f"[dim]{escape(rule)}[/dim]", soft_wrap=True, emoji=False)
        while True:
            self._told.print(
                f"Allow? ({show_line(invite_answer(request))}): ", end="", markup=False
            )
            line = await read_in_thread(lambda: _read_line(sys.stdin.fileno()))
            if not line:
                return DENY  # the terminal is gone: nobody is left to answer
            chosen, why_not = choose_option(request, line.decode(errors="replace"))
            if chosen is not None:
                return chosen
            self._told.print(why_not, soft_wrap=True, markup=False, highlight=False)

    def _ended(self, event: ToolEnded) -> None:
        title = self._titles.get(event.call, event.call)
        reason = self._reasons.pop(event.call, "") if event.status == "denied" else ""
        said = f"{event.status}: {reason}" if reason else event.status
        self.line(f"· {show_line(title)} — {show_line(said)}")

    def _text(self, text: str) -> None:
        if not self._answer.is_terminal:
            return
        self._in_text = True
        self._answer.file.write(show_prose(text))
        self._answer.file.flush()

    def _end_text(self) -> None:
        if self._in_text:
            self._answer.print()
        self._in_text = False


def _read_line(fd: int) -> bytes:
    """A line of a terminal, which hands over one at a time; empty at its end."""
    try:
        return os.read(fd, _LINE_BYTES)
    except OSError:  # the terminal is gone
        return b""


class JsonLines:
    """Each event as a line of JSON on standard output, then one line with what it came to.

    Args:
        answer: Standard output.
    """

    def __init__(self, answer: Console) -> None:
        self.denied = 0
        """Calls that were denied since nobody was there to allow them."""
        self._answer = answer

    def show(self, event: Event) -> None:
        """Write an event."""
        self.denied += isinstance(event, PermissionResolved) and event.by == "nobody"
        self._write(encode(event))

    def end(self, result: AgentResult[None] | None) -> None:
        """Write the last line, unless the run failed: then the last event says why."""
        if result is None:
            return
        self._write(
            encode(
                {
                    "type": "result",
                    "answer": result.final_message,
                    "stop_reason": result.stop_reason,
                    "steps": result.steps,
                    "tool_calls": result.tool_call_count,
                    "usage": result.usage,
                    "cost": result.cost,
                }
            )
        )

    def _write(self, line: bytes) -> None:
        self._answer.file.write(line.decode() + "\n")
        self._answer.file.flush()
