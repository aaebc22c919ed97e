"""Tools out of functions and handlers (A4.43, A4.44, A4.56)."""

import asyncio
import inspect
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, Protocol, TypeVar, cast, overload, runtime_checkable

import msgspec

from towline_agent.tools.result import to_output
from towline_agent.tools.schema import misfit, read_parameters
from towline_agent.tools.tool import EFFECTS, Look, Tool, ToolContext, ToolOutput
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.threads import ThreadPool
from towline_protocol import Preview, Process, UsageError

__all__ = ["THREADS", "ToolHandler", "check_name", "make_tool", "tool"]

THREADS: Final = ThreadPool("towline-tool", 16)
"""Where tools that are plain functions run: as many at once as a step's calls (A4.14, A4.25)."""

_LONGEST_S: Final = 1e15  # more is no time that a clock takes
_TRIED_TO_EXIT: Final = "The tool tried to end the process."
_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"

_T = TypeVar("_T")
_Words = Callable[[dict[str, Any]], str]
_Run = Callable[[ToolContext, dict[str, Any]], Awaitable[ToolOutput]]


@runtime_checkable
class ToolHandler(Protocol):
    """One object that runs many tools (A4.44)."""

    async def handle(self, name: str, arguments_json: str) -> str:
        """Run a tool; what it raises is told to the model as any tool's error is.

        Args:
            name: The tool's name.
            arguments_json: The checked arguments, a JSON object.
        """
        ...


