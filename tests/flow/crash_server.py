"""A lane of servers for the crash tests: each order, one line on stdin, is served by a new process.

The modules are imported once and each server is forked from that, so that a start costs
milliseconds. Such a process is as mortal as any: it kills itself where its order says. An order is
answered by the server's `ready` line and, when it is gone, by an `ended` line.
"""

import asyncio
import os
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

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
from towline_protocol import Message, Text, ToolResult, Usage, block_text
from towline_server import DEFAULT_AGENT, AgentSpec, Config, Connection, Ready, serve
from towline_server.store.records import Append


class Order(msgspec.Struct, kw_only=True):
    """What one server does."""

    folder: str
    """Holds the store, and `marks` with a line for each time that the tool acted."""
    port: int
    """The port to listen at, or one of the next."""
    mode: str = "auto"
    """The mode of new sessions."""
    kill: str = ""
    """When it kills itself: `before` or `after` the commit of event `seq`; at `enter`, where the
    tool has not acted yet, or at `acted`, where it has; empty for never."""
    seq: int = 0
    """The event."""


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
    status: int = 0
    """How it ended: its exit code, or the signal below zero."""


class Echo:
    """A model whose answer depends on the conversation alone.

    Asked to `mark WORD` or to `run COMMAND` it calls a tool; it repeats what a tool told it, and
    all else that it is told.
    """

    model = Model(provider="scripted", id="echo")

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepAnswer:
        answer = _answer(request.messages[-1])
        for place, block in enumerate(answer.content):
            if isinstance(block, Text):
                middle = len(block.text) // 2
                for text in (block.text[:middle], block.text[middle:]):
                    on_piece(TextPiece(place, text))
                    await asyncio.sleep(0)
        return answer

    async def models(self) -> tuple[str, ...]:
        return (self.model.id,)

    async def aclose(self) -> None:
        pass


def _answer(last: Message) -> StepAnswer:
    told = [block_text(b.content) for b in last.content if isinstance(b, ToolResult)]
    if told:
        return say(f"It told me: {' '.join(told)}")
    text = block_text(last.content)
    word, _, rest = text.partition(" ")
    if word == "mark":
        asked = call("mark", word=rest)
    elif word == "run":
        asked = call("run_program", command=rest)
    else:
        return say(text)
    content = (Text(text="I see to it."), *asked.content)
    return StepAnswer(content=content, stop_reason="tool_calls", usage=Usage(input=1, output=1))


def _mark(order: Order) -> Tool:
    def act(word: str) -> None:
        if order.kill == "enter":
            _die()
        with (Path(order.folder) / "marks").open("a", encoding="utf-8") as file:
            file.write(f"{word}\n")
        if order.kill == "acted":
            _die()

    @tool(name="mark")
    async def mark(context: ToolContext, word: str) -> str:
        """Leave a mark that outlives the server."""
        context.output("marking")
        act(word)
        return f"marked {word}"

    return mark


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


async def _serve(order: Order) -> None:
    def on_commit(phase: str, appends: tuple[Append, ...]) -> None:
        if phase == order.kill and any(r.seq == order.seq for a in appends for r in a.rows):
            _die()

    async def connect(model: str) -> Connection:
        del model
        return Connection(Echo())

    def ready(server: Ready) -> None:
        _say(Line(word="ready", pid=os.getpid(), url=server.url, code=server.code))

    folder = Path(order.folder)
    await serve(
        Config(
            data_dir=folder / "data",
            port=order.port,
            roots=(folder,),
            mode=order.mode,
            permission_window_s=120.0,
        ),
        agents={
            DEFAULT_AGENT: AgentSpec(
                name=DEFAULT_AGENT, tools=Toolset([_mark(order), *builtin_tools()])
            )
        },
        connect=connect,
        default_model=Echo.model.name,
        version="0.0.0",
        on_ready=ready,
        on_commit=on_commit,
        grace_s=1.0,
    )


def _say(line: Line) -> None:
    os.write(1, msgspec.json.encode(line) + b"\n")


def _serve_and_leave(order: Order) -> None:
    """The forked process: it must never come back into the lane's loop."""
    status = 1
    try:
        asyncio.run(_serve(order))
        status = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def main() -> None:
    """Serve one order after the other until stdin ends."""
    while text := sys.stdin.readline():
        order = msgspec.json.decode(text, type=Order)
        pid = os.fork()
        if pid == 0:
            _serve_and_leave(order)
        _, status = os.waitpid(pid, 0)
        _say(Line(word="ended", pid=pid, status=os.waitstatus_to_exitcode(status)))


if __name__ == "__main__":
    main()
