"""What happens in a session whose server may die, go back to a backup, and come again."""

import random
from collections.abc import Callable
from typing import Final

from towline_client.testing import ScriptedSession
from towline_protocol import CallId as CallName
from towline_protocol import (
    CallView,
    ClientCallClaimed,
    ClientCallOffered,
    Compacted,
    Event,
    Fault,
    FileChange,
    FilesChanged,
    Gap,
    Limits,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    OpenMessage,
    Option,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    PromptAdmitted,
    PromptDelivered,
    PromptId,
    PromptWithdrawn,
    QuestionAsked,
    QuestionId,
    QuestionItem,
    QuestionResolved,
    Reverted,
    SessionUpdated,
    StepEnded,
    StepStarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    Todo,
    TodosUpdated,
    ToolCall,
    ToolCallDelta,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnResumed,
    TurnStarted,
    Unknown,
    Usage,
    Waiting,
    empty_view,
    encode,
    encode_event,
    reduce,
)

__all__ = ["Story"]

PIECES: Final = (
    "a",
    "bc ",
    "\N{GRINNING FACE}",
    "e\N{COMBINING ACUTE ACCENT}",
    "\n\n",
    "words " * 9,
)
"""What is written at once; blank lines and what is two units in other encodings among it."""
_LATER: Final = "2026-01-31T20:00:00.000Z"


