"""A lane of servers for the crash tests: each order, one line on stdin, is served by a new process.

The modules are imported once and each server is forked from that, so that a start costs
milliseconds; what a server has imported late when it is ready, the lane imports for the next ones.
Such a process is as mortal as any: it kills itself where its order says. An order is
answered by the server's `ready` line and, when it is gone, by an `ended` line.

The server is the real `serve()`, with a model that answers by what it is told, and tools that
leave marks outside the store. Wherever it can be killed it passes a place with a name of its own. A
server with `trace` writes these names down: so a run that nothing disturbs tells all places.
"""

import asyncio
import contextlib
import functools
import importlib
import os
import re
import select
import signal
import sqlite3
import sys
import traceback
from collections.abc import Callable, Sequence, Set
from pathlib import Path
from typing import Any, Final

import msgspec

from towline_agent import (
    Model,
    Piece,
    Request,
    StepAnswer,
    TextPiece,
    Tool,
    ToolContext,
    Toolset,
    builtin_tools,
    tool,
)
from towline_agent.testing import call, say
from towline_protocol import Block, Message, Text, ToolCall, ToolResult, Usage, block_text
from towline_server import DEFAULT_AGENT, AgentSpec, Config, Connection, Ready, serve
from towline_server.store.records import Append

HELPER: Final = "helper"
"""The agent that the one agent may hand tasks to."""


class Order(msgspec.Struct, kw_only=True):
    """What one server does."""

    folder: str
    """Holds the store, and `marks` with a line for each time that a tool acted."""
    port: int
    """The port to listen at, or one of the next."""
    root: str = ""
    """Another folder that its sessions may work in: those of a copied store began elsewhere."""
    mode: str = "auto"
    """The mode of new sessions."""
    sandbox: str = "auto"
    """Where programs run."""
    kill: str = ""
    """The place where it kills itself; empty for never."""
    inside: int = 0
    """It kills itself at the place of this number among those in answers and tools; 0 for never."""
    trace: bool = False
    """Whether it notes the places that it passes in the file `places`."""
    watch: str = "events"
    """Which places it names beside those in the model and in tools: `events`, `before` and `after`
    the commit of each by its number; `writes`, each commit since there was a file `armed`; `start`,
    all it does with its folder and its store until it is ready; `files`, each change of a name in
    a project."""


class Line(msgspec.Struct, kw_only=True, omit_defaults=True):
    """What the lane says."""

    word: str
    """`ready` or `ended`."""
    pid: int
    """The server's process."""
    url: str = ""
    """Its address."""
    code: str = ""
    """A one-time code."""
    token: str = ""
    """The token of programs of this user."""
    status: int = 0
    """How it ended: its exit code, or the signal below zero."""


class Fate:
    """Kills the process where its order says."""

    def __init__(self, order: Order) -> None:
        self._order = order
        self._folder = Path(order.folder)
        self._places: int | None = None
        if order.trace:
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
            self._places = os.open(self._folder / "places", flags, 0o600)
        self._inside = 0
        self._writes = 0
        self._starts = 0
        self._starting = order.watch == "start"
        if self._starting:
            sys.addaudithook(self._audit)
            connect = functools.partial(sqlite3.connect, factory=self._watched())
            setattr(sqlite3, "connect", connect)  # noqa: B010 - of a process that serves one order
        self._names = 0
        if order.watch == "files":
            sys.addaudithook(self._audit_names)

    def meet(self, place: str) -> None:
        """Pass a place, if that is meant to be."""
        if self._places is not None:
            os.write(self._places, f"{place}\n".encode())
        if place == self._order.kill:
            os.kill(os.getpid(), signal.SIGKILL)

    def meet_inside(self, place: str) -> None:
        """Pass a place in an answer or in a tool."""
        self._inside += 1
        if self._inside == self._order.inside:
            os.kill(os.getpid(), signal.SIGKILL)
        self.meet(place)

    def on_commit(self, phase: str, appends: tuple[Append, ...]) -> None:
        """Pass the places of a commit."""
        if self._order.watch == "events":
            for append in appends:
                for row in append.rows:
                    self.meet(f"{phase} {row.seq}")
        elif self._order.watch == "writes" and (self._folder / "armed").exists():
            self._writes += phase == "before"
            self.meet(f"{phase} write {self._writes}")

    def on_ready(self) -> None:
        """The start is over."""
        self._starting = False

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event in _FILES and str(arguments[0]).startswith(str(self._folder)):
            path = Path(arguments[0]).relative_to(self._folder)
            self._begin(f"{event} {path}")

    def _audit_names(self, event: str, arguments: tuple[Any, ...]) -> None:
        place = _NAMES.get(event)
        if place is not None and arguments[place] != -1:  # beside an open folder, as edits do
            self._names += 1
            self.meet(f"name {self._names}")

    def _watched(self) -> type[sqlite3.Connection]:
        begin = self._begin

        class Watched(sqlite3.Connection):
            """Passes a place before each statement."""

            def execute(self, sql: str, parameters: Any = (), /) -> sqlite3.Cursor:
                begin(" ".join(sql.split())[:40])
                return super().execute(sql, parameters)

        return Watched

    def _begin(self, what: str) -> None:
        if self._starting:
            self._starts += 1
            self.meet(f"start {self._starts}: {what}")


