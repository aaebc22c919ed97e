"""Vectors of tool calls, permissions, questions and of what a reader does not know."""

from script import MODEL, Script

from towline_protocol import (
    CallId,
    ClientCallClaimed,
    ClientCallOffered,
    CommandArtifact,
    Fault,
    FileChange,
    FilesChanged,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    Option,
    Partial,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    QuestionAsked,
    QuestionId,
    QuestionItem,
    QuestionResolved,
    StepEnded,
    StepStarted,
    Text,
    TextDelta,
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
    Usage,
)

__all__ = ["TOOL"]

CALL = CallId("call_1")
OTHER = CallId("call_2")
FIRST = MessageId("msg_1")
SECOND = MessageId("msg_2")
PERMISSION = PermissionId("prm_1")
GRIN = "\N{GRINNING FACE}"
COMMAND = "ls -l"
ARGUMENTS = '{"command": "ls -l"}'
OPTIONS = (
    Option(id="allow_once", label="Allow once"),
    Option(id="allow_always", label="Always allow", rule="run_program ls"),
    Option(id="deny", label="Deny"),
)


def _call(log: Script, call: CallId = CALL, message: MessageId = FIRST) -> None:
    """A message that asks for one program, and the proposal."""
    log.stored(StepStarted(model=MODEL), MessageStarted(message=message, role="assistant"))
    log.live(ToolCallDelta(message=message, block=0, at=0, text='{"comm'))
    log.stored(
        MessageEnded(
            message=message,
            content=(ToolCall(id=call, name="run_program", arguments=ARGUMENTS),),
        ),
        StepEnded(stop_reason="tool_calls", usage=Usage(input=10, output=5), cost=0.0),
    )
    _propose(log, call)


def _propose(log: Script, call: CallId) -> None:
    log.stored(
        ToolProposed(
            call=call,
            tool="run_program",
            arguments=ARGUMENTS,
            title="Run ls",
            effect="exec",
            preview=Preview(kind="command", text=COMMAND),
            arguments_file="a" * 64,
        )
    )


def _request(expires_at: str, call: CallId = CALL) -> PermissionRequested:
    return PermissionRequested(
        permission=PERMISSION,
        call=call,
        tool="run_program",
        title="Run ls",
        preview=Preview(kind="command", text=COMMAND),
        digest="d" * 64,
        options=OPTIONS,
        reason="mode",
        expires_at=expires_at,
    )


def tool_with_permission() -> Script:
    """One call from the proposal to its result."""
    log = Script(
        "tool_with_permission",
        "Proposed, asked for twice, allowed, run with output, ended, and the answer after it.",
        "C5.8",
    )
    log.ask("List the folder")
    _call(log)
    log.stored(
        _request("2026-01-31T09:02:00.000Z"),
        _request("2026-01-31T09:30:00.000Z"),
        PermissionResolved(permission=PERMISSION, option="allow_once", by="ada", note="go on"),
        ToolStarted(call=CALL),
    )
    log.live(
        ToolProgress(call=CALL, text="reading", fraction=0.5),
        ToolOutputDelta(call=CALL, at=0, text="a.txt\n"),
        ToolOutputDelta(call=CALL, at=6, text="b.txt\n"),
    )
    log.stored(
        FilesChanged(
            call=CALL, changes=(FileChange(path="a.txt", kind="created", after="f" * 64),)
        ),
        FilesChanged(call=CALL, changes=(FileChange(path="b.txt", kind="deleted", diff="-x\n"),)),
        ToolEnded(
            call=CALL,
            status="completed",
            content=(Text(text="a.txt\nb.txt\n"),),
            files=("e" * 64,),
            duration_ms=12,
            artifacts=(CommandArtifact(command=COMMAND, exit_code=0, output="a.txt\nb.txt\n"),),
        ),
        StepStarted(model=MODEL),
        MessageStarted(message=SECOND, role="assistant"),
        MessageEnded(message=SECOND, content=(Text(text="Two files."),)),
        StepEnded(stop_reason="end_turn", usage=Usage(input=20, output=3), cost=0.0),
    )
    log.end(TurnCompleted(stop_reason="end_turn", usage=Usage(input=30, output=8), cost=0.0))
    return log


def permission_open() -> Script:
    """A call waits for a person."""
    log = Script("permission_open", "The frames end while a person is asked.")
    log.ask("List the folder")
    _call(log)
    log.stored(
        _request("2026-01-31T09:02:00.000Z"),
        PermissionResolved(permission=PermissionId("prm_unknown"), option="deny", by="deadline"),
    )
    return log


def denied() -> Script:
    """A person says no."""
    log = Script("denied", "A denied call ends without having run.")
    log.ask("List the folder")
    _call(log)
    log.stored(
        _request("2026-01-31T09:02:00.000Z"),
        PermissionResolved(permission=PERMISSION, option="deny", by="deadline"),
        ToolEnded(
            call=CALL, status="denied", content=(Text(text="Nobody answered."),), is_error=True
        ),
    )
    return log


