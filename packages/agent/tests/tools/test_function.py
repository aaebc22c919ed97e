"""Functions as tools: threads, contexts, handlers, what is refused."""

import asyncio
import contextvars
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from towline_agent.errors import AbortTurn, ToolError, ToolInputInvalid
from towline_agent.tools.function import THREADS, make_tool, tool
from towline_agent.tools.memory import MemoryContext
from towline_agent.tools.tool import Tool, ToolContext, ToolOutput
from towline_protocol import Preview, Process, Text, UsageError

LIMIT_S = 10


async def _call(made: Tool, text: str = "{}", context: ToolContext | None = None) -> str:
    async with asyncio.timeout(LIMIT_S):
        output = await made.run(context or MemoryContext(), made.check(text))
    (block,) = output.content
    assert isinstance(block, Text)
    return block.text


@pytest.mark.rules("A4.56")
async def test_the_bare_decorator_makes_a_tool_of_an_async_function() -> None:
    @tool
    async def add(a: int, b: int = 2) -> int:
        """Add two numbers."""
        return a + b

    assert (add.name, add.description, add.effect) == ("add", "Add two numbers.", "write")
    assert not add.threaded
    assert await _call(add, '{"a": 1}') == "3"


@pytest.mark.rules("A4.56")
async def test_the_decorator_takes_every_fact_of_a_tool() -> None:
    def show(arguments: dict[str, Any]) -> str:
        return f"Send to {arguments['to']}"

    @tool(
        name="mail",
        description="Send mail.",
        effect="network",
        idempotent=True,
        timeout_s=5,
        title=show,
        subject=show,
        preview=lambda arguments: Preview(kind="text", text=show(arguments)),
    )
    def send(to: str) -> None: ...

    assert (send.name, send.description, send.effect) == ("mail", "Send mail.", "network")
    assert (send.idempotent, send.timeout_s, send.threaded) == (True, 5, True)
    assert send.title is not None
    assert send.subject is not None
    assert send.preview is not None
    assert send.title({"to": "ada"}) == send.subject({"to": "ada"}) == "Send to ada"
    assert send.preview({"to": "ada"}).text == "Send to ada"
    assert await _call(send, '{"to": "ada"}') == "null"


def test_a_function_without_words_is_described_by_its_name() -> None:
    @tool
    def find_flight() -> None: ...

    assert find_flight.description == "find flight"


@pytest.mark.rules("A4.56")
async def test_the_context_is_given_to_the_first_parameter() -> None:
    @tool
    async def show(context: ToolContext, word: str) -> ToolOutput:
        context.output(word)
        context.progress("half", 0.5)
        return ToolOutput(content=(Text(text="done"),))

    context = MemoryContext()
    assert "context" not in show.parameters["properties"]
    assert await _call(show, '{"word": "a"}', context) == "done"
    assert (context.outputs, context.steps) == (["a"], [("half", 0.5)])


@pytest.mark.rules("A4.25")
async def test_a_plain_function_runs_in_a_thread_of_the_tools_own() -> None:
    place: contextvars.ContextVar[str] = contextvars.ContextVar("place", default="")

    @tool
    def where() -> list[str]:
        return [threading.current_thread().name, place.get()]

    place.set("here")
    text = await _call(where)
    assert "towline-tool-" in text
    assert "here" in text
    assert THREADS.limit == 16


@pytest.mark.rules("A4.25")
async def test_blocked_functions_fill_their_threads_and_delay_nothing_else() -> None:
    release = threading.Event()
    inside = threading.Semaphore(0)

    @tool(effect="read")
    def block() -> None:
        inside.release()
        release.wait(LIMIT_S)

    calls = [asyncio.create_task(_call(block)) for _ in range(THREADS.limit + 1)]
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(LIMIT_S):
            for _ in range(THREADS.limit):
                await loop.run_in_executor(None, inside.acquire)
            await loop.getaddrinfo("127.0.0.1", 80)
        assert not inside.acquire(blocking=False), "one more than the bound ran"
    finally:
        release.set()
        assert await asyncio.gather(*calls) == ["null"] * len(calls)


@pytest.mark.rules("A4.26")
async def test_a_cancelled_function_goes_on_in_its_thread_and_is_heard_no_more() -> None:
    began, release, ended = threading.Event(), threading.Event(), threading.Event()

    @tool
    def work(context: ToolContext) -> None:
        context.output("begun")
        began.set()
        release.wait(LIMIT_S)
        context.output("too late")
        ended.set()

    context = MemoryContext()
    call = asyncio.ensure_future(work.run(context, {}))
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(LIMIT_S):
        await loop.run_in_executor(None, began.wait)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert not ended.is_set()
        release.set()
        await loop.run_in_executor(None, ended.wait)
    assert work.threaded
    assert context.outputs == ["begun"]


async def test_a_thread_may_show_output_and_progress() -> None:
    @tool
    def work(context: ToolContext) -> str:
        context.output("a")
        context.progress("b", 1.0)
        return str(context.result_limit)

    context = MemoryContext(result_limit=77)
    assert await _call(work, "{}", context) == "77"
    assert (context.outputs, context.steps) == (["a"], [("b", 1.0)])


class _Stopped(BaseException):
    pass


def _raise_in(error: BaseException) -> Callable[[], None]:
    def fail() -> None:
        raise error

    return fail


