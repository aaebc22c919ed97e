"""Whatever has become of a conversation, each dialect sends it as its API wants it.

Sessions are drawn: turns of models of all dialects, which write what is theirs alone, call tools,
fail and stand in for each other, and which are stopped, cancelled or steered where they wait. The
rules of the APIs stand in `conftest`.
"""

import asyncio
import functools
import json
from collections.abc import Callable, Sequence
from threading import Event as ThreadEvent
from typing import Any, Final, NamedTuple

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from towline_agent.errors import (
    AuthenticationFailed,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    ToolError,
)
from towline_agent.plan import Plan
from towline_agent.providers.anthropic.decode import MessagesDecoder
from towline_agent.providers.base import (
    Model,
    Piece,
    Request,
    StepAnswer,
    StepFailed,
    StepResult,
    TextPiece,
    ThinkingPiece,
)
from towline_agent.providers.endpoint import Decoder
from towline_agent.providers.errors import Peer
from towline_agent.providers.gemini.decode import GeminiDecoder
from towline_agent.providers.gemini.flags import GeminiFlags
from towline_agent.providers.openai_chat.decode import ChatDecoder
from towline_agent.providers.openai_chat.flags import ChatFlags
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_agent.testing import FakeClock, ScriptedHost, ScriptedProvider, say, scripted_plan
from towline_agent.tools.function import tool
from towline_protocol import (
    TERMINAL_EVENTS,
    Block,
    CallId,
    File,
    Image,
    Limits,
    Message,
    Opaque,
    PermissionRequested,
    PromptAdmitted,
    ResultBlock,
    SseDecoder,
    Text,
    Thinking,
    ToolCall,
    TurnFailed,
    Usage,
)

Judge = Callable[[str, Model, Sequence[Request]], list[str]]
Streams = Callable[[str], list[tuple[str, str, bytes]]]
Recorded = Callable[[str], list[tuple[Block, ...]]]

DIALECTS = ("openai_chat", "openai_responses", "anthropic", "gemini")
PEER = Peer(provider="p", model="m", url="https://example.test/v1")
WRITER: Final = "gemini-3.1-pro"
"""The model that writes, whatever its dialect; only one of them heeds its name."""
STRANGER: Final = "gemini-2.5-flash"
"""One that wrote nothing."""


def make_model(dialect: str, id_: str = WRITER) -> Model:
    return Model(provider=dialect, id=id_, thinking="budget" if dialect == "anthropic" else "")


# What is written.


class Part(NamedTuple):
    """A part of an answer; what it becomes depends on who answers."""

    kind: str
    words: str = ""
    name: str = ""
    arguments: str = ""
    wire_id: str | None = None
    proven: bool = True


def make_blocks(dialect: str, part: Part, number: int) -> list[Block]:
    """A part as the decoder of a dialect gives it; all that is private bears a proof."""
    proof = f"proof-of-{dialect}-{number}"
    signed = proof if part.proven else None
    match part.kind:
        case "text":
            return _text(dialect, part.words, signed)
        case "thought" | "redacted":
            return _thought(dialect, part, proof, signed)
        case "own":
            return [Opaque(dialect=dialect, raw=raw) for raw in _own(dialect, proof)]
        case _:
            if signed is not None and dialect in ("openai_responses", "anthropic"):
                signed = json.dumps({"id" if dialect == "openai_responses" else "type": signed})
            return [
                ToolCall(
                    id=CallId(""),
                    name=part.name,
                    arguments=part.arguments,
                    wire_id=part.wire_id,
                    signature=signed,
                )
            ]


def _text(dialect: str, words: str, signed: str | None) -> list[Block]:
    text = Text(text=words)
    if signed is None or dialect in ("openai_chat", "anthropic"):
        return [text]
    if dialect == "gemini":
        return [text, Opaque(dialect=dialect, raw={"thoughtSignature": signed})]
    parts: list[Any] = [{"type": "output_text", "annotations": []}]
    raw = {"type": "message", "id": f"msg_{signed}", "role": "assistant", "content": parts}
    return [Opaque(dialect=dialect, raw=raw), text]


