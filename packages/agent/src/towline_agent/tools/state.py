"""What tools keep for one conversation between its calls."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from towline_agent.workspaces.base import Workspace

__all__ = ["ToolState"]

T = TypeVar("T")


class ToolState:
    """One object of each kind, made when a tool first asks for it.

    It lives as long as its conversation is in memory: what must outlive that stands in the log or
    in a file. What it holds may have `aclose`, `busy`, `refresh` and `remind`, see there.
    """

    def __init__(self) -> None:
        self._kept: dict[Any, Any] = {}

    def get(self, kind: Callable[[], T]) -> T:
        """The conversation's one object of this kind; made by calling it without arguments."""
        if kind not in self._kept:
            self._kept[kind] = kind()
        return cast("T", self._kept[kind])

    @property
    def busy(self) -> bool:
        """Whether something in it runs on, such as a background job: one has a true `busy`."""
        return any(getattr(kept, "busy", False) is True for kept in self._kept.values())

    async def refresh(self, workspace: Workspace) -> None:
        """Let what it holds look round before a request: all that have a `refresh(workspace)`."""
        for kept in tuple(self._kept.values()):
            refresh = getattr(kept, "refresh", None)
            if refresh is not None:
                await refresh(workspace)

    def remind(self) -> tuple[str, ...]:
        """What a model is reminded of (A4.12): all that the `remind()` of what it holds says."""
        words: list[str] = []
        for kept in self._kept.values():
            remind = getattr(kept, "remind", None)
            if remind is not None:
                words += remind()
        return tuple(words)

    async def aclose(self) -> None:
        """Close what it holds, the newest first; it may be used again."""
        while self._kept:
            _, kept = self._kept.popitem()
            close = getattr(kept, "aclose", None)
            if close is not None:
                await close()
