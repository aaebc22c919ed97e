"""What became of a prompt, read from views."""

import msgspec

from towline_protocol import Fault, PromptId, SessionView, TurnId, block_text

__all__ = ["Outcome", "PromptWatch", "follow_prompt"]


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How the turn of a prompt ended."""

    kind: str
    """`completed`, `failed`, `cancelled`, or `withdrawn` for a prompt that never ran."""
    text: str = ""
    """The last text of the turn."""
    fault: Fault | None = None
    """What went wrong, when it failed."""


class PromptWatch(msgspec.Struct, frozen=True, kw_only=True):
    """What is known of a prompt on its way; see `follow_prompt`."""

    prompt: PromptId
    """The prompt."""
    turn: TurnId | None = None
    """The turn it went into, once known."""
    queued: bool = False
    """Whether it was seen waiting."""


def follow_prompt(watch: PromptWatch, view: SessionView) -> tuple[PromptWatch, Outcome | None]:
    """What a newer view says of a prompt; `None` while its turn has not ended.

    Pure. Give back the watch with each view; a view may be skipped.
    """
    queued = any(waiting.prompt == watch.prompt for waiting in view.queue)
    turn = watch.turn
    for entry in view.messages:
        if entry.id == watch.prompt and entry.role == "user":
            turn = entry.turn
    if turn is None:
        if watch.queued and not queued:
            return watch, Outcome(kind="withdrawn", text="the prompt was taken back")
        return msgspec.structs.replace(watch, queued=queued), None
    return msgspec.structs.replace(watch, turn=turn), _read_end(view, turn)


def _read_end(view: SessionView, turn: TurnId) -> Outcome | None:
    last = view.last_turn
    # Ids sort by time and one turn runs at a time: a later turn means that this one is over.
    if last is None or last.id < turn:
        return None
    said = ""
    for entry in view.messages:
        if entry.turn != turn:
            continue
        if entry.mark is not None and entry.mark.kind == "turn_failed":
            return Outcome(kind="failed", text=entry.mark.text, fault=entry.mark.fault)
        if entry.mark is not None and entry.mark.kind == "turn_cancelled":
            return Outcome(kind="cancelled", text=entry.mark.text)
        if entry.role == "assistant":
            said = block_text(entry.content) or said
    return Outcome(kind="completed", text=said)