def _thought(dialect: str, part: Part, proof: str, signed: str | None) -> list[Block]:
    if dialect == "openai_responses":
        raw: Any = {"type": "reasoning", "id": f"rs_{proof}", "encrypted_content": signed}
        return [Opaque(dialect=dialect, raw=raw), Thinking(text=part.words)]
    if dialect == "openai_chat":
        raw = {"reasoning_details": [{"type": "reasoning.encrypted", "data": proof}]}
        return [Thinking(text=part.words), Opaque(dialect=dialect, raw=raw)]
    if dialect == "anthropic" and part.kind == "redacted":
        return [Thinking(text="", signature=signed, redacted=True)]
    return [Thinking(text=part.words, signature=signed)]


def _own(dialect: str, proof: str) -> list[dict[str, Any]]:
    """What a vendor did itself."""
    if dialect == "openai_responses":
        return [{"type": "web_search_call", "id": f"ws_{proof}", "status": "completed"}]
    if dialect == "gemini":
        code = {"language": "PYTHON", "code": "1"}
        result = {"outcome": "OUTCOME_OK", "output": "1"}
        return [
            {"executableCode": code, "thoughtSignature": proof},
            {"codeExecutionResult": result},
        ]
    if dialect == "anthropic":
        hit = {"type": "web_search_result", "url": "https://a.test", "encrypted_content": proof}
        id_ = f"srvtoolu_{proof}"
        return [
            {"type": "server_tool_use", "id": id_, "name": "web_search", "input": {}},
            {"type": "web_search_tool_result", "tool_use_id": id_, "content": [hit]},
        ]
    return []


# What happens.


class Drawn(NamedTuple):
    """What a model does when it is asked."""

    fate: str = "answer"
    parts: tuple[Part, ...] = ()
    stop_reason: str = "tool_calls"
    recorded: int | None = None


class Turn(NamedTuple):
    """A turn, and what befalls it where it waits."""

    prompt: tuple[Block, ...] = ()
    script: tuple[Drawn, ...] = ()
    models: tuple[str, ...] = DIALECTS
    act: str = "nothing"
    where: str = ""
    nth: int = 1
    hangs: bool = False
    max_steps: int = 24
    allowed: bool = True


PICTURE = Image(media_type="image/png", data="iVBORw0KGgo=")
PAPER = File(name="a.pdf", media_type="application/pdf", data="JVBERi0=")
PROMPTS = st.sampled_from(
    [
        (Text(text="Go on."),),
        (Text(text=""), Text(text="What is that? \ud83d"), PICTURE),
        (PICTURE, PAPER),
    ]
)
WORDS = st.sampled_from(["", "So.", "é😀", " ", "\n\n"])
WIRE_IDS = st.sampled_from(
    [None, "", "same", "call_1", "call_3", "toolu_01", "functions.look:0", "é" * 20, "x" * 65]
)
TOOLS = ("look", "show", "block", "write")
NAMES = st.sampled_from([*TOOLS * 3, "nothing", "", "functions.look", "do it", "é" * 70])
ARGUMENTS = st.sampled_from(
    [
        *["{}"] * 8, "", "null", '{"n": 1}', '{"n": ', "[]", '{"n": NaN}', '{"n": "\\ud83d"}',
        "{}{}", '{"n": 1e999}',
    ]
)  # fmt: skip
SAID = st.tuples(st.sampled_from(["text", "thought", "redacted", "own"]), WORDS, st.booleans()).map(
    lambda drawn: Part(drawn[0], drawn[1], proven=drawn[2])
)
CALLED = st.builds(Part, st.just("call"), st.just(""), NAMES, ARGUMENTS, WIRE_IDS, st.booleans())
PARTS = st.tuples(
    st.lists(SAID, max_size=3), st.lists(CALLED, max_size=3), st.lists(SAID, max_size=1)
).map(lambda parts: (*parts[0], *parts[1], *parts[2]))
DRAWN = st.one_of(
    *[PARTS.map(lambda parts: Drawn("answer", parts))] * 5,
    PARTS.map(lambda parts: Drawn("broken", parts)),
    st.tuples(PARTS, st.sampled_from(["end_turn", "max_tokens", "refusal"])).map(
        lambda both: Drawn("answer", *both)
    ),
    st.integers(0, 200).map(lambda place: Drawn(recorded=place)),
    st.sampled_from(["down", "limited", "spent", "spent", "refused"]).map(Drawn),
)
WAITS = ("settle", "ask", "sleep", "asked", "piece", *TOOLS)


