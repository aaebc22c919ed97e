"""Sessions as lines of text: pure functions from what stood before and what stands now.

Nothing is ever drawn over: what was written stays. A terminal's control characters are shown, never
sent, whoever wrote them.
"""

import re
from typing import Final

import msgspec

from towline.cli.answer import answer_key, invite_answer, open_options
from towline.cli.question import Form, invite
from towline.cli.visible import show_line, show_prose, show_visible
from towline_protocol import (
    Block,
    CallId,
    CallView,
    CommandArtifact,
    EndedTurn,
    Mark,
    MessageId,
    MessageView,
    NoticeView,
    PermissionRequested,
    QuestionAsked,
    SessionView,
    Text,
    Thinking,
    ToolCall,
    Waiting,
    block_text,
    empty_view,
)

__all__ = [
    "HISTORY_ENTRIES",
    "Piece",
    "Screen",
    "ask",
    "echo",
    "paint",
    "paint_history",
    "say",
    "start_line",
]

HISTORY_ENTRIES: Final = 10
"""Entries that are shown of a session that goes on: about a screen full."""
TAIL_LINES: Final = 8
"""Lines of a program's output, or of an error, that are shown."""
SHORT_TAIL_LINES: Final = 3
"""Lines that are shown of what any other call gave."""
LINE_CHARS: Final = 500
"""Characters of one line of output that are shown."""

_ANSI: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[ -/]*[0-~]"
)
_STATUS: Final = {
    "completed": "done",
    "unknown": "unknown: it may or may not have happened",
}
_NOT_REVERTED: Final = 20  # lines about what could not be undone
_VERBS: Final = {"read": "Read", "write": "Write", "exec": "Run", "network": "Fetch"}


class Piece(msgspec.Struct, frozen=True):
    """Text to write as it stands."""

    text: str
    """The text, line ends included."""
    style: str = ""
    """A rich style."""


class Screen(msgspec.Struct, frozen=True, kw_only=True):
    """What has been written."""

    view: SessionView = empty_view()
    """The view it was made from."""
    midline: bool = False
    """Whether the last line has no end yet."""
    call: CallId | None = None
    """The call whose line is the last one, still without an end."""
    written: tuple[tuple[MessageId, str], ...] = ()
    """What stands there of each open message."""


class _Pen:
    """Collects pieces and knows where the line stands."""

    def __init__(self, screen: Screen) -> None:
        self.pieces: list[Piece] = []
        self.midline = screen.midline
        self.call = screen.call

    def text(self, text: str, style: str = "") -> None:
        if text:
            self.call = None
            self.midline = not text.endswith("\n")
            self.pieces.append(Piece(text, style))

    def line(self, text: str, style: str = "") -> None:
        self.fresh()
        self.text(f"{text}\n", style)

    def fresh(self) -> None:
        if self.midline:
            self.text("\n")

    def done(self, screen: Screen, view: SessionView) -> tuple[Screen, tuple[Piece, ...]]:
        screen = msgspec.structs.replace(screen, view=view, midline=self.midline, call=self.call)
        return screen, tuple(self.pieces)


def paint(
    screen: Screen, view: SessionView, *, own: frozenset[str] = frozenset()
) -> tuple[Screen, tuple[Piece, ...]]:
    """Write what is new in a view.

    Args:
        screen: What has been written.
        view: What stands now; it may be any number of events further.
        own: Keys of prompts that stand on the screen already, since they were typed there.

    Returns:
        The screen after it, and what to write.
    """
    pen = _Pen(screen)
    before = screen.view
    shown = {call.call for call in before.calls}
    ended = {call.call: call for call in view.calls if call.call not in shown}
    written = dict(screen.written)
    news = [piece for piece in (*view.messages, *view.notices) if piece.seq > before.seq]
    for piece in sorted(news, key=lambda piece: piece.seq):
        if isinstance(piece, NoticeView):
            pen.line(f"! {show_visible(piece.message)}", "yellow")
        else:
            _entry(pen, piece, written, ended, own)
    for message in view.open_messages:
        written[message.id] = _grow(pen, written.get(message.id, ""), message.content)
    still_open = {message.id for message in view.open_messages}
    for gone in [message for message in written if message not in still_open]:
        if written.pop(gone):
            pen.line("(cut off; it is asked again)", "dim")
    for call in ended.values():
        _call_end(pen, call)
    _calls_started(pen, before, view)
    _people(pen, before, view)
    _small_news(pen, before, view)
    screen = msgspec.structs.replace(screen, written=tuple(written.items()))
    return pen.done(screen, view)


