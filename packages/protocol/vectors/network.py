"""Vectors of what comes late, twice, in pieces, or not at all."""

from script import MODEL, SESSION, Script

from towline_protocol import (
    CallId,
    ClientCallClaimed,
    ClientCallOffered,
    FileChange,
    FilesChanged,
    Gap,
    Hello,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    Opaque,
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
    Reset,
    StepStarted,
    Text,
    TextDelta,
    Thinking,
    ThinkingDelta,
    ToolCallDelta,
    ToolEnded,
    ToolOutputDelta,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    TurnCompleted,
    Usage,
)

__all__ = ["NETWORK"]

CALL = CallId("call_1")
OTHER = CallId("call_2")
FIRST = MessageId("msg_1")
SECOND = MessageId("msg_2")
LATER = "2026-01-31T09:02:00.000Z"
GRIN = "\N{GRINNING FACE}"


def _propose(log: Script, *calls: CallId) -> None:
    for call in calls:
        log.stored(ToolProposed(call=call, tool="ask", arguments="{}", title="Ask", effect="write"))


def _request(name: str, call: CallId) -> PermissionRequested:
    return PermissionRequested(
        permission=PermissionId(name),
        call=call,
        tool="ask",
        title="Ask",
        preview=Preview(kind="text", text="Ask"),
        digest="d" * 64,
        options=(Option(id="allow_once", label="Allow once"), Option(id="deny", label="Deny")),
        expires_at=LATER,
    )


def late_answers() -> Script:
    """Answers and results that come when all is over."""
    log = Script(
        "late_answers",
        "The first result, answer and claim count; what comes after the end of a call, a request "
        "or a turn changes nothing.",
        "C5.7",
    )
    log.ask("Ask")
    _propose(log, CALL, OTHER)
    one, two = PermissionId("prm_1"), PermissionId("prm_2")
    log.stored(
        _request("prm_1", CALL),
        _request("prm_2", OTHER),
        PermissionResolved(permission=two, option="allow_once", by="ada"),
        PermissionResolved(permission=two, option="deny", by="deadline"),
        QuestionAsked(question=QuestionId("qst_1"), items=(QuestionItem(id="a", prompt="Which?"),)),
        QuestionResolved(question=QuestionId("qst_1"), answers={"a": ("this",)}, by="ada"),
        QuestionResolved(question=QuestionId("qst_1"), answers={"a": ("that",)}, by="deadline"),
        ToolEnded(call=CALL, status="denied", content=(), is_error=True),
        PermissionResolved(permission=one, option="allow_once", by="ada"),
        ToolStarted(call=OTHER),
        ClientCallOffered(call=OTHER, expires_at=LATER),
        ClientCallClaimed(call=OTHER, by="phone"),
        ToolEnded(call=OTHER, status="completed", content=(Text(text="yes"),)),
        ToolEnded(call=OTHER, status="unknown", content=(Text(text="no"),)),
        ToolStarted(call=OTHER),
        ClientCallOffered(call=OTHER, expires_at=LATER),
        ClientCallClaimed(call=OTHER, by="tablet"),
        FilesChanged(call=OTHER, changes=(FileChange(path="a.txt", kind="created"),)),
        Notice(code="late_result", message="A result came when its call had ended."),
    )
    log.live(ToolProgress(call=OTHER, text="late"))
    log.end(TurnCompleted(stop_reason="end_turn", usage=Usage()))
    log.stored(ToolEnded(call=CALL, status="completed", content=(Text(text="much too late"),)))
    return log