@st.composite
def turns(draw: st.DrawFn) -> Turn:
    """A turn; one that something befalls in a tool calls that tool, beside others."""
    where = draw(st.sampled_from(WAITS))
    script = draw(st.lists(DRAWN, min_size=1, max_size=4))
    if where in TOOLS:
        asked = Part("call", name=where, arguments="{}", wire_id=draw(WIRE_IDS))
        others = draw(st.lists(CALLED, max_size=2))
        script.insert(draw(st.integers(0, 1)), Drawn(parts=(*others, asked)))
    return Turn(
        prompt=draw(PROMPTS),
        script=tuple(script),
        models=tuple(draw(st.permutations(DIALECTS))),
        act=draw(st.sampled_from(["stop", "cancel", "steer", "nothing"])),
        where=where,
        nth=draw(st.integers(1, 2)),
        hangs=draw(st.booleans()),
        max_steps=draw(st.sampled_from([2, 24, 24])),
        allowed=draw(st.booleans()),
    )


SESSIONS = st.lists(turns(), min_size=1, max_size=3)


class World:
    """All that the turns of a session share: how far they are, and what was sent."""

    def __init__(self, recorded: Recorded) -> None:
        self.recorded = recorded
        self.requests: list[Request] = []
        self.parts = 0
        self.release = ThreadEvent()
        self.turn = Turn()
        self.act: Callable[[], object] = lambda: None
        self._left = 0

    def begin(self, turn: Turn) -> None:
        self.turn, self._left = turn, turn.nth
        self.release.clear()

    def arrives(self, where: str) -> bool:
        """Whether this is where the turn is befallen."""
        self._left -= where == self.turn.where
        return where == self.turn.where and self._left == 0

    @property
    def hangs(self) -> bool:
        return self.turn.hangs and self.turn.act in ("stop", "cancel")

    async def pause(self, where: str, *, over: bool = False) -> None:
        if self.arrives(where):
            self.act()
            if self.hangs and not over:
                await asyncio.Event().wait()
        await asyncio.sleep(0)

    def pause_thread(self, loop: asyncio.AbstractEventLoop) -> None:
        if self.arrives("block"):
            loop.call_soon_threadsafe(self.act)
            if self.hangs:
                self.release.wait(10)


class PausingHost(ScriptedHost):
    def __init__(self, world: World, earlier: tuple[Message, ...]) -> None:
        super().__init__(answer=self._answered, earlier=earlier)
        self._world = world
        prompt = PromptAdmitted(prompt=self.prompt, content=world.turn.prompt, when="auto")
        self.emit(prompt)

    async def settle(self) -> None:
        over = isinstance(self.events[-1], TERMINAL_EVENTS)  # then a stop comes too late
        await self._world.pause("settle", over=over)
        await super().settle()

    async def _answered(self, _: PermissionRequested) -> str:
        await self._world.pause("ask")
        return "allow_once" if self._world.turn.allowed else "deny"


class PausingClock(FakeClock):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world

    async def sleep(self, delay_s: float) -> None:
        await self._world.pause("sleep")
        await super().sleep(delay_s)


FAILURES: dict[str, Callable[[], ProviderError]] = {
    "down": lambda: ProviderUnavailable("It is down.", reason="server"),
    "limited": lambda: RateLimited("Too many requests.", reason="rate_limit"),
    "spent": lambda: QuotaExhausted("There is no credit.", reason="quota"),
    "refused": lambda: AuthenticationFailed("The key is wrong."),
}


class Answering(ScriptedProvider):
    """Does what was drawn, in its own dialect."""

    def __init__(self, world: World, dialect: str, script: list[Drawn]) -> None:
        super().__init__(model=make_model(dialect))
        self._world = world
        self._left = script

    async def step(self, request: Request, on_piece: Callable[[Piece], None]) -> StepResult:
        self._world.requests.append(request)
        await self._world.pause("asked")
        if not self._left:
            return say("Done.")
        drawn = self._left.pop(0)
        if drawn.fate in FAILURES:
            return StepFailed(error=FAILURES[drawn.fate]())
        content = self._content(drawn)
        for place, block in enumerate(content):
            if isinstance(block, Text) and block.text:
                on_piece(TextPiece(place, block.text))
            elif isinstance(block, Thinking) and block.text:
                on_piece(ThinkingPiece(place, block.text))
            await self._world.pause("piece")
        if drawn.fate == "broken":
            return StepFailed(error=ProviderUnavailable("It broke."), streamed=True)
        usage = Usage(input=1, output=1)
        return StepAnswer(content=content, stop_reason=drawn.stop_reason, usage=usage)

    def _content(self, drawn: Drawn) -> tuple[Block, ...]:
        dialect = self.model.provider
        if drawn.recorded is not None:
            known = self._world.recorded(dialect)
            return known[drawn.recorded % len(known)]
        blocks: list[Block] = []
        for part in drawn.parts:
            self._world.parts += 1
            blocks += make_blocks(dialect, part, self._world.parts)
        return tuple(blocks)


