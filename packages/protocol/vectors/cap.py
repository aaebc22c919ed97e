"""Vectors of every cap, at its edge, with characters outside the first plane (C1.12)."""

from script import Script

from towline_protocol import (
    CallId,
    FileChange,
    FilesChanged,
    MessageId,
    MessageStarted,
    Notice,
    SessionUpdated,
    Text,
    TextDelta,
    ToolEnded,
    ToolOutputDelta,
    ToolProposed,
    ToolStarted,
)

__all__ = ["CAPS"]

CALL = CallId("call_1")
FIRST = MessageId("msg_1")
GRIN = "\N{GRINNING FACE}"


def _run(log: Script) -> None:
    log.ask("Run it")
    log.stored(
        ToolProposed(call=CALL, tool="run", arguments="{}", title="Run", effect="exec"),
        ToolStarted(call=CALL),
    )


def title_at_the_edge() -> Script:
    """Just as many characters as a title may have."""
    log = Script("title_at_the_edge", "60 code points are a whole title.", "C1.12")
    log.begin()
    log.prompt(1, GRIN * 59 + "!")
    return log


def title_given_later() -> Script:
    """A title of one's own in place of a cut one."""
    log = Script("title_given_later", "A title that somebody gave is whole.")
    log.begin()
    log.prompt(1, "word " * 20)
    log.stored(SessionUpdated(mode="auto"), SessionUpdated(title="Words"))
    log.prompt(2, "more " * 20)
    return log


def output_at_the_edge() -> Script:
    """Just as much output as a view holds, then one character more, then a partial too long."""
    log = Script(
        "output_at_the_edge", "8,192 code points of output are whole; then the head goes.", "C1.12"
    )
    _run(log)
    log.live(
        ToolOutputDelta(call=CALL, at=0, text=GRIN * 8191),
        ToolOutputDelta(call=CALL, at=8191, text="a"),
        ToolOutputDelta(call=CALL, at=8192, text=f"b{GRIN}"),
        ToolOutputDelta(call=CALL, at=8193, text=f"{GRIN}c"),
    )
    return log


def output_of_a_piece() -> Script:
    """One piece that is longer than the cap."""
    log = Script("output_of_a_piece", "A piece longer than the cap leaves its tail.", "C1.12")
    _run(log)
    log.live(
        ToolOutputDelta(call=CALL, at=0, text=f"head{GRIN}" * 2 + f"{GRIN}x" * 4096),
        ToolOutputDelta(call=CALL, at=8202, text="end"),
    )
    return log


def long_diffs() -> Script:
    """Diffs at the cap and over it."""
    log = Script(
        "long_diffs",
        "A view holds 16,384 code points of a diff and says that more is there.",
        "C1.12",
    )
    _run(log)
    log.stored(
        FilesChanged(
            call=CALL,
            changes=(
                FileChange(path="edge.txt", kind="changed", diff=GRIN * 16_383 + "!"),
                FileChange(path="over.txt", kind="changed", diff=GRIN * 16_384 + "!"),
                FileChange(path="none.txt", kind="moved"),
            ),
        ),
        ToolEnded(call=CALL, status="completed", content=(Text(text="ok"),)),
    )
    return log


def many_changes() -> Script:
    """More files than a card shows."""
    log = Script("many_changes", "A view holds 100 changed files of a call and says if more are.")
    _run(log)
    for start in (0, 60, 90, 100):
        changes = tuple(
            FileChange(path=f"{number}.txt", kind="created") for number in range(start, start + 30)
        )
        log.stored(FilesChanged(call=CALL, changes=changes))
    return log


def notices_at_the_edge() -> Script:
    """Just as many notices as a view holds."""
    log = Script("notices_at_the_edge", "20 notices are all of them.")
    log.begin()
    log.stored(*(Notice(code=f"n{n}", message=f"{GRIN} {n}.") for n in range(20)))
    return log


def last_block() -> Script:
    """The last block that a message may have."""
    log = Script("last_block", "1,024 blocks are not too many.", "C1.12")
    log.ask("Many")
    log.stored(MessageStarted(message=FIRST, role="assistant"))
    log.live(TextDelta(message=FIRST, block=1023, at=0, text=GRIN))
    return log


CAPS = (
    title_at_the_edge,
    title_given_later,
    output_at_the_edge,
    output_of_a_piece,
    long_diffs,
    many_changes,
    notices_at_the_edge,
    last_block,
)
