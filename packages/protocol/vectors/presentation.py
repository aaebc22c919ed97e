"""Vectors of what is shown of views: frames come, options change, and so on in steps."""

from collections.abc import Callable
from typing import Any

import msgspec
from script import Script, decode_frames

from towline_protocol import (
    CallId,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Partial,
    Presentation,
    Reverted,
    Shown,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCall,
    ToolCallDelta,
    TurnCompleted,
    TurnId,
    Usage,
    empty_view,
    present,
    reduce_all,
)

__all__ = ["PRESENTATION"]

FIRST = MessageId("msg_1")
SECOND = MessageId("msg_2")
GRIN = "\N{GRINNING FACE}"
PLAIN = Presentation()
QUIET = Presentation(text="final", thinking="off")


class Screen:
    """One vector: say what comes and what is wanted, in order."""

    def __init__(self, name: str, note: str, presentation: Presentation = PLAIN) -> None:
        self.name = name
        self.note = note
        self.log = Script(name, note)
        self.presentation = presentation
        self.shown = Shown()
        self.view = empty_view()
        self.steps: list[dict[str, Any]] = []
        self.taken = 0

    def show(self, presentation: Presentation | None = None) -> None:
        """End a step: what came since the last one is shown, after a change of options if any."""
        frames = self.log.frames[self.taken :]
        self.taken = len(self.log.frames)
        self.presentation = presentation or self.presentation
        self.view = reduce_all(self.view, decode_frames(frames))
        self.shown, made = present(self.shown, self.view, self.presentation)
        self.steps.append(
            {
                "presentation": msgspec.to_builtins(self.presentation),
                "frames": frames,
                "messages": _contents(made.messages),
                "open_messages": _contents(made.open_messages),
            }
        )

    def vector(self) -> dict[str, Any]:
        return {"name": self.name, "note": self.note, "rules": [], "steps": self.steps}


def _contents(entries: Any) -> list[Any]:
    return [[entry.id, msgspec.to_builtins(entry.content)] for entry in entries]


def _begin(screen: Screen) -> None:
    screen.log.ask("Think")
    screen.log.stored(MessageStarted(message=FIRST, role="assistant"))
    screen.log.live(
        ThinkingDelta(message=FIRST, block=0, at=0, text="Hm"),
        TextDelta(message=FIRST, block=1, at=0, text=f"Well {GRIN}"),
    )


def _end(screen: Screen) -> None:
    content = (
        Thinking(text="Hm, so"),
        Text(text=f"Well {GRIN}!"),
        Thinking(text="More"),
        ToolCall(id=CallId("call_1"), name="look", arguments="{}"),
        Text(text="Done."),
    )
    screen.log.stored(MessageEnded(message=FIRST, content=content))


def plain() -> dict[str, Any]:
    """Nothing is asked for."""
    screen = Screen("plain", "The default shows all as it comes.")
    _begin(screen)
    screen.show()
    _end(screen)
    screen.show()
    return screen.vector()


def final() -> dict[str, Any]:
    """Whole messages only."""
    screen = Screen(
        "final",
        "Words wait for the end of their message, calls do not.",
        Presentation(text="final", thinking="final"),
    )
    _begin(screen)
    screen.log.live(ToolCallDelta(message=FIRST, block=2, at=0, text='{"a'))
    screen.show()
    screen.log.live(TextDelta(message=FIRST, block=1, at=6, text=" now"))
    screen.show()
    _end(screen)
    screen.show()
    return screen.vector()


def thinking_off() -> dict[str, Any]:
    """No thinking, neither while it is written nor later."""
    screen = Screen(
        "thinking_off",
        "Thinking is left out and the other blocks keep their order; what people said stays.",
        Presentation(thinking="off"),
    )
    _begin(screen)
    screen.show()
    screen.log.live(ThinkingDelta(message=FIRST, block=2, at=0, text="More"))
    screen.show()
    _end(screen)
    screen.show()
    screen.log.end(TurnCompleted(stop_reason="max_steps", usage=Usage()))
    screen.show()
    return screen.vector()


def off_in_mid_message() -> dict[str, Any]:
    """Thinking is switched off when some has been seen."""
    screen = Screen(
        "off_in_mid_message",
        "A change counts from the next block on: what was seen goes on as it began, to the end.",
    )
    _begin(screen)
    screen.show()
    screen.log.live(
        ThinkingDelta(message=FIRST, block=0, at=2, text=", so"),
        ThinkingDelta(message=FIRST, block=2, at=0, text="More"),
    )
    screen.show(QUIET)
    screen.log.live(
        ThinkingDelta(message=FIRST, block=2, at=4, text="!"),
        TextDelta(message=FIRST, block=1, at=6, text="!"),
        TextDelta(message=FIRST, block=4, at=0, text="Do"),
    )
    screen.show()
    _end(screen)
    screen.show()
    return screen.vector()


def on_in_mid_message() -> dict[str, Any]:
    """Back to the default in the middle of a message."""
    screen = Screen(
        "on_in_mid_message",
        "Blocks that were seen under an option keep it when the default is back.",
        QUIET,
    )
    _begin(screen)
    screen.show()
    screen.log.live(
        ThinkingDelta(message=FIRST, block=2, at=0, text="Mo"),
        TextDelta(message=FIRST, block=4, at=0, text="Do"),
    )
    screen.show(PLAIN)
    _end(screen)
    screen.show()
    screen.log.stored(
        MessageStarted(message=SECOND, role="assistant"),
    )
    screen.log.live(
        ThinkingDelta(message=SECOND, block=0, at=0, text="In"),
        TextDelta(message=SECOND, block=1, at=0, text="full"),
    )
    screen.show()
    return screen.vector()


def change_between() -> dict[str, Any]:
    """A change before anything else comes."""
    screen = Screen(
        "change_between",
        "A change alone changes nothing that is seen; messages that come finished count as new.",
    )
    _begin(screen)
    screen.show()
    screen.show(QUIET)
    screen.show(Presentation(text="stream", thinking="final"))
    screen.log.stored(
        MessageDiscarded(message=FIRST, reason="the connection broke"),
        MessageEnded(message=SECOND, content=(Thinking(text="Hm"), Text(text="So"))),
    )
    screen.show(QUIET)
    screen.log.end(TurnCompleted(stop_reason="end_turn", usage=Usage()))
    screen.log.stored(Reverted(to_turn=TurnId("trn_1")))
    screen.show(PLAIN)
    return screen.vector()


def partial_under_options() -> dict[str, Any]:
    """A reader comes back."""
    screen = Screen("partial_under_options", "A partial is shown as its pieces would be.", QUIET)
    _begin(screen)
    screen.show()
    screen.log.control(
        Partial(
            message=FIRST,
            content=(Text(text="Other"), Thinking(text="kinds"), Text(text="now")),
        )
    )
    screen.show()
    screen.log.control(Partial(message=FIRST, content=(Text(text="Less"),)))
    screen.show(PLAIN)
    return screen.vector()


PRESENTATION: tuple[Callable[[], dict[str, Any]], ...] = (
    plain,
    final,
    thinking_off,
    off_in_mid_message,
    on_in_mid_message,
    change_between,
    partial_under_options,
)
