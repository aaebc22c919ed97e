"""The sets of tools that there are: our own, installed ones, and those that settings name.

```toml
[project.entry-points."towline.tools"]
acme = "acme_tools:tools"   # a Tool, a function, a list of these, or a function that returns them
```

```toml
# config.toml
tools = ["my_package.tools:weather", "-coding"]   # one more, and a set that is switched off
```
"""

import inspect
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, cast

import msgspec

from towline_agent.extension import Extension, installed_extensions, named_extensions
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.tool import Tool
from towline_agent.tools.toolset import Toolset
from towline_protocol import UsageError

__all__ = ["TOOL_GROUP", "FoundTools", "ToolSet", "find_tools"]

TOOL_GROUP: Final = "towline.tools"
"""The group of entry points."""

_OFF: Final = "-"
_WEB: Final = frozenset({"web_fetch", "http_request", "screenshot_page"})
_CODING_TOO: Final = frozenset({"job"})
"""What touches nothing but what a tool of that set has begun."""


class ToolSet(msgspec.Struct, frozen=True, kw_only=True):
    """Tools that come together and are switched off together (A4.64)."""

    name: str
    """`coding`, `web`, `basic`, the name of an entry point, or `pkg.module:name`."""
    tools: tuple[Tool, ...]
    """Its tools."""


class FoundTools(msgspec.Struct, frozen=True, kw_only=True):
    """What there is."""

    sets: tuple[ToolSet, ...]
    """In the order a model should read them."""
    notices: tuple[str, ...] = ()
    """For people: what is broken and what to do (A4.65)."""

    @property
    def tools(self) -> tuple[Tool, ...]:
        """All tools; their names differ."""
        return tuple(tool for found in self.sets for tool in found.tools)


def find_tools(settings: Sequence[str] = ()) -> FoundTools:
    """All sets that are on: our own, those of installed packages, and those that settings name.

    Our own are `coding` (files and programs), `web` and `basic`. A set whose tool has the name of
    an earlier one is left out with a notice.

    Args:
        settings: `pkg.module:name` adds what stands there, `-NAME` switches a set off.
    """
    off = {entry.removeprefix(_OFF) for entry in settings if entry.startswith(_OFF)}
    named = [entry for entry in settings if not entry.startswith(_OFF) and entry not in off]
    found = [made for made in _own() if made.name not in off]
    notices: list[str] = []
    for loaded in (installed_extensions(TOOL_GROUP, off=off), named_extensions(named)):
        notices.extend(loaded.notices)
        for extension in loaded.found:
            try:
                found.append(_added(extension, found))
            except UsageError as error:
                notices.append(f"The tools of {extension.name!r} were left out. {error.message}")
    return FoundTools(sets=tuple(found), notices=tuple(notices))


def _own() -> tuple[ToolSet, ...]:
    """What reaches the machine can be switched off by itself."""
    ours = builtin_tools()
    coding = tuple(tool for tool in ours if tool.effect != "own" or tool.name in _CODING_TOO)
    return (
        ToolSet(name="coding", tools=tuple(tool for tool in coding if tool.name not in _WEB)),
        ToolSet(name="web", tools=tuple(tool for tool in ours if tool.name in _WEB)),
        ToolSet(name="basic", tools=tuple(tool for tool in ours if tool not in coding)),
    )


def _added(extension: Extension, before: Iterable[ToolSet]) -> ToolSet:
    taken = [tool for made in before for tool in made.tools]
    made = Toolset([*taken, *_tools(extension)])
    return ToolSet(name=extension.name, tools=tuple(made.values())[len(taken) :])


def _tools(extension: Extension) -> list[Tool | Callable[..., Any]]:
    value = extension.value
    if _is_maker(value):
        try:
            value = value()
        except (Exception, SystemExit) as error:  # another package's code makes them (A4.65)
            raise UsageError(f"Making them failed with {type(error).__name__}; mend it.") from error
    items: list[Any] = list(cast("Any", value)) if isinstance(value, list | tuple) else [value]
    for item in items:
        if not isinstance(item, Tool) and not inspect.isroutine(item):
            raise UsageError(
                f"There stands {type(item).__name__!r}; make it a Tool, a function, a list of "
                "these, or a function without parameters that returns them."
            )
    return items


def _is_maker(value: Any) -> bool:
    # A tool without parameters is marked with `@tool`, or stands in a list.
    if not inspect.isfunction(value) or inspect.iscoroutinefunction(value):
        return False
    return not inspect.signature(value).parameters