class Story:
    """Goes on with a session, one event at a time; what is drawn decides which."""

    def __init__(self, session: ScriptedSession, chance: random.Random) -> None:
        self._session = session
        self._chance = chance
        self._minted = 0
        self._lives = 0

    def go_on(self) -> None:
        """One more event that may come next."""
        view = self._session.view
        acts = self._in_turn() if view.turn is not None else self._outside()
        self._chance.choice(acts)()

    def end_turn(self) -> None:
        """End the turn, with all that is open in it."""
        view = self._session.view
        if view.turn is None:
            return
        for message in view.open_messages:
            self._emit(MessageEnded(message=message.id, content=message.content or (_SAID,)))
        for request in view.permissions:
            self._emit(PermissionResolved(permission=request.permission, option="deny", by="end"))
        for asked in view.questions:
            self._emit(QuestionResolved(question=asked.question, answers={}, by="end"))
        for call in view.open_calls:
            self._emit(ToolEnded(call=call.call, status="cancelled", content=(_SAID,)))
        fault = Fault(code="provider_overloaded", message="The model is busy.")
        ends: list[Event] = [
            TurnCompleted(stop_reason="end_turn", usage=_USED, cost=0.25),
            TurnFailed(fault=fault, usage=_USED),
            TurnCancelled(by="me", reason="", usage=_USED),
        ]
        self._emit(self._chance.choice(ends))

    def touch_all(self) -> None:
        """Go on with everything: whoever missed a part of it can see that now."""
        self._notice()
        for message in self._session.view.open_messages:
            for block in range(3):
                self._grow(message, block)
        for call in self._session.view.open_calls:
            self._output(call)
            self._progress(call)

    def restart(self) -> None:
        """The server dies and comes again: what is not stored is gone, and it says so."""
        self._forget()
        self._recover()

    def go_back(self) -> None:
        """A backup takes the place of the store: another log, that has less."""
        session = self._session
        kept = self._chance.randint(1, len(session.events))
        del session.events[kept:]
        self._lives += 1
        session.log = f"log_of_backup_{self._lives}"
        self._forget()
        self._recover()

    def lose_place(self) -> None:
        """Tell the readers that the server cannot go on from where they are."""
        last = len(self._session.events)
        gap = Gap(requested="?", last=last, reason=self._chance.choice(("too_long", "malformed")))
        self._session.send(encode_event(encode(gap), event="gap"))

    def _forget(self) -> None:
        view = empty_view()
        for envelope in self._session.events:
            view = reduce(view, envelope)
        self._session.view = view

    def _recover(self) -> None:
        view = self._session.view
        if view.turn is None:
            return
        self._emit(TurnResumed(attempt=1))
        for message in view.open_messages:
            self._emit(MessageDiscarded(message=message.id, reason="crash"))
        for call in view.open_calls:
            if self._chance.random() < 0.5:
                self._emit(ToolEnded(call=call.call, status="unknown", content=(_SAID,)))

    def _emit(self, *events: Event) -> None:
        for event in events:
            turn = self._session.view.turn
            self._session.emit(event, None if turn is None else turn.id)

    def _mint(self, prefix: str) -> str:
        self._minted += 1
        return f"{prefix}_{self._lives}_{self._minted:04d}"

    def _outside(self) -> list[Callable[[], None]]:
        view = self._session.view
        acts: list[Callable[[], None]] = [self._begin, self._begin, self._begin, self._talk]
        acts += [self._set, self._notice, self._compact]
        if view.queue:
            acts += [self._withdraw]
        if view.last_turn is not None:
            acts += [self._revert]
        return acts

    def _in_turn(self) -> list[Callable[[], None]]:
        view = self._session.view
        acts: list[Callable[[], None]] = [self._notice, self._step, self._wait, self._plan]
        acts += [self._talk, self._propose, self.end_turn]
        acts += [self._open_message] * 3
        acts += [self._write] * 12 * len(view.open_messages)
        acts += [self._end_message] * len(view.open_messages)
        acts += [self._work] * 6 * len(view.open_calls)
        acts += [self._settle] * (len(view.permissions) + len(view.questions))
        return acts

    def _begin(self) -> None:
        if not self._session.view.queue:
            self._talk()
        prompt = self._session.view.queue[0].prompt
        turn = TurnId(self._mint("trn"))
        self._session.emit(PromptDelivered(prompt=prompt, turn=turn, how="started"), turn)
        self._session.emit(TurnStarted(prompt=prompt, model="scripted/m", limits=Limits()), turn)

    def _talk(self) -> None:
        prompt = PromptId(self._mint("pmt"))
        self._emit(PromptAdmitted(prompt=prompt, content=(self._text(),), when="auto", key=prompt))

    def _set(self) -> None:
        self._emit(SessionUpdated(title=self._mint("title"), mode="auto"))

    def _notice(self) -> None:
        events: list[Event] = [
            Notice(code="careful", message="Mind this."),
            Unknown(name="moon_seen", raw={"type": "moon_seen"}),
        ]
        self._emit(self._chance.choice(events))

    def _compact(self) -> None:
        self._emit(Compacted(summary="Much was said.", before_tokens=900, after_tokens=90))

    def _withdraw(self) -> None:
        self._emit(PromptWithdrawn(prompt=self._session.view.queue[-1].prompt))

    def _revert(self) -> None:
        last = self._session.view.last_turn
        assert last is not None
        self._emit(Reverted(to_turn=last.id))

    def _step(self) -> None:
        self._emit(StepStarted(model="scripted/m"))
        self._emit(StepEnded(stop_reason="tool_calls", usage=_USED, cost=0.5))

    def _wait(self) -> None:
        self._emit(Waiting(until=_LATER, reason="slot"))

    def _plan(self) -> None:
        self._emit(TodosUpdated(todos=(Todo(id="1", content=self._mint("do"), status="open"),)))

    def _open_message(self) -> None:
        if len(self._session.view.open_messages) < 2:
            self._emit(MessageStarted(message=MessageId(self._mint("msg")), role="assistant"))

    def _write(self) -> None:
        message = self._chance.choice(self._session.view.open_messages)
        self._grow(message, self._chance.randrange(3))

    def _grow(self, message: OpenMessage, block: int) -> None:
        text = self._chance.choice(PIECES)
        kind = (ThinkingDelta, TextDelta, ToolCallDelta)[block]
        at = 0
        if block < len(message.content):
            match message.content[block]:
                case Text(text=had) | Thinking(text=had):
                    at = len(had)
                case ToolCall(arguments=had):
                    at = len(had)
                case _:
                    pass
        self._emit(kind(message=message.id, block=block, at=at, text=text))

    def _end_message(self) -> None:
        message = self._chance.choice(self._session.view.open_messages)
        self._emit(MessageEnded(message=message.id, content=(self._text(), Thinking(text="Hm"))))

    def _propose(self) -> None:
        call = CallName(self._mint("call"))
        tool = self._chance.choice(("run", "ring", "ask"))
        self._emit(
            ToolProposed(call=call, tool=tool, arguments="{}", title=tool, effect="exec")
        )  # fmt: skip
        if tool == "run":
            self._ask(call)
        elif tool == "ring":
            self._emit(ClientCallOffered(call=call, expires_at=_LATER))
        else:
            items = (QuestionItem(id="1", prompt="Which?"),)
            self._emit(QuestionAsked(question=QuestionId(self._mint("qst")), items=items))

    def _ask(self, call: CallName) -> None:
        self._emit(
            PermissionRequested(
                permission=PermissionId(self._mint("prm")),
                call=call,
                tool="run",
                title="run",
                preview=Preview(kind="command", text="make test"),
                digest="digest",
                options=(Option(id="allow_once", label="Allow"), Option(id="deny", label="Deny")),
                expires_at=_LATER,
            )
        )

    def _work(self) -> None:
        """Something happens in a call."""
        call = self._chance.choice(self._session.view.open_calls)
        acts = [self._output] * 6 + [self._progress, self._start, self._claim, self._end_call]
        self._chance.choice(acts)(call)

    def _start(self, call: CallView) -> None:
        self._emit(ToolStarted(call=call.call))

    def _claim(self, call: CallView) -> None:
        self._emit(ClientCallClaimed(call=call.call, by="desk"))

    def _output(self, call: CallView) -> None:
        text = self._chance.choice(PIECES) * self._chance.choice((1, 1, 1, 2000))
        self._emit(ToolOutputDelta(call=call.call, at=call.output_at + len(call.output), text=text))

    def _progress(self, call: CallView) -> None:
        self._emit(ToolProgress(call=call.call, text="soon", fraction=self._chance.random()))

    def _end_call(self, call: CallView) -> None:
        change = FileChange(path=self._mint("file"), kind="modified", diff="+a\n-b\n")
        self._emit(FilesChanged(call=call.call, changes=(change,)))
        self._emit(ToolEnded(call=call.call, status="completed", content=(self._text(),)))

    def _settle(self) -> None:
        view = self._session.view
        if view.permissions:
            first = view.permissions[0].permission
            self._emit(PermissionResolved(permission=first, option="allow_once", by="me"))
        else:
            first = view.questions[0].question
            self._emit(QuestionResolved(question=first, answers={"1": ("yes",)}, by="me"))

    def _text(self) -> Text:
        return Text(text="".join(self._chance.choices(PIECES, k=3)))


_SAID: Final = Text(text="So it ended.")
_USED: Final = Usage(input=10, output=2)
