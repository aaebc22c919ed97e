"""What an agent keeps of its own, as its model is told of it: its plan and its notes (A5.36)."""

import hashlib
import logging
from pathlib import Path
from typing import Final

import msgspec

from towline_agent import Notes, Plan, Tool, ToolError, make_memory_tools, remind_todos
from towline_server.sessions.log import Log

__all__ = ["OwnThings", "notes_of", "tell_notes"]

_log: Final = logging.getLogger("towline.server")


def notes_of(folder: Path, user: str) -> Notes:
    """The notes of one user on all projects.

    Args:
        folder: The folder of all users' notes: `notes` in the data folder.
        user: The user.
    """
    # A user's name may be no name of a folder.
    return Notes(folder / hashlib.sha256(user.encode()).hexdigest()[:16])


def tell_notes(text: str) -> str:
    """What a model's instructions say of its notes.

    Args:
        text: The notes, not empty.
    """
    return f"Your notes on this project, by write_memory:\n\n{text}"


class OwnThings:
    """The plan and the notes of one session's agent.

    Args:
        log: The session's way into the store.
        notes: The folder of all users' notes; `None` where there are none.
    """

    def __init__(self, log: Log, notes: Path | None) -> None:
        self._log = log
        self._notes = None if notes is None else notes_of(notes, log.user)

    def tools(self) -> tuple[Tool, ...]:
        """The tools of the notes."""
        return () if self._notes is None else make_memory_tools(self._notes)

    async def remind(self, plan: Plan, *, notes: bool) -> Plan:
        """A plan whose model knows its notes from the beginning, and its todos with each step.

        Args:
            plan: The plan.
            notes: Whether the agent keeps notes.
        """

        def reminders() -> tuple[str, ...]:
            return (*plan.reminders(), *remind_todos(self._log.ahead.view.todos))

        system = plan.system
        text = await self._read(plan.workspace.root) if notes else ""
        if text:
            # In the system prompt, which is cached: they change seldom.
            system = f"{system}\n\n{tell_notes(text)}"
        return msgspec.structs.replace(plan, system=system, reminders=reminders)

    async def _read(self, root: str) -> str:
        if self._notes is None:
            return ""
        try:
            return await self._notes.read(root)
        except ToolError as error:  # a turn does without them
            _log.error("Session %s: %s", self._log.session, error.message)
            return ""