def discarded_messages() -> Script:
    """Messages that are given up."""
    log = Script(
        "discarded_messages",
        "A discarded message goes with all its pieces, and what comes for it later; one that is "
        "begun again starts empty.",
        "C5.4",
    )
    log.ask("Write")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(
        ThinkingDelta(message=FIRST, block=0, at=0, text="Well"),
        TextDelta(message=FIRST, block=1, at=0, text="Once"),
    )
    log.stored(MessageStarted(message=SECOND, role="assistant"))
    log.live(TextDelta(message=SECOND, block=0, at=0, text="Two at once"))
    log.stored(
        MessageDiscarded(message=FIRST, reason="the connection broke"),
        MessageDiscarded(message=FIRST, reason="again"),
        MessageDiscarded(message=MessageId("msg_unknown"), reason="nobody knows it"),
    )
    log.live(TextDelta(message=FIRST, block=1, at=4, text=" upon"))
    log.control(Partial(message=FIRST, content=(Text(text="Once upon"),)))
    log.stored(MessageStarted(message=SECOND, role="assistant"))
    log.live(TextDelta(message=SECOND, block=0, at=0, text="Anew"))
    return log


def partials() -> Script:
    """A reader that comes back in the middle of everything."""
    log = Script(
        "partials",
        "Each partial stands for all pieces before it, also when it is shorter or of other kinds; "
        "pieces it holds already add nothing.",
        "C1.6",
    )
    log.ask("Everything")
    _propose(log, CALL, OTHER)
    log.stored(
        ToolStarted(call=CALL),
        ToolStarted(call=OTHER),
        MessageStarted(message=FIRST, role="assistant"),
    )
    log.live(
        TextDelta(message=FIRST, block=0, at=0, text="much more than there was"),
        ToolOutputDelta(call=CALL, at=0, text="old output"),
        ToolProgress(call=OTHER, text="old news"),
    )
    log.control(
        Hello(log="log_a", last_seq=9, now="2026-01-31T09:00:00.000Z", server_version="1"),
        Partial(
            message=FIRST,
            content=(Thinking(text=f"H{GRIN}"), Text(text="Short"), Thinking(text="so")),
        ),
        Partial(call=CALL, at=3, output=GRIN * 2, progress="half", fraction=0.5),
        Partial(call=OTHER, output=""),
        Partial(call=CallId("call_unknown"), output="?"),
    )
    log.live(
        ThinkingDelta(message=FIRST, block=0, at=0, text=f"H{GRIN}m"),
        TextDelta(message=FIRST, block=1, at=5, text="er"),
        ThinkingDelta(message=FIRST, block=2, at=2, text="-so"),
        ToolOutputDelta(call=CALL, at=4, text=f"{GRIN}!"),
        ToolOutputDelta(call=CALL, at=0, text="seen"),
        ToolOutputDelta(call=OTHER, at=0, text="first"),
    )
    return log


def partial_with_unknown_block() -> Script:
    """A piece for a block that cannot grow."""
    log = Script(
        "partial_with_unknown_block",
        "A piece for a block that holds no words marks the view lost.",
        "C1.5",
        "C1.6",
    )
    log.ask("New things")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.control(
        Partial(message=FIRST, content=(Text(text="a"), Opaque(dialect="new"), Text(text="c")))
    )
    log.live(
        TextDelta(message=FIRST, block=2, at=1, text="d"),
        TextDelta(message=FIRST, block=1, at=0, text="b"),
    )
    return log


def interleaved() -> Script:
    """Pieces of several blocks and messages take turns."""
    log = Script(
        "interleaved",
        "Pieces of blocks, messages and calls that take turns each go to their own; what is "
        "unknown among them is counted and stops nothing.",
        "C1.7",
        "C1.11",
    )
    log.ask("Two things")
    _propose(log, CALL)
    log.stored(
        ToolStarted(call=CALL),
        MessageStarted(message=FIRST, role="assistant"),
        MessageStarted(message=SECOND, role="assistant"),
    )
    log.live(
        TextDelta(message=FIRST, block=0, at=0, text="a"),
        TextDelta(message=FIRST, block=0, at=1, text="b"),
        TextDelta(message=SECOND, block=0, at=0, text="x"),
        TextDelta(message=SECOND, block=0, at=1, text="y"),
        TextDelta(message=FIRST, block=0, at=2, text="c"),
        ToolOutputDelta(call=CALL, at=0, text="out"),
        TextDelta(message=FIRST, block=0, at=3, text="d"),
        ToolCallDelta(message=FIRST, block=1, at=0, text="{"),
        ToolCallDelta(message=FIRST, block=1, at=1, text="}"),
    )
    log.raw_event({"type": "moon_delta", "message": FIRST, "text": "x"}, stored=False)
    log.live(TextDelta(message=FIRST, block=0, at=4, text="e"))
    log.raw_event({"type": "text_delta", "message": FIRST, "block": 0, "at": "five", "text": "x"})
    log.live(
        TextDelta(message=FIRST, block=0, at=5, text="f"),
        ThinkingDelta(message=SECOND, block=1, at=0, text="hm"),
        TextDelta(message=SECOND, block=2, at=0, text="z"),
    )
    return log