def paint_history(
    view: SessionView, entries: int = HISTORY_ENTRIES
) -> tuple[Screen, tuple[Piece, ...]]:
    """Write the last entries of a session that goes on, and what is going on in it."""
    pen = _Pen(Screen())
    kept = view.messages[-entries:]
    title = show_prose(" ".join((view.title or "").split()))
    facts = (view.session, title, *map(show_line, filter(None, (view.model, view.mode))))
    pen.line(" · ".join(filter(None, facts)), "dim")
    if view.cwd:
        pen.line(f"works in {show_line(view.cwd)}", "dim")
    if view.older or len(kept) < len(view.messages):
        pen.line("… earlier messages are not shown", "dim")
    pen.line("")
    start = kept[0].seq if len(kept) < len(view.messages) or view.older else 0
    asked = {block.id for entry in kept for block in entry.content if isinstance(block, ToolCall)}
    short = msgspec.structs.replace(
        view,
        messages=kept,
        calls=tuple(call for call in view.calls if call.call in asked),
        notices=tuple(notice for notice in view.notices if notice.seq > start),
    )
    screen, pieces = paint(Screen(), short)
    screen = msgspec.structs.replace(screen, view=view)
    return screen, (*pen.pieces, *pieces)


def say(screen: Screen, text: str, style: str = "dim") -> tuple[Screen, tuple[Piece, ...]]:
    """Write a line of one's own."""
    pen = _Pen(screen)
    pen.line(text, style)
    return pen.done(screen, screen.view)


def ask(screen: Screen, text: str) -> tuple[Screen, tuple[Piece, ...]]:
    """Write the start of a line that a person ends."""
    pen = _Pen(screen)
    pen.fresh()
    pen.text(text, "bold")
    return pen.done(screen, screen.view)


def echo(screen: Screen, text: str) -> tuple[Screen, tuple[Piece, ...]]:
    """Write what a person answered in a line that `ask` or a request began."""
    pen = _Pen(screen)
    pen.text(f"{show_visible(text)}\n")
    return pen.done(screen, screen.view)


def start_line(screen: Screen, *, typed: bool) -> tuple[Screen, tuple[Piece, ...]]:
    """Stand at the start of a line.

    Args:
        screen: What has been written.
        typed: Whether a person's Enter has ended the line already.
    """
    pen = _Pen(screen)
    if not typed:
        pen.fresh()
    pen.midline, pen.call = False, None
    return pen.done(screen, screen.view)


def _entry(
    pen: _Pen,
    entry: MessageView,
    written: dict[MessageId, str],
    ended: dict[CallId, CallView],
    own: frozenset[str],
) -> None:
    """One finished entry, and the calls that belong to it."""
    if entry.mark is not None:
        for call in [call for call in ended.values() if call.turn == entry.turn]:
            _call_end(pen, ended.pop(call.call))
        _mark(pen, entry)
    elif entry.role == "user":
        if entry.key is None or entry.key not in own:
            first, *rest = show_prose(block_text(entry.content)).split("\n")
            pen.line("\n".join([f"> {first}", *(f"  {line}" for line in rest)]), "bold")
    else:
        _message_end(pen, entry, written.pop(MessageId(entry.id or ""), ""))
        for block in entry.content:
            if isinstance(block, ToolCall) and block.id in ended:
                _call_end(pen, ended.pop(block.id))


def _message_end(pen: _Pen, entry: MessageView, before: str) -> None:
    if not _flat(entry.content).startswith(before):
        pen.line("(corrected:)", "dim")
        before = ""
    _grow(pen, before, entry.content)
    pen.fresh()
    if entry.cut is not None:
        pen.line(f"(cut: {show_line(entry.cut)})", "dim")


