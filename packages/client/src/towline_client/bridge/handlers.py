"""What a program answers by itself: its tools, and its answers to what a person is asked."""

import inspect
from collections.abc import Callable
from typing import Any, Final

from towline_client.bridge.threads import Threads
from towline_client.bridge.tool import BoundTool, call_function
from towline_client.flow import Latest
from towline_protocol import ClientTool, SessionId, UsageError

__all__ = ["MAX_THREADS", "MAX_TOOLS", "Callback", "Handlers"]

MAX_TOOLS: Final = 32
"""Tools that all clients of a session declare together (C6)."""
MAX_THREADS: Final = 16
"""Plain functions that run at once; more wait their turn."""


class Callback:
    """A function that answers what a person is asked."""

    def __init__(self, function: Callable[..., Any], threads: Threads) -> None:
        self._function = function
        self._threads = threads
        self._wants_session = _takes_two(function)

    async def ask(self, request: object, session: SessionId) -> Any:
        """What the function answers; raises what it raises."""
        more = (session,) if self._wants_session else ()
        return await call_function(
            lambda: self._function(request, *more), self._function, self._threads
        )


class Handlers:
    """The functions of one program."""

    def __init__(self) -> None:
        self.threads = Threads("towline-client-tool", MAX_THREADS)
        """Where tools that are plain functions run."""
        self.tools: dict[str, BoundTool] = {}
        """The tools by name."""
        self.permission: Callback | None = None
        """Answers permission requests; `None` to leave them to others."""
        self.question: Callback | None = None
        """Answers questions; `None` to leave them to others."""
        self.declared: Latest[tuple[ClientTool, ...]] = Latest(())
        """What a server is told of the tools; set anew whenever a function is added."""
        self._people = Threads("towline-client-answer", MAX_THREADS)

    def add(self, tool: BoundTool) -> None:
        """Add a tool.

        Raises:
            UsageError: There is one of its name, or there are too many.
        """
        name = tool.declared.name
        if name in self.tools:
            raise UsageError(f"There is a tool {name!r} already; give this one another name.")
        if len(self.tools) >= MAX_TOOLS:
            raise UsageError(
                f"Tool {name!r} is one too many; a session has {MAX_TOOLS} of its clients."
            )
        self.tools[name] = tool
        self.declared.set(tuple(each.declared for each in self.tools.values()))

    def answer_permissions(self, function: Callable[..., Any]) -> None:
        """Let a function answer permission requests.

        Raises:
            UsageError: There is one already.
        """
        if self.permission is not None:
            raise _second("permissions")
        self.permission = Callback(function, self._people)
        self.declared.set(self.declared.value)

    def answer_questions(self, function: Callable[..., Any]) -> None:
        """Let a function answer questions.

        Raises:
            UsageError: There is one already.
        """
        if self.question is not None:
            raise _second("questions")
        self.question = Callback(function, self._people)
        self.declared.set(self.declared.value)


def _second(what: str) -> UsageError:
    return UsageError(
        f"There is a function that answers {what} already; let that one decide what others should."
    )


def _takes_two(function: Callable[..., Any]) -> bool:
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # a function that C made
        return False
    needed = (
        parameter
        for parameter in parameters
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    )
    return len(list(needed)) > 1
