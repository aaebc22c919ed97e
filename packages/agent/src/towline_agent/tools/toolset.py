"""What a model may call, by name and in order."""

import functools
from collections.abc import Callable, Iterable, Iterator, Mapping, ValuesView
from typing import Any

from towline_agent.providers.base import ToolSpec
from towline_agent.tools.function import check_name, tool
from towline_agent.tools.tool import Tool
from towline_protocol import UsageError

__all__ = ["Toolset"]


class Toolset(Mapping[str, Tool]):
    """Tools by name, in the order they were given, which is the order the model is told.

    Args:
        tools: Tools, and functions, which become tools as `@tool` makes them.

    Raises:
        UsageError: A function can't be a tool, or a name is bad or there twice.
    """

    def __init__(self, tools: Iterable[Tool | Callable[..., Any]] = ()) -> None:
        _check_list(tools)
        self._tools: dict[str, Tool] = {}
        for item in tools:
            made = item if isinstance(item, Tool) else tool(_checked(item))
            if check_name(made.name) in self._tools:
                raise UsageError(f"Two tools are called {made.name!r}; rename one.")
            self._tools[made.name] = made

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def values(self) -> ValuesView[Tool]:
        """The tools; `Mapping` would look each up by its name."""
        return self._tools.values()

    @functools.cached_property
    def specs(self) -> tuple[ToolSpec, ...]:
        """The tools as a model is told of them."""
        return tuple(
            ToolSpec(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in self._tools.values()
        )

    def __repr__(self) -> str:
        return f"Toolset({', '.join(self._tools)})"

    def explain_missing(self, name: str) -> str:
        """A sentence for a model that called a tool which is not here, with the nearest name."""
        if not self._tools:
            return f"There is no tool {name!r}; there are no tools at all. Answer in words."
        import difflib  # few calls are of a tool that is not here

        folded = {known.casefold(): known for known in self._tools}
        near = difflib.get_close_matches(name.casefold(), folded, n=1)
        hint = f" Did you mean {folded[near[0]]!r}?" if near else ""
        return f"There is no tool {name!r}.{hint} The tools are: {', '.join(self._tools)}."


def _checked(item: Any) -> Callable[..., Any]:
    if not callable(item):
        raise UsageError(f"'tools' can't hold {item!r}; give functions, and tools of `make_tool`.")
    return item


def _check_list(tools: object) -> None:
    if not isinstance(tools, Iterable) or isinstance(tools, str):
        raise UsageError(f"'tools' can't be {tools!r}; give a list of functions and tools.")
