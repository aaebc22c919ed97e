"""Tools that run in this program, made of functions (C5.12)."""

import inspect
import re
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, Final

import msgspec

from towline_client.bridge.threads import Threads
from towline_client.errors import CallFailed
from towline_protocol import CallId, ClientTool, SessionId, UsageError, read_signature

__all__ = ["BoundTool", "CallContext", "bind_tool", "call_function"]

_NAME: Final = r"[A-Za-z_][A-Za-z0-9_-]{0,63}"
_EFFECTS: Final = ("read", "write", "exec", "network")
_LEAST_S: Final = 1.0
_MOST_S: Final = 600.0


class CallContext:
    """What a running tool knows of its call. The function's first parameter may be annotated so."""

    def __init__(
        self,
        call: CallId,
        *,
        session: SessionId,
        expires_at: str,
        show: Callable[[str, float | None], None],
    ) -> None:
        self.call = call
        """The call's id."""
        self.session = session
        """The session that it belongs to."""
        self.expires_at = expires_at
        """When the result must be there, RFC 3339 server time."""
        self._show = show

    def progress(self, text: str, fraction: float | None = None) -> None:
        """Show how far the call is. Does not wait; of many in a row the newest is shown.

        Args:
            text: One line.
            fraction: From 0 to 1; `None` when unknown.
        """
        self._show(text, fraction)


class BoundTool(msgspec.Struct, frozen=True, kw_only=True):
    """A tool and the function behind it."""

    declared: ClientTool
    """What the server is told."""
    run: Callable[[CallContext, str], Awaitable[object]]
    """Takes the arguments as JSON text; gives what the function returned."""

    @property
    def harmless(self) -> bool:
        """Whether running it twice does no harm."""
        return self.declared.idempotent or self.declared.effect == "read"


def bind_tool(
    function: Callable[..., Any],
    threads: Threads,
    *,
    name: str | None,
    description: str | None,
    effect: str,
    idempotent: bool,
    timeout_s: float,
) -> BoundTool:
    """Make a tool of a function; see `Registrar.tool`.

    Raises:
        UsageError: The function can't be a tool; the message says why.
    """
    named = name or getattr(function, "__name__", type(function).__name__)
    _check(named, function, effect, timeout_s)
    signature = read_signature(function, named, context=CallContext)

    async def run(context: CallContext, arguments: str) -> object:
        try:
            filled = signature.fill(msgspec.json.decode(arguments.strip() or "{}"))
        except (msgspec.DecodeError, RecursionError) as error:
            raise CallFailed(
                f"The arguments of {named} do not fit: {str(error).rstrip('.')}."
            ) from error
        first = (context,) if signature.takes_context else ()
        return await call_function(partial(function, *first, **filled), function, threads)

    declared = ClientTool(
        name=named,
        description=description or signature.summary or named.replace("_", " "),
        parameters=signature.schema,
        effect=effect,
        idempotent=idempotent,
        timeout_s=timeout_s,
    )
    return BoundTool(declared=declared, run=run)


async def call_function(
    call: Callable[[], Any], function: Callable[..., Any], threads: Threads
) -> Any:
    """Await what a function gives: an async one in the loop, a plain one in a thread.

    Args:
        call: Calls it with its arguments.
        function: The function itself.
        threads: Where it runs if it is plain.
    """
    made = call() if _is_async(function) else await threads.run(call)
    return await made if inspect.isawaitable(made) else made


def _check(name: str, function: Callable[..., Any], effect: str, timeout_s: float) -> None:
    if re.fullmatch(_NAME, name) is None:
        raise UsageError(
            f"{name!r} can't be a tool's name; use 1 to 64 letters, digits, `_` and `-`, "
            "beginning with a letter or `_`."
        )
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(f"Tool {name!r} yields; return its result instead.")
    if effect not in _EFFECTS:
        raise UsageError(
            f"Tool {name!r} has the effect {effect!r}; use one of {', '.join(_EFFECTS)}."
        )
    if not _LEAST_S <= timeout_s <= _MOST_S:
        raise UsageError(
            f"Tool {name!r} has timeout_s={timeout_s!r}; it takes {_LEAST_S:g} to {_MOST_S:g} "
            "seconds."
        )


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async `__call__`
    )
