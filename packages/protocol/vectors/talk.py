"""Vectors of sessions, prompts, turns and messages."""

from script import MODEL, Script

from towline_protocol import (
    CallId,
    Compacted,
    Context,
    Fallback,
    Fault,
    Gap,
    Hello,
    MessageDiscarded,
    MessageEnded,
    MessageId,
    MessageStarted,
    Notice,
    Partial,
    PromptDelivered,
    PromptId,
    PromptWithdrawn,
    Reset,
    Reverted,
    SessionClosed,
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
    TurnCancelled,
    TurnCompleted,
    TurnFailed,
    TurnId,
    TurnResumed,
    Usage,
    Waiting,
)

__all__ = ["TALK"]

FIRST = MessageId("msg_1")
SECOND = MessageId("msg_2")
USAGE = Usage(input=120, output=40, cache_read=1000, reasoning=8)
GRIN = "\N{GRINNING FACE}"


def plain_answer() -> Script:
    """A thought, an answer in three pieces, the end."""
    log = Script("plain_answer", "One prompt, one streamed answer.", "C1.8")
    log.ask("  How  far is\nthe moon? ")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(
        ThinkingDelta(message=FIRST, block=0, at=0, text="Look it "),
        ThinkingDelta(message=FIRST, block=0, at=8, text="up."),
        TextDelta(message=FIRST, block=1, at=0, text="About "),
        TextDelta(message=FIRST, block=1, at=6, text="384,000 "),
        TextDelta(message=FIRST, block=1, at=14, text="km"),
    )
    log.stored(
        MessageEnded(
            message=FIRST,
            content=(Thinking(text="Look it up."), Text(text="About **384,400** km.")),
        ),
        StepEnded(
            stop_reason="end_turn",
            usage=USAGE,
            cost=0.25,
            context=Context(used=1160, window=8192),
        ),
    )
    log.end(
        TurnCompleted(
            stop_reason="end_turn", usage=USAGE, cost=0.25, summary="About **384,400** km."
        )
    )
    return log


def open_message() -> Script:
    """What a screen shows in mid-stream."""
    log = Script("open_message", "The frames end while a message is being written.", "C1.5")
    log.ask("Go on")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(
        TextDelta(message=FIRST, block=0, at=0, text="One, "),
        TextDelta(message=FIRST, block=0, at=5, text="two"),
        ToolCallDelta(message=FIRST, block=1, at=0, text='{"path": '),
        ToolCallDelta(message=FIRST, block=1, at=9, text='"a.tx'),
    )
    return log


def partial_in_mid_message() -> Script:
    """A reader that joins while a message is being written."""
    log = Script(
        "partial_in_mid_message",
        "A new connection: hello, replay, one partial for the open message, then deltas.",
        "C1.5",
        "C1.6",
    )
    log.control(Hello(log="log_a", last_seq=6, now="2026-01-31T09:00:00.000Z", server_version="1"))
    log.ask("Count")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=0, at=0, text="stale"))
    log.control(
        Partial(
            message=FIRST,
            content=(
                Text(text=f"One {GRIN}"),
                ToolCall(id=CallId(""), name="", arguments='{"n": '),
            ),
        ),
        Partial(message=SECOND, content=(Text(text="nobody has seen this one"),)),
    )
    log.live(
        TextDelta(message=FIRST, block=0, at=5, text=", two"),
        ToolCallDelta(message=FIRST, block=1, at=6, text="2}"),
    )
    log.control(Reset(retry_ms=1500))
    return log


def hole_in_at() -> Script:
    """A piece is missing inside a block."""
    log = Script(
        "hole_in_at",
        "A delta that leaves a hole marks the view lost; no stored event is taken after that.",
        "C1.5",
    )
    log.ask("Say it")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(
        TextDelta(message=FIRST, block=0, at=0, text="abc"),
        TextDelta(message=FIRST, block=0, at=5, text="fgh"),
    )
    log.stored(MessageEnded(message=FIRST, content=(Text(text="abcdefgh"),)))
    return log


def odd_deltas() -> Script:
    """Deltas that fit nowhere."""
    log = Script(
        "odd_deltas",
        "Overlaps are cut, pieces for messages nobody writes are passed over, a place holder "
        "takes the kind of its first piece.",
        "C1.5",
    )
    log.ask("Say it")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(
        TextDelta(message=FIRST, block=0, at=0, text="abc"),
        TextDelta(message=FIRST, block=0, at=2, text="cde"),
        TextDelta(message=FIRST, block=0, at=0, text="abcd"),
        TextDelta(message=SECOND, block=0, at=0, text="nobody"),
        TextDelta(message=FIRST, block=2, at=0, text="third"),
        ThinkingDelta(message=FIRST, block=1, at=0, text="second"),
    )
    return log