def make_plan(world: World) -> Plan:
    loop = asyncio.get_running_loop()

    @tool(effect="read")
    async def look() -> str:
        """Look."""
        await world.pause("look")
        return ""

    @tool(effect="read")
    async def show() -> list[ResultBlock]:
        """Show."""
        await world.pause("show")
        return [Text(text="Here."), PICTURE, PAPER]

    @tool(effect="own")
    def block() -> str:
        """Block a thread."""
        world.pause_thread(loop)
        return "done"

    @tool
    async def write() -> None:
        """Write."""
        await world.pause("write")
        raise ToolError("It cannot be written.")

    script = list(world.turn.script)
    first, *others = (Answering(world, dialect, script) for dialect in world.turn.models)
    return scripted_plan(
        first,
        *(look, show, block, write),
        mode="ask",
        fallbacks=tuple(others),
        clock=PausingClock(world),
        limits=Limits(max_steps=world.turn.max_steps),
    )


async def play(session: list[Turn], recorded: Recorded) -> list[Request]:
    """All requests of a session, and those that a new prompt would make after each turn."""
    world = World(recorded)
    history: tuple[Message, ...] = ()
    for turn in session:
        world.begin(turn)
        host = PausingHost(world, history)
        running = asyncio.create_task(host.run(make_plan(world)))
        steer = functools.partial(host.steer, "And this.")
        acts = {"stop": host.stop, "cancel": running.cancel, "steer": steer}
        world.act = acts.get(turn.act, lambda: None)
        await asyncio.wait({running})
        world.release.set()
        if not running.cancelled():
            end = running.result()
            assert not isinstance(end.event, TurnFailed) or end.event.fault.code != "internal_error"
        history = host.transcript.messages()
        world.requests += next_requests(history)
    return world.requests


def next_requests(history: tuple[Message, ...]) -> list[Request]:
    messages = (*history, Message("user", (Text(text="And now?"),)))
    bare = Request(model="m", messages=messages, effort="low", max_tokens=4096)
    return [bare, msgspec.structs.replace(bare, effort=None, trailing="It is noon.")]


DECODERS: dict[str, Callable[[Callable[[Piece], None]], Decoder]] = {
    "openai_chat": lambda tell: ChatDecoder(PEER, ChatFlags(replay="reasoning_details"), tell),
    "openai_responses": lambda tell: ResponsesDecoder(PEER, tell),
    "anthropic": lambda tell: MessagesDecoder(PEER, tell),
    "gemini": lambda tell: GeminiDecoder(PEER, GeminiFlags(), tell),
}


@pytest.fixture(scope="module")
def recorded(recorded_streams: Streams) -> Recorded:
    """What the models of a dialect really said, in all its oddity."""

    @functools.cache
    def read(dialect: str) -> list[tuple[Block, ...]]:
        said: list[tuple[Block, ...]] = []
        for _, _, body in recorded_streams(dialect):
            decoder = DECODERS[dialect](lambda piece: None)
            for event in SseDecoder().feed(body + b"\n\n"):
                decoder.feed(event)
            result = decoder.finish()
            if isinstance(result, StepAnswer):
                said.append(result.content)
        return said

    return read


SETTINGS = settings(
    max_examples=50,
    phases=[Phase.explicit, Phase.reuse, Phase.generate, Phase.shrink],  # explaining takes minutes
)
each_dialect = pytest.mark.parametrize("dialect", DIALECTS)


@pytest.mark.rules(
    "A2.25", "A2.32", "A2.40", "A2.47", "R25", "R31", "R33", "R35", "R37", "S14", "S16", "S33"
)
@each_dialect
@SETTINGS
@given(session=SESSIONS)
def test_a_session_is_sent_validly_wherever_it_was_cut(
    dialect: str, session: list[Turn], recorded: Recorded, judge: Judge
) -> None:
    requests = asyncio.run(play(session, recorded))
    judge(dialect, make_model(dialect), requests)
    judge(dialect, make_model(dialect, STRANGER), requests[-2:])