_FILES: Final = ("open", "os.mkdir", "os.remove", "os.rename")
_NAMES: Final = {"os.rename": 2, "os.link": 2, "os.remove": 1, "os.mkdir": 2, "os.rmdir": 1}
"""Which argument of each is the open folder; -1 for none."""


class Echo:
    """A model whose answer depends on the conversation alone.

    Asked for `everything`, to `mark WORD`, `run COMMAND` or `patch PATCH` it calls tools; asked to
    `tell` it talks for long; it repeats what tools told it, what was said meanwhile (that begins
    with `also`), and all else that it is told.
    """

    model = Model(provider="scripted", id="echo")

    def __init__(self, fate: Fate) -> None:
        self._fate = fate

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepAnswer:
        """Answer, in two pieces."""
        _check_pairs(request.messages)
        opening, since = _since_opening(request.messages)
        number = sum(message.role == "assistant" for message in since)
        answer = _answer(opening, number, since)
        for place, block in enumerate(answer.content):
            if isinstance(block, Text):
                first, *rest = _pieces(block.text)
                on_piece(TextPiece(place, first))
                await asyncio.sleep(0)
                self._fate.meet_inside(f"answer {number} to {opening.partition(' ')[0]!r}")
                for piece in rest:
                    on_piece(TextPiece(place, piece))
                    await asyncio.sleep(0)
        return answer

    async def models(self) -> tuple[str, ...]:
        """Its one model."""
        return (self.model.id,)

    async def aclose(self) -> None:
        """Nothing to let go."""


def _pieces(text: str) -> list[str]:
    """Two halves, or the words of a long talk."""
    middle = len(text) // 2
    if not text.startswith("Long ago"):
        return [text[:middle], text[middle:]]
    return re.findall(r"\w+\W*", text)


def _check_pairs(messages: Sequence[Message]) -> None:
    """What reaches a model pairs each call with one result (C5.7); else its turn fails."""
    blocks = [block for message in messages for block in message.content]
    called = [block.id for block in blocks if isinstance(block, ToolCall)]
    told = [block.call for block in blocks if isinstance(block, ToolResult)]
    if sorted(called) != sorted(told) or len(set(called)) < len(called):
        raise RuntimeError(f"The calls {called!r} have the results {told!r}.")


def _since_opening(messages: Sequence[Message]) -> tuple[str, Sequence[Message]]:
    for place in reversed(range(len(messages))):
        text = block_text(messages[place].content)
        if messages[place].role == "user" and not text.startswith("also"):
            return text, messages[place + 1 :]
    return "", messages


def _answer(opening: str, number: int, since: Sequence[Message]) -> StepAnswer:
    word, _, rest = opening.partition(" ")
    if word == "tell":
        return say("Long ago there was a line that nobody could cut. " * int(rest))
    rounds = _ROUNDS.get(word, _none)(rest)
    if number < len(rounds):
        calls = [block for answer in rounds[number] for block in answer.content]
        content: tuple[Block, ...] = (Text(text="I see to it."), *calls)
        return StepAnswer(content=content, stop_reason="tool_calls", usage=Usage(input=1, output=1))
    blocks = [block for message in since for block in message.content]
    told = [block_text(block.content) for block in blocks if isinstance(block, ToolResult)]
    also = [block_text(message.content) for message in since if message.role == "user"]
    first = f"It told me: {' '.join(told)}" if rounds else opening
    return say(" ".join((first, *also)))


_Rounds = list[list[StepAnswer]]


def _patch(rest: str) -> _Rounds:
    """Read what a patch updates, then apply it."""
    paths = re.findall(r"\*\*\* Update File: (.*)", rest)
    return [[call("read_file", path=path) for path in paths], [call("apply_patch", patch=rest)]]


def _none(rest: str) -> _Rounds:
    del rest
    return []