def far_block() -> Script:
    """A peer names a block that no message can have."""
    log = Script("far_block", "A block beyond the bound marks the view lost.", "C1.5")
    log.ask("Say it")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=1_000_000, at=0, text="x"))
    return log


def duplicates() -> Script:
    """Everything comes twice."""
    log = Script("duplicates", "Frames come again; each counts once.", "C4.2")
    log.ask("Twice")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=0, at=0, text="once"))
    log.again(2)
    log.live(TextDelta(message=FIRST, block=0, at=4, text=" only"))
    log.again(-1)
    log.stored(
        MessageEnded(message=FIRST, content=(Text(text="once only"),)),
        StepEnded(stop_reason="end_turn", usage=USAGE, cost=0.5),
        Notice(code="slow", message="The disk is slow."),
    )
    log.end(TurnCompleted(stop_reason="end_turn", usage=USAGE, cost=0.5))
    log.again(0)
    return log


def seq_loss() -> Script:
    """A stored event is missing."""
    log = Script(
        "seq_loss", "A number is missing: the view is lost and stands where it stood.", "C4.2"
    )
    log.ask("First")
    log.seq += 1
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    return log


def gap() -> Script:
    """The server cannot serve the cursor."""
    log = Script("gap", "A gap frame marks the view lost.")
    log.ask("First")
    log.control(Gap(requested="900", last=4, reason="ahead_of_log"))
    log.stored(StepStarted(model=MODEL))
    return log


def stopped_in_mid_message() -> Script:
    """Stop, while the model speaks."""
    log = Script(
        "stopped_in_mid_message",
        "What was written stays, marked as cut; then the turn is cancelled.",
        "C1.8",
    )
    log.ask("Talk")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=0, at=0, text="As I was say"))
    log.stored(
        MessageEnded(message=FIRST, content=(Text(text="As I was say"),), cut="cancelled"),
        StepEnded(stop_reason="cancelled", usage=Usage()),
    )
    log.end(TurnCancelled(by="ada", reason="stopped by the user", usage=Usage()))
    return log


def failed_then_well() -> Script:
    """A turn that fails, and one that does not."""
    log = Script(
        "failed_then_well",
        "A failed turn leaves a mark and the fault; a turn that completes clears the fault.",
    )
    log.ask("Try")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=0, at=0, text="I was about"))
    fault = Fault(
        code="provider_rate_limited",
        message="The provider asks to wait. Try again in 60 s.",
        retry="same_request",
        retry_after_s=60.0,
        scope="plan",
        details={"window": "1m"},
    )
    log.end(TurnFailed(fault=fault, usage=Usage(input=5)))
    log.ask("Again", 2)
    log.stored(StepStarted(model=MODEL), MessageStarted(message=SECOND, role="assistant"))
    log.stored(MessageEnded(message=SECOND, content=(Text(text="Done."),)))
    log.end(TurnCompleted(stop_reason="end_turn", usage=USAGE))
    return log


def failed_last() -> Script:
    """The last word is a fault."""
    log = Script("failed_last", "The fault of the last turn stands in the view.")
    log.ask("Try")
    log.end(TurnFailed(fault=Fault(code="store_full", message="The disk is full."), usage=Usage()))
    return log


def limited() -> Script:
    """A turn that reached a bound."""
    log = Script("limited", "A turn that stops at a bound completes and says so.")
    log.ask("For ever")
    log.stored(StepStarted(model=MODEL), StepStarted(model=MODEL, attempt=2))
    log.stored(
        StepEnded(stop_reason="tool_calls", usage=USAGE, cost=0.125), StepStarted(model=MODEL)
    )
    log.stored(StepEnded(stop_reason="tool_calls", usage=USAGE))
    log.end(TurnCompleted(stop_reason="max_steps", usage=USAGE + USAGE))
    return log


def resumed() -> Script:
    """A crash in mid-message."""
    log = Script(
        "resumed",
        "After a crash the turn goes on: the cut message is discarded and written anew.",
    )
    log.ask("Write")
    log.stored(StepStarted(model=MODEL), MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=0, at=0, text="Once upo"))
    log.stored(
        TurnResumed(attempt=1),
        MessageDiscarded(message=FIRST, reason="the server stopped"),
        StepStarted(model=MODEL, attempt=2),
        MessageStarted(message=SECOND, role="assistant"),
    )
    log.live(
        TextDelta(message=FIRST, block=0, at=8, text="n"),
        TextDelta(message=SECOND, block=0, at=0, text="Once upon"),
    )
    log.stored(
        MessageEnded(message=SECOND, content=(Text(text="Once upon a time."),), cut="max_tokens")
    )
    return log


