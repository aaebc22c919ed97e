"""Vectors of reverts, compactions, sub-agents and of what a card shows."""

from script import MODEL, Script

from towline_protocol import (
    AudioArtifact,
    CallId,
    CommandArtifact,
    Compacted,
    Context,
    FileConflict,
    FilesReverted,
    HttpArtifact,
    ImageArtifact,
    MessageEnded,
    MessageId,
    Notice,
    PageArtifact,
    Parent,
    Process,
    PromptDelivered,
    Reverted,
    SearchArtifact,
    SearchItem,
    SessionId,
    StepEnded,
    StepStarted,
    Text,
    ToolCall,
    ToolEnded,
    ToolProgress,
    ToolProposed,
    ToolStarted,
    TranscriptArtifact,
    TurnCompleted,
    TurnId,
    TurnResumed,
    Usage,
    Waiting,
)

__all__ = ["MARKS"]

CALL = CallId("call_1")
OTHER = CallId("call_2")
FIRST = MessageId("msg_1")
CHILD = SessionId("ses_child")
USAGE = Usage(input=100, output=20)


def _turn(log: Script, number: int) -> None:
    """A prompt, an answer, the end."""
    log.ask(f"Question {number}", number)
    log.stored(
        MessageEnded(message=MessageId(f"msg_{number}"), content=(Text(text=f"Answer {number}"),))
    )
    log.end(TurnCompleted(stop_reason="end_turn", usage=USAGE, cost=0.0))


def _propose(log: Script, call: CallId, tool: str = "spawn_agent") -> None:
    log.stored(
        ToolProposed(call=call, tool=tool, arguments="{}", title="Look into it", effect="own")
    )


def reverted() -> Script:
    """Back to before the second of three turns, and on from there."""
    log = Script(
        "reverted",
        "All that was said from a turn on is undone, marks too; what comes after the mark is not.",
        "D6",
    )
    _turn(log, 1)
    _turn(log, 2)
    log.ask("Question 3", 3)
    log.end(TurnCompleted(stop_reason="max_steps", usage=USAGE))
    log.stored(
        Reverted(to_turn=TurnId("trn_2"), files=("a.txt", "b.txt"), not_reverted=("c.txt: gone",))
    )
    _turn(log, 4)
    return log


def reverted_twice() -> Script:
    """A branch that was undone stays so, whatever is undone later."""
    log = Script(
        "reverted_twice",
        "A second revert undoes what was said since; one to a turn that is undone, or that nobody "
        "knows, undoes nothing more.",
    )
    _turn(log, 1)
    _turn(log, 2)
    log.stored(Reverted(to_turn=TurnId("trn_2")))
    _turn(log, 3)
    _turn(log, 4)
    log.stored(Reverted(to_turn=TurnId("trn_4")))
    _turn(log, 5)
    log.stored(Reverted(to_turn=TurnId("trn_2")), Reverted(to_turn=TurnId("trn_unknown")))
    return log


def reverted_beyond() -> Script:
    """Back to a turn that began before all that the view holds."""
    log = Script(
        "reverted_beyond",
        "A revert to a turn of which the view holds nothing any more undoes all that it holds; "
        "what comes after it is not undone by one to a turn that is.",
    )
    for number in range(1, 104):
        _turn(log, number)
    log.stored(Reverted(to_turn=TurnId("trn_1")))
    _turn(log, 104)
    log.stored(Reverted(to_turn=TurnId("trn_50")))
    return log


def files_reverted() -> Script:
    """Files put back while the conversation stays, and with it."""
    log = Script(
        "files_reverted",
        "Files that were put back are a mark of their own, with what was left alone and what could "
        "not be undone; what was said stays, unless the conversation goes back too.",
        "A5.74",
        "A5.75",
    )
    _turn(log, 1)
    _turn(log, 2)
    log.stored(FilesReverted(turn=TurnId("trn_2"), files=("a.txt",)))
    _turn(log, 3)
    log.stored(
        Reverted(to_turn=TurnId("trn_2")),
        FilesReverted(
            turn=TurnId("trn_2"),
            files=("a.txt", "b/c.txt"),
            conflicts=(FileConflict(path="d.txt", what="it was changed since"),),
            unkept=("command: make",),
        ),
    )
    return log


def compacted() -> Script:
    """Made to fit by a summary, within a turn and between turns."""
    log = Script(
        "compacted",
        "A compaction says how full the window is then; what a summary cost counts, and what it "
        "used too, unless the turn counts it.",
        "D6",
    )
    log.ask("Long")
    log.stored(
        Compacted(cut=(CALL,), before_tokens=9000, after_tokens=8000),
        StepStarted(model=MODEL),
        StepEnded(
            stop_reason="end_turn",
            usage=USAGE,
            cost=0.5,
            context=Context(used=7000, window=8192),
        ),
        Compacted(
            upto="pmt_1",
            summary="They talked.",
            before_tokens=7000,
            after_tokens=300,
            model=MODEL,
            usage=USAGE,
            cost=0.25,
        ),
    )
    log.end(TurnCompleted(stop_reason="end_turn", usage=USAGE + USAGE, cost=0.75))
    log.stored(
        Compacted(
            upto="pmt_1",
            summary="They talked long.",
            before_tokens=400,
            after_tokens=200,
            usage=USAGE,
            cost=0.125,
        )
    )
    return log


