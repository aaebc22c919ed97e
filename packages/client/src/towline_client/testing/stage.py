"""What the parts of a scripted server share."""

from collections.abc import Callable

from towline_client.testing.feed import ScriptedFeed
from towline_client.testing.log import ScriptedSession
from towline_client.testing.turn import Script
from towline_client.testing.turns import Turns
from towline_client.transport import Call, Reply
from towline_protocol import (
    Block,
    CreateSession,
    PromptAccepted,
    PromptAdmitted,
    PromptId,
    SessionCreated,
    SessionId,
    SessionInfo,
)

__all__ = ["Handler", "Stage"]


class Stage:
    """Sessions, files, the turns that run and the feed of the list."""

    def __init__(self, script: Script) -> None:
        self.sessions: dict[SessionId, ScriptedSession] = {}
        """The sessions."""
        self.deleted: set[SessionId] = set()
        """Ids of those that are no longer there."""
        self.files: dict[str, bytes] = {}
        """Files by their hash."""
        self.paths: list[str] = ["README.md", "src/", "src/app.py"]
        """What stands in the folder of every session."""
        self.commands: dict[str, str] = {}
        """Own commands: name to words."""
        self.trusted = False
        """Whether the folder of every session is trusted."""
        self.feed = ScriptedFeed()
        """The feed of the list."""
        self.turns = Turns(script, self.mint)
        """The turns that run."""
        self._minted = 0

    def mint(self, prefix: str) -> str:
        """A new id: later ones sort after earlier ones."""
        self._minted += 1
        return f"{prefix}_{self._minted:04d}"

    def add(
        self, new: CreateSession, log: str, *, forked_from: SessionId | None = None
    ) -> ScriptedSession:
        """A new session, with its first prompt if it has one."""
        id_ = SessionId(self.mint("ses"))
        session = ScriptedSession(id_, log, changed=lambda it: self.feed.tell(it.info))
        self.sessions[id_] = session
        session.emit(
            SessionCreated(
                agent=new.agent or "main",
                model=new.model or "scripted/model",
                mode=new.mode or "ask",
                title=new.title,
                cwd=new.cwd,
                forked_from=forked_from,
                tools=new.tools,
                labels=new.labels,
                limits=new.limits,
            )
        )
        if new.prompt is not None:
            self.admit(session, new.prompt, key=new.key)
        return session

    def admit(
        self,
        session: ScriptedSession,
        content: tuple[Block, ...],
        *,
        when: str = "auto",
        key: str | None = None,
        position: int | None = None,
    ) -> PromptAccepted:
        """Take a prompt, and run what waits.

        Args:
            session: Where it goes.
            content: Its blocks.
            when: How it asks to run.
            key: The client's own key.
            position: How many prompts go before it; `None` for all that wait.
        """
        prompt = PromptId(self.mint("pmt"))
        ahead = len(session.view.queue) if position is None else position
        session.emit(
            PromptAdmitted(prompt=prompt, content=content, when=when, key=key, position=ahead)
        )
        self.turns.start(session)
        return PromptAccepted(prompt=prompt, position=ahead, session=session.id)

    def rows(self) -> list[SessionInfo]:
        """The list, newest first."""
        return [session.info for session in reversed(self.sessions.values())]


Handler = Callable[[Stage, ScriptedSession, Call], Reply]
"""Answers one operation on a session."""