def _grow(pen: _Pen, before: str, content: tuple[Block, ...]) -> str:
    """Write what content has more than `before`; gives what stands there then."""
    now = _flat(content)
    if not now.startswith(before):
        return before  # its end will tell the truth
    if len(now) > len(before) and (not before or pen.call is not None):
        pen.fresh()
    skip = len(before)
    for segment in _segments(content):
        if skip < len(segment.text):
            pen.text(show_prose(segment.text[skip:]), segment.style)
        skip = max(0, skip - len(segment.text))
    return now


def _segments(content: tuple[Block, ...]) -> list[Piece]:
    segments: list[Piece] = []
    for block in content:
        match block:
            case Text(text=text) if text.lstrip("\n"):
                piece = Piece(text.lstrip("\n"))
            case Thinking(text=text) if text.lstrip("\n"):
                piece = Piece("(thinking) " + text.lstrip("\n"), "dim italic")
            case _:
                continue
        if segments:
            segments.append(Piece("\n\n"))
        segments.append(piece)
    return segments


def _flat(content: tuple[Block, ...]) -> str:
    return "".join(segment.text for segment in _segments(content))


def _mark(pen: _Pen, entry: MessageView) -> None:
    assert entry.mark is not None
    words = show_visible(entry.mark.text)
    match entry.mark.kind:
        case "turn_failed":
            pen.line(f"✗ Failed: {words}", "red")
        case "turn_cancelled":
            pen.line(f"■ Stopped: {words}", "yellow")
        case "turn_limited":
            pen.line(f"■ Ended early: {words}", "yellow")
        case "closed":
            pen.line(f"■ The session is closed: {words}", "yellow")
        case "reverted":
            pen.line("· undone", "dim")
        case "files_reverted":
            _files_reverted(pen, entry.mark)
        case kind:
            pen.line(f"· {show_line(kind)}: {words}", "dim")


def _files_reverted(pen: _Pen, mark: Mark) -> None:
    pen.line(f"· {len(mark.files)} paths were put back", "dim")
    for words in mark.not_reverted[:_NOT_REVERTED]:
        pen.line(f"  not undone: {_one_line(words)}", "yellow")
    if len(mark.not_reverted) > _NOT_REVERTED:
        pen.line(f"  … and {len(mark.not_reverted) - _NOT_REVERTED} more", "dim")


def _title(call: CallView) -> str:
    title = _one_line(call.title)
    if title != show_line(call.tool):
        return title
    return f"{_VERBS.get(call.effect, 'Use')} {title}"


def _one_line(title: str) -> str:
    """A title in one line; what is hidden is spelled out before it could pass for a space."""
    return " ".join(show_visible(title).split())


def _calls_started(pen: _Pen, before: SessionView, view: SessionView) -> None:
    running = {call.call for call in before.open_calls if call.status == "in_progress"}
    for call in view.open_calls:
        if call.status == "in_progress" and call.call not in running:
            pen.fresh()
            pen.text(f"● {_title(call)}", "cyan")
            pen.call = call.call


def _call_end(pen: _Pen, call: CallView) -> None:
    if pen.call != call.call:
        pen.fresh()
        pen.text(f"● {_title(call)}", "cyan")
    facts = [_STATUS.get(call.status, show_line(call.status))]
    command = next((a for a in call.artifacts if isinstance(a, CommandArtifact)), None)
    if command is not None and command.exit_code:
        facts.append(f"exit {command.exit_code}")
    if call.duration_ms:
        facts.append(_duration(call.duration_ms))
    well = call.status == "completed" and not call.is_error
    pen.text("".join(f" · {fact}" for fact in facts) + "\n", "dim" if well else "red")
    if call.status == "denied":
        return  # why stands above
    output = command.output if command is not None and command.output else block_text(call.content)
    most = TAIL_LINES if call.effect == "exec" or not well else SHORT_TAIL_LINES
    _tail(pen, output, most)


def _tail(pen: _Pen, output: str, most: int) -> None:
    lines = _clean(output).split("\n")
    if len(lines) > most:
        pen.line(f"  │ … {len(lines) - most} more above", "dim")
    for line in lines[-most:]:
        cut = line if len(line) <= LINE_CHARS else f"{line[:LINE_CHARS]}…"
        if line or len(lines) > 1:
            pen.line(f"  │ {cut}", "dim")