def compacted_unpriced() -> Script:
    """A summary whose price nobody knows."""
    log = Script("compacted_unpriced", "The cost of all is unknown when that of one part is.")
    log.begin()
    log.stored(Compacted(before_tokens=9000, after_tokens=300, summary="So far.", usage=USAGE))
    log.stored(
        Compacted(before_tokens=300, after_tokens=200, summary="So.", usage=USAGE, cost=0.5),
        StepEnded(stop_reason="end_turn", usage=USAGE, cost=0.5),
    )
    return log


def sub_agents() -> Script:
    """Two agents at work for one."""
    log = Script(
        "sub_agents",
        "The card of a call that another agent does leads to that agent's session and shows how "
        "far it is; the link stays when it has ended.",
        "D5",
    )
    log.ask("Have it looked into")
    log.stored(
        MessageEnded(
            message=FIRST,
            content=(
                ToolCall(id=CALL, name="spawn_agent", arguments="{}"),
                ToolCall(id=OTHER, name="spawn_agent", arguments="{}"),
            ),
        )
    )
    _propose(log, CALL)
    _propose(log, OTHER)
    log.stored(ToolStarted(call=CALL, child=CHILD), ToolStarted(call=OTHER))
    log.live(
        ToolProgress(call=CALL, text="Reading", fraction=0.25),
        ToolProgress(call=OTHER, text="Thinking"),
    )
    log.stored(
        ToolStarted(call=OTHER, child=SessionId("ses_other")),
        ToolStarted(call=OTHER, process=Process(pid=7, group=7, started="1")),
        ToolEnded(
            call=CALL,
            status="completed",
            content=(Text(text="Found it."),),
            usage=Usage(input=900, output=90),
            cost=0.25,
        ),
    )
    log.live(ToolProgress(call=OTHER, text="Writing", fraction=0.75))
    return log


def sub_agent_unpriced() -> Script:
    """An agent whose model has no price."""
    log = Script(
        "sub_agent_unpriced",
        "What a sub-agent cost counts in the session's cost, which is unknown once that is.",
        "D5",
    )
    log.ask("Have it looked into")
    _propose(log, CALL)
    _propose(log, OTHER)
    used = Usage(input=10)
    for call, cost in ((CALL, None), (OTHER, 0.5)):
        log.stored(ToolEnded(call=call, status="failed", content=(), usage=used, cost=cost))
    return log


def sub_agent_itself() -> Script:
    """The session of an agent that works for another one."""
    log = Script("sub_agent_itself", "A sub-agent's session names what it works for.", "D5")
    log.begin(parent=Parent(session=SessionId("ses_parent"), call=CALL))
    _turn(log, 1)
    return log


def artifacts() -> Script:
    """What calls make and find."""
    log = Script("artifacts", "Artifacts of all kinds are kept as they came.", "C1.10")
    log.ask("Everything")
    _propose(log, CALL, "everything")
    log.stored(
        ToolEnded(
            call=CALL,
            status="completed",
            content=(Text(text="All of it."),),
            artifacts=(
                ImageArtifact(file="a" * 64, media_type="image/png"),
                SearchArtifact(
                    query="moon",
                    items=(SearchItem(title="Moon", url="https://moon.example", snippet="far"),),
                    truncated=True,
                ),
                SearchArtifact(query="nothing"),
                PageArtifact(url="https://moon.example", status=200, truncated=True),
                HttpArtifact(url="https://moon.example/api", status=404),
                CommandArtifact(command="sleep 9", output="tail"),
                AudioArtifact(file="b" * 64, duration_ms=1500),
                TranscriptArtifact(text="Hello.", language="en"),
                SearchArtifact(query="moon", error_code="rate_limited"),
            ),
        )
    )
    return log


def waits() -> Script:
    """A turn waits, and goes on."""
    log = Script(
        "waits",
        "A wait stands until the next stored event; what is not stored does not end it.",
    )
    log.ask("Slowly")
    _propose(log, CALL)
    log.stored(
        ToolStarted(call=CALL),
        Waiting(until="2026-01-31T09:05:00.000Z", reason="rate_limit"),
        Notice(code="slow", message="The provider is slow."),
        Waiting(until="2026-01-31T09:06:00.000Z", reason="rate_limit"),
    )
    log.live(ToolProgress(call=CALL, text="still here"))
    return log


def outside_of_turns() -> Script:
    """Events of turns that nobody opened."""
    log = Script(
        "outside_of_turns",
        "Events of a turn that did not begin here change no turn, and a prompt is delivered once.",
    )
    log.begin()
    prompt = log.prompt(1, " \n ")
    log.stored(
        TurnResumed(attempt=1),
        StepStarted(model=MODEL),
        PromptDelivered(prompt=prompt, turn=TurnId("trn_1"), how="started"),
        PromptDelivered(prompt=prompt, turn=TurnId("trn_1"), how="started"),
    )
    log.raw_event(
        {"type": "turn_started", "prompt": prompt, "model": MODEL, "limits": {"max_steps": 1}}
    )
    return log


MARKS = (
    reverted,
    reverted_twice,
    reverted_beyond,
    files_reverted,
    compacted,
    compacted_unpriced,
    sub_agents,
    sub_agent_unpriced,
    sub_agent_itself,
    artifacts,
    waits,
    outside_of_turns,
)