@runtime_checkable
class _Withdrawable(Protocol):
    """A context that is told when its function never began."""

    def withdraw(self, why: str) -> None:
        """Take note: it waited for a thread and none came free."""
        ...


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    effect: str = "write",
    idempotent: bool = False,
    irreversible: bool = False,
    timeout_s: float = 120.0,
    journals: bool = False,
    title: _Words | None = None,
    subject: _Words | None = None,
    preview: Callable[[dict[str, Any]], Preview] | None = None,
    look: Callable[[ToolContext, dict[str, Any]], Awaitable[Look]] | None = None,
    verify: Callable[[dict[str, Any]], object] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    verify: Callable[[dict[str, Any]], object] | None = None,
    **facts: Any,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool of a function; used bare or with arguments.

    ```python
    @tool(effect="network", idempotent=True)
    async def weather(city: str, unit: Literal["C", "F"] = "C") -> dict[str, float]:
        \"\"\"The weather of now, by the English name of a city.\"\"\"
        ...
    ```

    The schema comes from the signature and the docstring. A first parameter annotated `ToolContext`
    is filled in by the loop. A plain function runs in a thread, which a cancel cannot stop (A4.26).

    Args:
        function: The function.
        name: The tool's name; without it the function's.
        description: What the model is told; without it the docstring's text before its sections.
        verify: Looks at arguments that fit the schema; raises `ToolInputInvalid` for what the
            schema can't say, before anybody is asked for permission.
        facts: `effect`, `idempotent`, `irreversible`, `timeout_s`, `journals`, `title`, `subject`,
            `preview` and `look`, as on `Tool`.

    Raises:
        UsageError: The function can't be a tool; the message says why (A4.45).
    """
    if function is None:
        return lambda made: _from_function(made, name, description, verify, facts)
    return _from_function(function, name, description, verify, facts)


def make_tool(
    name: str,
    description: str,
    schema: dict[str, Any] | str,
    handler: ToolHandler | Callable[..., Any],
    *,
    effect: str = "write",
    idempotent: bool = False,
    irreversible: bool = False,
    timeout_s: float = 120.0,
    title: _Words | None = None,
    subject: _Words | None = None,
    preview: Callable[[dict[str, Any]], Preview] | None = None,
) -> Tool:
    """Make a tool of a hand-written schema (A4.43, A4.44).

    Args:
        name: The tool's name.
        description: What the model is told.
        schema: JSON Schema of the arguments, as a dict or as JSON text.
        handler: A `ToolHandler`, which may serve many tools; or a function, plain or async, that
            takes the arguments as one dict, after a first parameter annotated `ToolContext` if it
            has one.
        effect: One of `EFFECTS`.
        idempotent: Whether running it twice is harmless.
        irreversible: Whether nothing brings back what it does; then no mode lets it pass.
        timeout_s: Seconds it may take.
        title: One line for a person.
        subject: What a permission rule is matched against.
        preview: What a person sees before it runs.

    Raises:
        UsageError: The name, the schema or a fact is bad.
    """
    # As in `schema`: with the first tool, not with the library.
    from towline_agent.tools.arguments import parse_arguments
    from towline_agent.tools.mismatch import find_mismatch, read_schema

    parameters = read_schema(schema, check_name(name))

    def check(text: str) -> dict[str, Any]:
        raw = parse_arguments(text)
        try:
            problem = find_mismatch(parameters, raw)
        except RecursionError:  # a schema that refers to itself without an end
            problem = "they can't be checked, since the tool's schema goes round in a circle"
        if problem is not None:
            raise misfit(name, problem, parameters)
        return raw

    if isinstance(handler, ToolHandler):
        threaded = not _is_async(handler.handle)
        handle = partial(_run_handler, handler, name)
        run = handle if not threaded else _in_thread(handler, name)
        wants_context = False
    else:
        found = _parameters(handler, name)
        wants_context = len(found) > 1 and found[0].annotation in (ToolContext, "ToolContext")
        threaded = not _is_async(handler)
        run = _runner(handler, wants_context=wants_context, threaded=threaded, spread=False)
    facts = {
        "rooted": wants_context,
        "effect": effect,
        "idempotent": idempotent,
        "irreversible": irreversible,
        "timeout_s": timeout_s,
        "title": title,
        "subject": subject,
        "preview": preview,
    }
    return _assemble(name, description, parameters, run, check, threaded, facts)


def check_name(name: str) -> str:
    """The name itself when every provider takes it.

    Raises:
        UsageError: It is no tool's name.
    """
    if not isinstance(cast("object", name), str) or re.fullmatch(_NAME, name) is None:
        raise UsageError(
            f"{name!r} can't be a tool's name; use 1 to 64 letters, digits, `_` and `-`, "
            "beginning with a letter or `_`."
        )
    return name


def _from_function(
    function: Callable[..., Any],
    name: str | None,
    description: str | None,
    verify: Callable[[dict[str, Any]], object] | None,
    facts: dict[str, Any],
) -> Tool:
    if not callable(function):
        raise UsageError(f"A tool can't be made of {function!r}; give a function.")
    named = check_name(name or getattr(function, "__name__", type(function).__name__))
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"Tool {named!r} yields; return its result instead.")
    parameters = read_parameters(function, named)
    threaded = not _is_async(function)
    run = _runner(function, wants_context=parameters.takes_context, threaded=threaded, spread=True)
    check = parameters.check if verify is None else _both(parameters.check, verify)
    words = description or parameters.summary or named.replace("_", " ")
    facts = {**facts, "rooted": parameters.takes_context}
    if "effect" not in facts:  # nobody has said what it does
        facts["reason"] = "It may change something."
    return _assemble(named, words, parameters.schema, run, check, threaded, facts)


def _assemble(
    name: str,
    description: str,
    parameters: dict[str, Any],
    run: _Run,
    check: Callable[[str], dict[str, Any]],
    threaded: bool,
    facts: dict[str, Any],
) -> Tool:
    try:
        made = Tool(
            name=name,
            description=description,
            parameters=parameters,
            run=run,
            check=check,
            threaded=threaded,
            **facts,
        )
    except TypeError as error:
        raise UsageError(f"Tool {name!r}: {error}.") from error
    if not isinstance(cast("object", description), str):
        raise UsageError(f"Tool {name!r} has description={description!r}; give a text.")
    if made.effect not in EFFECTS:
        raise UsageError(
            f"Tool {name!r} has the effect {made.effect!r}; use one of {', '.join(EFFECTS)}."
        )
    if not (made.timeout_s is None or _is_above_0(made.timeout_s)):
        raise UsageError(
            f"Tool {name!r} has timeout_s={made.timeout_s!r}; it must be above 0, in seconds."
        )
    for fact in ("title", "subject", "preview", "look"):
        if not (getattr(made, fact) is None or callable(getattr(made, fact))):
            raise UsageError(f"Tool {name!r} has {fact}={getattr(made, fact)!r}; give a function.")
    if made.journals and threaded:
        raise UsageError(f"Tool {name!r} journals its start, so it must be an async function.")
    return made


def _is_above_0(value: object) -> bool:
    return type(value) in (int, float) and 0 < cast("float", value) <= _LONGEST_S


def _both(
    check: Callable[[str], dict[str, Any]], verify: Callable[[dict[str, Any]], object]
) -> Callable[[str], dict[str, Any]]:
    def checked(text: str) -> dict[str, Any]:
        arguments = check(text)
        verify(arguments)
        return arguments

    return checked


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async `__call__`
    )


def _runner(
    function: Callable[..., Any], *, wants_context: bool, threaded: bool, spread: bool
) -> _Run:
    """How a function is called: with its context or not, where, its arguments by name or as one."""

    async def run(context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        inner = _ThreadContext(context) if threaded else context
        first = (inner,) if wants_context else ()
        call = (
            partial(function, *first, **arguments)
            if spread
            else partial(function, *first, arguments)
        )
        try:
            if threaded:
                work = partial(_call_in_thread, call)
                withdrawn = partial(_withdraw, context)
                value = await THREADS.run(work, on_withdrawn=withdrawn)
                # a plain function round an async one returns what must still be awaited
                return to_output(await value if inspect.isawaitable(value) else value)
            return to_output(await call())
        except SystemExit as error:  # would end the whole process, not the call
            raise RuntimeError(_TRIED_TO_EXIT) from error
        finally:
            if isinstance(inner, _ThreadContext):
                inner.close()

    return run


async def _run_handler(
    handler: ToolHandler, name: str, _: ToolContext, arguments: dict[str, Any]
) -> ToolOutput:
    text = msgspec.json.encode(arguments).decode()
    try:
        return to_output(await handler.handle(name, text))
    except SystemExit as error:
        raise RuntimeError(_TRIED_TO_EXIT) from error


def _in_thread(handler: ToolHandler, name: str) -> _Run:
    """How a handler is called whose `handle` is no coroutine function: as a plain function is."""

    def call(arguments: dict[str, Any]) -> object:
        return handler.handle(name, msgspec.json.encode(arguments).decode())

    return _runner(call, wants_context=False, threaded=True, spread=False)


def _parameters(handler: object, name: str) -> list[inspect.Parameter]:
    """The parameters of a handler that is a function.

    Raises:
        UsageError: It is none.
    """
    try:
        if callable(handler):
            return list(inspect.signature(handler).parameters.values())
    except ValueError:  # of a function that is written in C
        pass
    raise UsageError(
        f"Tool {name!r} can't be handled by {handler!r}; give a function that takes the arguments "
        "as a dict, or an object with `async def handle(name, arguments_json)`."
    )


def _withdraw(context: ToolContext) -> None:
    """Tell a call that its function never began, if it wants to know."""
    if isinstance(context, _Withdrawable):
        context.withdraw(
            f"all {THREADS.limit} threads for functions that block are busy with calls that do "
            "not end"
        )


def _call_in_thread(call: Callable[[], _T]) -> _T:
    """Call a function; what only the loop's own code may raise becomes an ordinary error."""
    try:
        return call()
    except Exception:  # goes on as it is; only what is none is changed
        raise
    except BaseException as error:
        raise RuntimeError(f"The tool raised {type(error).__name__}.") from error


class _ThreadContext:
    """A tool's context for a thread: what it shows is handed to the loop's own thread."""

    def __init__(self, context: ToolContext) -> None:
        self.call = context.call
        self.workspace: Workspace = context.workspace
        self.result_limit = context.result_limit
        self.state = context.state
        self.bases = context.bases
        self._context = context
        self._loop = asyncio.get_running_loop()
        self._open = True

    def output(self, text: str) -> None:
        self._hand_over(lambda: self._context.output(text))

    def progress(self, text: str, fraction: float | None = None) -> None:
        self._hand_over(lambda: self._context.progress(text, fraction))

    async def start(self, process: Process) -> None:
        await self._context.start(process)

    def close(self) -> None:
        """The call has ended; what its thread still says is dropped."""
        self._open = False

    def _hand_over(self, say: Callable[[], None]) -> None:
        def say_if_open() -> None:
            if self._open:
                say()

        with suppress(RuntimeError):  # the loop is closed: the call ended long ago
            self._loop.call_soon_threadsafe(say_if_open)