def _everything(rest: str) -> _Rounds:
    """Tools of each kind at once, the second `mark` by the rule that the first one left; then what
    waits for a person and for a client."""
    del rest
    parallel = [call("look"), call("mark", word="one"), call("mark", word="two"), call("put")]
    items = [{"prompt": "Which way?", "options": ["left", "right"]}]
    return [parallel, [call("ask_user", items=items), call("ring")]]


_ROUNDS: Final[dict[str, Callable[[str], _Rounds]]] = {
    "everything": _everything,
    "mark": lambda rest: [[call("mark", word=rest)]],
    "put": lambda _: [[call("look"), call("put")]],
    "ask": lambda rest: [[call("ask_user", items=[{"prompt": rest}])]],
    "ring": lambda _: [[call("ring")]],
    "spawn": lambda _: [
        [call("spawn_agent", prompt=task, agent=HELPER) for task in ("mark child", "put")]
    ],
    "run": lambda rest: [[call("run_program", command=rest)]],
    "patch": _patch,
}


def _tools(fate: Fate, folder: Path) -> tuple[Tool, ...]:
    def act(context: ToolContext, name: str, word: str) -> str:
        fate.meet_inside(f"{name}: enter")
        with (folder / "marks").open("a", encoding="utf-8") as file:
            file.write(f"{word} {context.call}\n")
        fate.meet_inside(f"{name}: acted")
        return word

    @tool(name="mark", subject=lambda _: "any")
    async def mark(context: ToolContext, word: str) -> str:
        """Leave a mark that outlives the server."""
        context.output("marking")
        return f"marked {act(context, f'mark {word}', word)}"

    @tool(name="look", effect="read")
    async def look(context: ToolContext) -> str:
        """Only look."""
        return act(context, "look", "looked")

    @tool(name="put", effect="own", idempotent=True)
    async def put(context: ToolContext) -> str:
        """Do what may be done twice."""
        return act(context, "put", "put")

    return mark, look, put


async def _serve(order: Order, on_ready: Callable[[], None]) -> None:
    fate = Fate(order)
    folder = Path(order.folder)

    async def connect(model: str) -> Connection:
        del model
        return Connection(Echo(fate))

    def ready(server: Ready) -> None:
        fate.on_ready()
        on_ready()
        _say(
            Line(
                word="ready", pid=os.getpid(), url=server.url, code=server.code, token=server.token
            )
        )

    await serve(
        Config(
            data_dir=folder / "data",
            port=order.port,
            roots=(folder, *([Path(order.root)] if order.root else [])),
            mode=order.mode,
            sandbox=order.sandbox,
            permission_window_s=120.0,
        ),
        agents={
            DEFAULT_AGENT: AgentSpec(
                name=DEFAULT_AGENT,
                tools=Toolset([*_tools(fate, folder), *builtin_tools()]),
                agents=(HELPER,),
            ),
            HELPER: AgentSpec(name=HELPER, tools=Toolset(_tools(fate, folder)), hidden=True),
        },
        connect=connect,
        default_model=Echo.model.name,
        version="0.0.0",
        on_ready=ready,
        on_commit=fate.on_commit,
        run_file=folder / "run.json" if order.watch == "start" else None,
        grace_s=1.0,
    )


_PIPE_BYTES: Final = 65536
"""What a pipe holds; the names are some 8,000."""


def _say(line: Line) -> None:
    os.write(1, msgspec.json.encode(line) + b"\n")


def _serve_and_leave(order: Order, learned: int, known: Set[str]) -> None:
    """The forked process: it must never come back into the lane's loop."""

    def tell() -> None:
        os.write(learned, " ".join(sys.modules.keys() - known).encode())

    status = 1
    try:
        asyncio.run(_serve(order, tell))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    """Serve one order after the other until stdin ends."""
    while text := sys.stdin.readline():
        order = msgspec.json.decode(text, type=Order)
        learning, learned = os.pipe()
        known = frozenset(sys.modules)
        pid = os.fork()
        if pid == 0:
            _serve_and_leave(order, learned, known)
        _, status = os.waitpid(pid, 0)
        if select.select([learning], [], [], 0)[0]:
            _load(os.read(learning, _PIPE_BYTES).decode().split())
        os.close(learning)
        os.close(learned)
        _say(Line(word="ended", pid=pid, status=os.waitstatus_to_exitcode(status)))


def _load(names: Sequence[str]) -> None:
    """Import what a server had to import late, so that the next ones need not: most of a start."""
    for name in sorted(names):
        with contextlib.suppress(ImportError):  # some make modules that lie in no file
            importlib.import_module(name)


if __name__ == "__main__":
    main()