def holders() -> Script:
    """Blocks of which the last comes first."""
    log = Script(
        "holders",
        "A place holder takes the kind of its first piece, whatever came before it elsewhere; an "
        "empty first piece is a piece.",
        "C1.5",
    )
    log.ask("Backwards")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(
        ThinkingDelta(message=FIRST, block=4, at=0, text="fourth"),
        ToolCallDelta(message=FIRST, block=2, at=0, text="{"),
        TextDelta(message=FIRST, block=0, at=0, text="first"),
        TextDelta(message=FIRST, block=1, at=0, text=""),
        ThinkingDelta(message=FIRST, block=1, at=0, text="second"),
        ThinkingDelta(message=FIRST, block=3, at=0, text=""),
        ThinkingDelta(message=FIRST, block=3, at=0, text="third"),
    )
    return log


def hole_in_thinking() -> Script:
    """A hole in a thought and one in a call's arguments."""
    log = Script(
        "hole_in_thinking",
        "A hole in any kind of block marks the view lost; other blocks go on until a new view "
        "comes, and stored events do not.",
        "C1.5",
    )
    log.ask("Think")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(
        ThinkingDelta(message=FIRST, block=0, at=0, text="abc"),
        ThinkingDelta(message=FIRST, block=0, at=4, text="e"),
        ThinkingDelta(message=FIRST, block=0, at=5, text="f"),
        ToolCallDelta(message=FIRST, block=1, at=1, text="}"),
        TextDelta(message=FIRST, block=2, at=0, text="on"),
    )
    log.stored(MessageDiscarded(message=FIRST, reason="not seen"))
    return log


def hole_at_the_start() -> Script:
    """A reader that joins without a partial."""
    log = Script("hole_at_the_start", "A block that does not begin at 0 has a hole.", "C1.5")
    log.ask("Go on")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(
        TextDelta(message=FIRST, block=0, at=2, text="c"),
        TextDelta(message=FIRST, block=0, at=3, text="d"),
        TextDelta(message=FIRST, block=-1, at=0, text="before the first"),
    )
    return log


def gap_in_mid_message() -> Script:
    """The cursor is of another log."""
    log = Script(
        "gap_in_mid_message",
        "After a gap no stored event counts, again or new; a planned close changes nothing.",
    )
    log.ask("Go on")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=0, at=0, text="One"))
    log.control(Reset(retry_ms=100), Gap(requested="log_b:9", last=6, reason="other_log"))
    log.again(0, 3)
    log.stored(MessageEnded(message=FIRST, content=(Text(text="One, two"),)))
    return log


def numbers_out_of_order() -> Script:
    """Numbers below, at and above the next one."""
    log = Script(
        "numbers_out_of_order",
        "Old numbers, zero and negative ones count for nothing; one too high marks the view lost, "
        "and the right one after it comes too late.",
        "C4.2",
    )
    log.begin()
    notice = {"type": "notice", "code": "n", "message": "m"}
    for seq in (0, -3, 1, 2, 2, 4, 3):
        log.raw({"session": SESSION, "time": LATER, "event": notice, "seq": seq})
    return log


NETWORK = (
    late_answers,
    discarded_messages,
    partials,
    partial_with_unknown_block,
    interleaved,
    holders,
    hole_in_thinking,
    hole_at_the_start,
    gap_in_mid_message,
    numbers_out_of_order,
)
