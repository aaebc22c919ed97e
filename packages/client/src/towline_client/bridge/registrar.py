"""How a program registers what it answers by itself."""

from collections.abc import Callable
from typing import Any, TypeVar, overload

from towline_client.bridge.handlers import Handlers
from towline_client.bridge.tool import bind_tool

__all__ = ["Registrar"]

_F = TypeVar("_F", bound=Callable[..., Any])


class Registrar:
    """Registers the tools and the answers of a program; `Client` is this with a server.

    What is registered counts in every session that the client opens, also in those that are open. A
    function may be async or plain; a plain one runs in a thread, which a cancel cannot stop.
    """

    def __init__(self) -> None:
        self._handlers = Handlers()

    @overload
    def tool(self, function: _F, /) -> _F: ...

    @overload
    def tool(
        self,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: str = "write",
        idempotent: bool = False,
        timeout_s: float = 120.0,
    ) -> Callable[[_F], _F]: ...

    def tool(
        self,
        function: Callable[..., Any] | None = None,
        /,
        *,
        name: str | None = None,
        description: str | None = None,
        effect: str = "write",
        idempotent: bool = False,
        timeout_s: float = 120.0,
    ) -> Callable[..., Any]:
        """Let agents call a function of this program; a decorator, used bare or with arguments.

        ```python
        @client.tool(effect="read")
        async def locate(precise: bool = False) -> dict[str, float]:
            \"\"\"Where this phone is, as latitude and longitude.\"\"\"
            ...
        ```

        The schema comes from the signature and the docstring. A first parameter annotated
        `CallContext` is filled in and shows progress. What the function returns goes to the model:
        text, `Text` and `Image` blocks as they are, all else as JSON. What it raises is told as an
        error: the words of a `CallFailed`, of all else the type alone.

        A call is claimed before it runs, by one client, and is answered once. When it ends
        elsewhere (an interrupt, its deadline), the function is cancelled. The function itself is
        given back and can be called as before.

        Args:
            function: The function.
            name: The tool's name; the function's when left out.
            description: What the model is told; the docstring's words before its sections when
                left out.
            effect: `read`, `write`, `exec` or `network`; counts where the agent trusts its clients.
            idempotent: Whether running it twice is harmless.
            timeout_s: Seconds from the offer to the deadline, 1 to 600.

        Raises:
            UsageError: The function can't be a tool, or there is one of its name.
        """

        def register(made: _F) -> _F:
            self._handlers.add(
                bind_tool(
                    made,
                    self._handlers.threads,
                    name=name,
                    description=description,
                    effect=effect,
                    idempotent=idempotent,
                    timeout_s=timeout_s,
                )
            )
            return made

        return register if function is None else register(function)

    def on_permission(self, function: _F) -> _F:
        """Let a function answer permission requests; a decorator.

        It gets the `PermissionRequested`, and the session's id if it takes two arguments. It
        returns the id of an option, an `Option`, or `None` to leave the request to others; so does
        an exception. Nobody's answer is a no: the server denies at the deadline. When somebody else
        answers first, the function is cancelled.

        Raises:
            UsageError: There is one already.
        """
        self._handlers.answer_permissions(function)
        return function

    def on_question(self, function: _F) -> _F:
        """Let a function answer questions; a decorator.

        It gets the `QuestionAsked`, and the session's id if it takes two arguments. It returns the
        answers by item, as `Session.answer_question` takes them, or `None` to leave the question to
        others; so does an exception.

        Raises:
            UsageError: There is one already.
        """
        self._handlers.answer_questions(function)
        return function