def parallel_calls() -> Script:
    """Two calls at once, one of them still running."""
    log = Script(
        "parallel_calls",
        "Two calls of one message; output of an ended or unknown call is passed over.",
        "C1.5",
    )
    log.ask("List both")
    log.stored(
        MessageEnded(
            message=FIRST,
            content=(
                ToolCall(id=CALL, name="run_program", arguments=ARGUMENTS),
                ToolCall(id=OTHER, name="run_program", arguments=ARGUMENTS),
            ),
        )
    )
    _propose(log, CALL)
    _propose(log, OTHER)
    log.stored(ToolStarted(call=CALL), ToolStarted(call=OTHER))
    log.live(
        ToolOutputDelta(call=OTHER, at=0, text="other"),
        ToolOutputDelta(call=CALL, at=0, text="one"),
        ToolProgress(call=OTHER, text="half", fraction=0.5),
    )
    log.stored(
        ToolEnded(call=CALL, status="failed", content=(), is_error=True, duration_ms=3),
        ToolEnded(call=CALL, status="completed", content=(Text(text="too late"),)),
        ToolEnded(call=CallId("call_unknown"), status="completed", content=()),
    )
    log.live(
        ToolOutputDelta(call=CALL, at=3, text="late"),
        ToolOutputDelta(call=CallId("call_unknown"), at=9, text="?"),
    )
    return log


def partial_of_call() -> Script:
    """A reader that joins while a program runs."""
    log = Script("partial_of_call", "The tail of a running call comes as one partial.", "C1.6")
    log.ask("List the folder")
    _call(log)
    log.stored(ToolStarted(call=CALL))
    log.control(Partial(call=CALL, at=40_000, output="tail of it"))
    log.live(ToolOutputDelta(call=CALL, at=40_010, text=", and more"))
    return log


def hole_in_output() -> Script:
    """A piece of a call's output is missing."""
    log = Script("hole_in_output", "A hole in a call's output marks the view lost.", "C1.5")
    log.ask("List the folder")
    _call(log)
    log.stored(ToolStarted(call=CALL))
    log.live(
        ToolOutputDelta(call=CALL, at=0, text="abc"), ToolOutputDelta(call=CALL, at=4, text="e")
    )
    return log


def astral_output() -> Script:
    """More output than a view holds, outside the first plane."""
    log = Script(
        "astral_output", "A view keeps the last 8,192 code points of running output.", "C1.12"
    )
    log.ask("Smile")
    _call(log)
    log.stored(ToolStarted(call=CALL))
    log.live(
        ToolOutputDelta(call=CALL, at=0, text="first" + GRIN * 8190),
        ToolOutputDelta(call=CALL, at=8195, text=f"last{GRIN}"),
    )
    return log


def cancelled() -> Script:
    """Stop, while a call runs."""
    log = Script(
        "cancelled",
        "A stop ends the call, then the turn; nothing stays open.",
    )
    log.ask("List the folder")
    _call(log)
    log.stored(ToolStarted(call=CALL))
    log.live(ToolOutputDelta(call=CALL, at=0, text="a.txt\n"))
    log.stored(
        ToolEnded(
            call=CALL,
            status="cancelled",
            content=(Text(text="Cancelled."),),
            is_error=True,
            duration_ms=250,
        )
    )
    log.end(TurnCancelled(by="ada", reason="stopped by the user", usage=Usage(input=10, output=5)))
    return log


def end_closes_all() -> Script:
    """A turn's end leaves nothing open, whatever came before."""
    log = Script(
        "end_closes_all",
        "A failed turn closes open messages, calls, permissions and questions.",
    )
    log.ask("List the folder")
    _call(log)
    log.stored(
        ToolStarted(call=CALL),
        _request("2026-01-31T09:02:00.000Z"),
        QuestionAsked(question=QuestionId("qst_1"), items=(QuestionItem(id="a", prompt="Which?"),)),
        MessageStarted(message=SECOND, role="assistant"),
    )
    log.live(
        ToolProgress(call=CALL, text="reading"),
        ToolOutputDelta(call=CALL, at=0, text="a.txt\n"),
        TextDelta(message=SECOND, block=0, at=0, text="I am"),
    )
    log.end(TurnFailed(fault=Fault(code="internal_error", message="A fault."), usage=Usage()))
    return log


def questions() -> Script:
    """The agent asks."""
    log = Script("questions", "A question is replaced by its id and goes when answered.", "C5.8")
    log.ask("Paint it")
    colour = QuestionItem(
        id="colour",
        prompt="Which colour?",
        options=(Option(id="red", label="Red"), Option(id="blue", label="Blue")),
        multiple=True,
        free_text=True,
    )
    size = QuestionItem(id="size", prompt="How large?", free_text=True)
    one, two = QuestionId("qst_1"), QuestionId("qst_2")
    log.stored(
        QuestionAsked(question=one, items=(colour,)),
        QuestionAsked(question=two, items=(size,)),
        QuestionAsked(question=one, items=(colour,), expires_at="2026-01-31T09:02:00.000Z"),
        QuestionResolved(question=two, answers={"size": ("large",)}, by="ada"),
    )
    return log


