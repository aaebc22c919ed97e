"""How a golden vector is told: a log in readable Python, written down as the frames of a stream."""

import json
from typing import Any

import msgspec

from towline_protocol import (
    CONTROL_FRAMES,
    Broken,
    ClientCallOffered,
    Control,
    Delta,
    Envelope,
    Frame,
    Limits,
    Parent,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    SessionCreated,
    SessionId,
    SessionView,
    StoredEvent,
    Text,
    TurnId,
    TurnStarted,
    decode_frame,
    empty_view,
    encode,
    format_time,
    reduce,
    reduce_all,
)

__all__ = ["MODEL", "SESSION", "Script", "decode_frames", "view_of"]

SESSION = SessionId("ses_one")
MODEL = "scripted/one"
START_MS = 1_769_850_000_000
STEP_MS = 250


class Script:
    """One vector: say what happens, in order; `vector` gives the file's content."""

    def __init__(self, name: str, note: str, *rules: str) -> None:
        self.name = name
        self.note = note
        self.rules = list(rules)
        self.frames: list[dict[str, Any]] = []
        self.turn: TurnId | None = None
        self.seq = 0
        self.now_ms = START_MS

    def stored(self, *events: StoredEvent) -> None:
        """Events with the next numbers."""
        for event in events:
            self.seq += 1
            self._envelope(event, self.seq)

    def live(self, *events: Delta | ClientCallOffered) -> None:
        """Deltas, and offers that a reader is told again: no number."""
        for event in events:
            self._envelope(event, None)

    def control(self, *frames: Control) -> None:
        """Control frames."""
        names = {kind: name for name, kind in CONTROL_FRAMES.items()}
        for frame in frames:
            self.raw(msgspec.to_builtins(frame), event=names[type(frame)])

    def raw(self, data: Any, *, event: str = "") -> None:
        """A frame exactly as it stands, for what the types cannot say."""
        self.frames.append({"event": event, "data": data})

    def raw_event(self, event: dict[str, Any], *, stored: bool = True, **extra: Any) -> None:
        """An envelope round an event that the types cannot say."""
        self.now_ms += STEP_MS
        envelope = {"session": SESSION, "time": format_time(self.now_ms), "event": event, **extra}
        if self.turn is not None:
            envelope["turn"] = self.turn
        if stored:
            self.seq += 1
            envelope["seq"] = self.seq
        self.raw(envelope)

    def again(self, start: int = 0, stop: int | None = None) -> None:
        """The frames from `start` to `stop` once more."""
        self.frames.extend(self.frames[start:stop])

    def begin(
        self,
        title: str | None = None,
        labels: tuple[str, ...] = (),
        parent: Parent | None = None,
    ) -> None:
        """The first event of a session."""
        self.stored(
            SessionCreated(
                agent="helper",
                model=MODEL,
                mode="ask",
                title=title,
                cwd="/home/ada",
                labels=labels,
                parent=parent,
            )
        )

    def prompt(self, number: int, text: str, when: str = "auto", position: int = 0) -> PromptId:
        """A prompt that waits."""
        prompt = PromptId(f"pmt_{number}")
        self.stored(
            PromptAdmitted(
                prompt=prompt,
                content=(Text(text=text),),
                when=when,
                key=f"key-{number}",
                position=position,
            )
        )
        return prompt

    def start(self, prompt: PromptId, number: int) -> None:
        """The prompt's turn begins."""
        self.turn = TurnId(f"trn_{number}")
        self.stored(
            PromptDelivered(prompt=prompt, turn=self.turn, how="started"),
            TurnStarted(prompt=prompt, model=MODEL, limits=Limits()),
        )

    def ask(self, text: str, number: int = 1) -> None:
        """A prompt that starts its turn at once; the first one begins the session too."""
        if self.seq == 0:
            self.begin()
        self.start(self.prompt(number, text), number)

    def end(self, event: StoredEvent) -> None:
        """The turn's last event."""
        self.stored(event)
        self.turn = None

    def vector(self) -> dict[str, Any]:
        """The vector with the view its frames reduce to."""
        view, broken = view_of(self.frames)
        return {
            "name": self.name,
            "note": self.note,
            "rules": self.rules,
            "frames": self.frames,
            "broken": broken,
            "view": msgspec.to_builtins(view),
        }

    def _envelope(self, event: StoredEvent | Delta, seq: int | None) -> None:
        self.now_ms += STEP_MS
        envelope = Envelope(
            seq=seq,
            session=SESSION,
            turn=self.turn,
            time=format_time(self.now_ms),
            event=event,
        )
        self.raw(json.loads(encode(envelope)))


def view_of(frames: list[dict[str, Any]]) -> tuple[SessionView, int]:
    """What the frames reduce to, and how many of them were broken."""
    found = decode_frames(frames)
    view = empty_view()
    for frame in found:
        view = reduce(view, frame)
    assert reduce_all(empty_view(), found) == view
    return view, len(frames) - len(found)


def decode_frames(frames: list[dict[str, Any]]) -> list[Frame]:
    """The frames that can be read."""
    found = [decode_frame(frame["event"], json.dumps(frame["data"])) for frame in frames]
    return [frame for frame in found if not isinstance(frame, Broken)]
