"""Vectors of prompts on their way, beside those that the log shows."""

from typing import Any

import msgspec
from script import Script, view_of

from towline_protocol import OutgoingPrompt, PromptWithdrawn, Text, show_outgoing

__all__ = ["OUTGOING"]


def _entry(key: str, state: str = "accepted", message: str | None = None) -> OutgoingPrompt:
    return OutgoingPrompt(
        key=key,
        content=(Text(text=f"Say {key}"),),
        when="auto",
        state=state,
        message=message,
        begun="2026-01-31T09:00:00.000Z",
    )


def _vector(log: Script, *entries: OutgoingPrompt) -> dict[str, Any]:
    view, _ = view_of(log.frames)
    made = show_outgoing(view, entries)
    assert show_outgoing(made, entries) is made
    return {
        "name": log.name,
        "note": log.note,
        "rules": log.rules,
        "frames": log.frames,
        "entries": msgspec.to_builtins(entries),
        "outgoing": msgspec.to_builtins(made.outgoing),
    }


def on_their_way() -> dict[str, Any]:
    """Some are queued, some delivered, some not there yet."""
    log = Script(
        "on_their_way",
        "A prompt that waits in the queue, or that has its message, is not on its way any more.",
        "C4.9",
    )
    log.ask("First")
    log.prompt(2, "Second", "queue")
    return _vector(
        log,
        _entry("key-1"),
        _entry("key-2"),
        _entry("key-3", "sending"),
        _entry("key-4"),
        _entry("key-5", "refused", "The inbox is full."),
        _entry("key-6", "unknown", "No answer came."),
    )


def nothing_is() -> dict[str, Any]:
    """No prompt is on its way."""
    log = Script("nothing_is", "Without entries nothing is on its way.", "C4.9")
    log.ask("First")
    return _vector(log)


def taken_back() -> dict[str, Any]:
    """A prompt left the queue by another way."""
    log = Script(
        "taken_back", "The log alone tells what it holds: a prompt taken back is not in it.", "C4.9"
    )
    log.ask("First")
    log.stored(PromptWithdrawn(prompt=log.prompt(2, "Second", "queue")))
    return _vector(log, _entry("key-2"), _entry("key-3", "sending"))


OUTGOING = (on_their_way, nothing_is, taken_back)