def client_calls() -> Script:
    """Two calls run in clients."""
    log = Script(
        "client_calls",
        "One call is taken, offered again to its client after a restart, and ended; the other goes "
        "back to all. An offer without a number is for one reader alone and changes nothing.",
        "C5.12",
    )
    log.ask("List both")
    _call(log)
    _propose(log, OTHER)
    first, second = "2026-01-31T09:02:00.000Z", "2026-01-31T09:30:00.000Z"
    log.stored(
        ToolStarted(call=CALL),
        ClientCallOffered(call=CALL, expires_at=first),
        ClientCallClaimed(call=CALL, by="phone"),
        ClientCallOffered(call=CALL, expires_at=second, to="phone"),
    )
    log.live(
        ClientCallOffered(call=CALL, expires_at=second, to="phone"),
        ToolProgress(call=CALL, text="half", fraction=0.5),
    )
    log.stored(
        ToolEnded(call=CALL, status="completed", content=(Text(text="a.txt"),), duration_ms=9),
        ToolStarted(call=OTHER),
        ClientCallOffered(call=OTHER, expires_at=first),
        ClientCallClaimed(call=OTHER, by="phone"),
        ClientCallOffered(call=OTHER, expires_at=second),
        ClientCallClaimed(call=CallId("call_unknown"), by="phone"),
    )
    return log


def unknown_kinds() -> Script:
    """A newer server speaks to an older reader."""
    log = Script(
        "unknown_kinds",
        "Unknown events are counted, unknown blocks and artifacts kept whole, unknown fields "
        "passed over, open words kept, broken frames skipped.",
        "C1.11",
    )
    log.ask("What is new?")
    log.raw_event({"type": "moon_phase_changed", "phase": 3, "nested": {"a": [1, None]}})
    log.raw_event({"type": "moon_delta", "text": "x"}, stored=False)
    log.raw_event(
        {
            "type": "message_ended",
            "message": FIRST,
            "content": [
                {"type": "text", "text": "Known.", "colour": "red"},
                {"type": "hologram", "depth": 2, "parts": [{"type": "text", "text": "inner"}]},
                {"type": "tool_call", "id": CALL, "name": "look", "arguments": "{}"},
                {"type": "image", "media_type": 7},
            ],
            "mood": "good",
        },
        colour="blue",
    )
    log.raw_event(
        {
            "type": "tool_proposed",
            "call": CALL,
            "tool": "look",
            "arguments": "{}",
            "title": "Look",
            "effect": "telepathy",
        }
    )
    log.raw_event(
        {
            "type": "tool_ended",
            "call": CALL,
            "status": "dreamt",
            "content": [{"type": "smell", "note": "roses"}, {"type": "text", "text": "ok"}],
            "artifacts": [
                {"kind": "hologram", "depth": 2},
                {"kind": "http", "url": "about:blank", "status": 200, "warmth": 1},
                {"kind": "http", "url": "about:blank", "status": "fine"},
            ],
        }
    )
    log.raw_event({"type": "turn_started", "prompt": 5})
    log.stored(MessageStarted(message=SECOND, role="assistant"))
    log.raw(
        {"message": SECOND, "content": [{"type": "text", "text": "So"}, {"type": "hologram"}]},
        event="partial",
    )
    log.raw({"seq": "seven", "event": {"type": "notice"}})
    log.raw({"hello": "there"})
    log.raw([1, 2, 3])
    log.raw({"last_seq": 3}, event="hello")
    log.raw({}, event="eclipse")
    log.stored(Notice(code="fine", message="Still here."))
    return log


def trimming() -> Script:
    """More entries than a view holds."""
    log = Script(
        "trimming",
        "A view holds the last 200 entries; calls go with the message that asked for them.",
    )
    log.ask("Many")
    for number in range(1, 204):
        call = CallId(f"call_{number}")
        message = MessageId(f"msg_{number}")
        if number % 40 != 1:
            log.stored(MessageEnded(message=message, content=(Text(text=f"Number {number}."),)))
            continue
        content = (ToolCall(id=call, name="now", arguments="{}"),)
        log.stored(
            MessageEnded(message=message, content=content),
            ToolProposed(call=call, tool="now", arguments="{}", title="Now", effect="read"),
            ToolEnded(call=call, status="completed", content=(Text(text="noon"),)),
        )
    return log


TOOL = (
    tool_with_permission,
    permission_open,
    denied,
    parallel_calls,
    partial_of_call,
    hole_in_output,
    astral_output,
    cancelled,
    end_closes_all,
    questions,
    client_calls,
    unknown_kinds,
    trimming,
)