def _clean(output: str) -> str:
    """A program's output without colours and without what it has written over."""
    plain = _ANSI.sub("", output).replace("\r\n", "\n").strip("\n")
    lines = (line.rstrip("\r").rpartition("\r")[2] for line in plain.split("\n"))
    return show_prose("\n".join(lines))


def _people(pen: _Pen, before: SessionView, view: SessionView) -> None:
    """Permission requests and questions: asked, and resolved."""
    known = {request.permission for request in before.permissions}
    still_open = {request.permission for request in view.permissions}
    for request in before.permissions:
        if request.permission not in still_open:
            _resolved(pen, request, view)
    for request in view.permissions:
        if request.permission not in known:
            _permission(pen, request)
    asked = {question.question for question in before.questions}
    still_asked = {question.question for question in view.questions}
    if asked - still_asked:
        pen.line("→ the question is settled", "dim")
    for question in view.questions:
        if question.question not in asked:
            _question(pen, question)


def _permission(pen: _Pen, request: PermissionRequested) -> None:
    pen.line(f"? {_one_line(request.title)}", "bold yellow")
    if request.reason:
        pen.line(f"  reason: {show_line(request.reason)}", "dim")
    pen.line(f"  {show_line(request.preview.kind)}:", "dim")
    for line in show_visible(request.preview.text).split("\n"):
        pen.line(f"  │ {line}")
    if request.preview.truncated:
        pen.line("  │ … and more that is not shown: it can only be denied", "red")
    for option in request.options:
        rule = f" (stores the rule {show_line(option.rule)})" if option.rule else ""
        barred = option not in open_options(request)
        label = f"  {answer_key(request, option)} {show_line(option.label)}{rule}"
        pen.line(f"{label} (not possible)" if barred else label, "dim" if barred else "")
    pen.text(f"  Answer ({show_line(invite_answer(request))}): ", "bold")


def _resolved(pen: _Pen, request: PermissionRequested, view: SessionView) -> None:
    for call in (*view.open_calls, *view.calls):
        if call.call == request.call and call.decision is not None:
            labels = {option.id: option.label for option in request.options}
            label = labels.get(call.decision.option, call.decision.option)
            pen.line(f"→ {show_line(label)} (by {show_line(call.decision.by)})", "dim")
            return
    pen.line("→ not asked any more", "dim")


def _question(pen: _Pen, question: QuestionAsked) -> None:
    for item in question.items:
        pen.line(f"? {show_visible(item.prompt)}", "bold yellow")
        for number, option in enumerate(item.options, 1):
            pen.line(f"  {number} {show_line(option.label)}")
    pen.text(invite(Form(question)), "bold")


def _waiting(waiting: Waiting) -> str:
    known = {
        "model_loading": "waiting for the model to be fetched and loaded",
        "slot": "waiting for the model: another session uses it",
        "reading": "the model reads what was said",
        "retry": "the provider did not answer; trying again",
    }
    until = waiting.until[11:19]
    return known.get(waiting.reason, f"waiting until {until} ({show_line(waiting.reason)})")


def _small_news(pen: _Pen, before: SessionView, view: SessionView) -> None:
    if view.waiting is not None and view.waiting != before.waiting:
        pen.line(f"… {_waiting(view.waiting)}", "dim")
    last = view.last_turn
    if last is not None and (before.last_turn is None or last.id != before.last_turn.id):
        if last.outcome == "completed":
            pen.line(_spent(last), "dim")
        pen.line("")


def _spent(turn: EndedTurn) -> str:
    usage = turn.usage
    read = usage.input + usage.cache_read + usage.cache_write
    cost = f" · ${turn.cost:.4f}" if turn.cost else ""
    return f"· {read:,} tokens in, {usage.output:,} out{cost}"


def _duration(ms: int) -> str:
    if ms < 1000:
        return f"{ms} ms"
    if ms < 60_000:
        return f"{ms / 1000:.1f} s"
    return f"{ms // 60_000} min {ms // 1000 % 60} s"