@pytest.mark.rules("A4.16", "A4.59")
@pytest.mark.parametrize("error", [ToolError("no"), AbortTurn("why"), ValueError("x")])
async def test_what_a_function_raises_comes_out_as_it_is(error: Exception) -> None:
    async def fail() -> None:
        raise error

    for function in (_raise_in(error), fail):
        with pytest.raises(type(error)) as raised:
            await _call(tool(function))
        assert raised.value is error


@pytest.mark.rules("A4.16")
@pytest.mark.parametrize(
    "error", [StopIteration(), SystemExit(3), asyncio.CancelledError(), _Stopped()]
)
async def test_what_would_end_more_than_the_call_becomes_an_ordinary_error(
    error: BaseException,
) -> None:
    with pytest.raises(RuntimeError):
        await _call(tool(_raise_in(error)))


@pytest.mark.rules("A4.16")
async def test_an_async_function_cannot_end_the_process() -> None:
    @tool
    async def leave() -> None:
        raise SystemExit(3)

    with pytest.raises(RuntimeError, match="end the process"):
        await _call(leave)


async def test_methods_and_callable_objects_are_tools_too() -> None:
    class Shop:
        def __init__(self) -> None:
            self.stock = 3

        async def count(self) -> int:
            """Count the stock."""
            return self.stock

        async def __call__(self) -> str:
            return "called"

    assert await _call(tool(Shop().count)) == "3"
    made = tool(name="shop")(Shop())
    assert not made.threaded
    assert await _call(made) == "called"


@pytest.mark.rules("A4.13")
async def test_verify_refuses_what_the_schema_allows() -> None:
    def refuse_odd(arguments: dict[str, Any]) -> None:
        if arguments["n"] % 2:
            raise ToolInputInvalid("n is odd; send an even one.")

    @tool(verify=refuse_odd)
    async def halve(n: int) -> int:
        return n // 2

    assert await _call(halve, '{"n": 4}') == "2"
    with pytest.raises(ToolInputInvalid, match="odd"):
        halve.check('{"n": 3}')


SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


@pytest.mark.rules("A4.43")
async def test_a_tool_is_made_of_a_schema_and_a_function_of_one_dict() -> None:
    async def double(arguments: dict[str, Any]) -> int:
        return arguments["n"] * 2

    def triple(context: ToolContext, arguments: dict[str, Any]) -> int:
        context.output("threaded")
        return arguments["n"] * 3

    context = MemoryContext()
    twice = make_tool("double", "Double it.", SCHEMA, double, effect="own", timeout_s=3)
    thrice = make_tool("triple", "", '{"properties": {"n": {"type": "integer"}}}', triple)
    assert (twice.description, twice.effect, twice.timeout_s) == ("Double it.", "own", 3)
    assert (twice.threaded, thrice.threaded) == (False, True)
    assert await _call(twice, '{"n": 2}') == "4"
    assert await _call(thrice, '{"n": 2}', context) == "6"
    assert context.outputs == ["threaded"]
    with pytest.raises(ToolInputInvalid, match=r"'n' is missing.*Expected: {n: integer}"):
        twice.check("{}")


@pytest.mark.rules("A4.44")
async def test_one_handler_object_serves_many_tools() -> None:
    class Handler:
        async def handle(self, name: str, arguments_json: str) -> str:
            return f"{name} {arguments_json}"

    handler = Handler()
    made = [make_tool(name, "", SCHEMA, handler) for name in ("one", "two")]
    assert [await _call(each, ' { "n" : 2 } ') for each in made] == ['one {"n":2}', 'two {"n":2}']
    assert not any(each.threaded for each in made)


def test_a_schema_that_goes_round_in_a_circle_refuses_the_call() -> None:
    schema = {"properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"$ref": "#/$defs/A"}}}
    made = make_tool("probe", "", schema, _raise_in(ValueError()))
    with pytest.raises(ToolInputInvalid, match="circle"):
        made.check('{"a": 1}')


async def _yields() -> AsyncIterator[int]:
    yield 1


def _yields_too() -> Iterator[int]:
    yield 1


def _of_facts(facts: dict[str, Any]) -> Tool:
    return tool(**facts)(_plain)


async def _plain() -> None: ...
def _blocking() -> None: ...


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: tool(_yields), "yields"),
        (lambda: tool(_yields_too), "yields"),
        (lambda: tool(lambda: None), "'<lambda>' can't be a tool's name"),
        (lambda: tool(name="a b")(_plain), "'a b' can't be a tool's name"),
        (lambda: tool(effect="delete")(_plain), "effect 'delete'"),
        (lambda: tool(timeout_s=0)(_plain), "timeout_s=0"),
        (lambda: tool(journals=True)(_blocking), "must be an async function"),
        (lambda: _of_facts({"colour": "red"}), "colour"),
        (lambda: make_tool("a", "", "{", _plain), "is no JSON"),
    ],
)
def test_a_bad_tool_is_refused_when_it_is_made(make: Callable[[], Tool], told: str) -> None:
    with pytest.raises(UsageError) as refused:
        make()
    assert told in refused.value.message


async def test_the_context_in_memory_keeps_what_is_made_durable() -> None:
    @tool(journals=True)
    async def work(context: ToolContext) -> None:
        await context.start(Process(pid=7, group=7, started="now"))

    context = MemoryContext()
    await _call(work, "{}", context)
    assert [process.pid for process in context.processes] == [7]