def queue_and_withdraw() -> Script:
    """Prompts while a turn runs."""
    log = Script(
        "queue_and_withdraw",
        "Waiting prompts stand in a queue; one is steered into the turn, one is taken back.",
    )
    log.ask("First")
    second = log.prompt(2, "Second", "queue")
    third = log.prompt(3, "Third", "steer", 1)
    fourth = log.prompt(4, "Fourth", "auto", 2)
    assert log.turn is not None
    log.stored(
        PromptDelivered(prompt=third, turn=log.turn, how="steered"),
        PromptWithdrawn(prompt=second),
        PromptWithdrawn(prompt=PromptId("pmt_unknown")),
        PromptDelivered(prompt=PromptId("pmt_unknown"), turn=log.turn, how="steered"),
    )
    log.end(TurnCancelled(by="ada", reason="stopped by the user", usage=USAGE))
    log.start(fourth, 2)
    log.prompt(5, "Fifth", "queue")
    return log


def settings() -> Script:
    """What a session is changes."""
    log = Script("settings", "Changed fields replace, others stay.")
    log.begin(title="Given", labels=("home",))
    log.prompt(1, "This makes no title")
    log.stored(
        SessionUpdated(title="New", archived=True),
        SessionUpdated(model="scripted/two"),
        SessionUpdated(mode="auto", archived=False, labels=("work", "later")),
        SessionClosed(reason="put away"),
        SessionUpdated(title="Newer"),
    )
    return log


def marks() -> Script:
    """Quiet lines between messages."""
    log = Script(
        "marks",
        "Waits end with the next stored event; a fallback, a compaction and a revert leave marks.",
    )
    log.ask("Long")
    log.stored(Waiting(until="2026-01-31T09:05:00.000Z", reason="rate_limit"))
    log.stored(
        Fallback(
            from_=MODEL,
            to="scripted/two",
            fault=Fault(code="provider_overloaded", message="The provider is overloaded."),
        ),
        Compacted(upto="pmt_1", summary="They talked.", before_tokens=9000, after_tokens=300),
        Compacted(before_tokens=9000, after_tokens=8000),
        TodosUpdated(todos=(Todo(id="1", content="Look", status="in_progress"),)),
        TodosUpdated(
            todos=(
                Todo(id="1", content="Look", status="completed"),
                Todo(id="2", content="Tell", status="pending"),
            )
        ),
    )
    log.end(TurnCompleted(stop_reason="end_turn", usage=USAGE))
    log.stored(Reverted(to_turn=TurnId("trn_1"), files=("a.txt",)))
    log.turn = TurnId("trn_2")
    log.stored(Waiting(until="2026-01-31T09:06:00.000Z", reason="slot"))
    return log


def notices() -> Script:
    """More notices than a view holds."""
    log = Script("notices", "A view holds the last 20 notices.")
    log.begin()
    log.stored(*(Notice(code=f"n{n}", message=f"Notice {n}.", scope="session") for n in range(23)))
    return log


def astral_title() -> Script:
    """A title of characters outside the first plane."""
    log = Script("astral_title", "A title is cut after 60 code points.", "C1.12")
    log.begin()
    log.prompt(1, f"{GRIN} \u2028" + GRIN * 70)
    return log


def astral_at() -> Script:
    """`at` counts code points."""
    log = Script("astral_at", "`at` counts code points in every kind of delta.", "C1.5", "C1.12")
    log.ask("Smile")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(
        TextDelta(message=FIRST, block=0, at=0, text=f"{GRIN}a{GRIN}"),
        TextDelta(message=FIRST, block=0, at=3, text="b"),
        TextDelta(message=FIRST, block=0, at=2, text=f"{GRIN}bc"),
        ThinkingDelta(message=FIRST, block=1, at=0, text=GRIN * 3),
        ThinkingDelta(message=FIRST, block=1, at=3, text="e\N{COMBINING ACUTE ACCENT}"),
        ThinkingDelta(message=FIRST, block=1, at=5, text="!"),
        ToolCallDelta(message=FIRST, block=2, at=0, text=f'{{"{GRIN}'),
        ToolCallDelta(message=FIRST, block=2, at=3, text='": 1}'),
    )
    return log


TALK = (
    plain_answer,
    open_message,
    partial_in_mid_message,
    hole_in_at,
    odd_deltas,
    far_block,
    duplicates,
    seq_loss,
    gap,
    stopped_in_mid_message,
    failed_then_well,
    failed_last,
    limited,
    resumed,
    queue_and_withdraw,
    settings,
    marks,
    notices,
    astral_title,
    astral_at,
)
