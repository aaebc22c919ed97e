"""What people have said and no turn has taken yet: admitted, withdrawn, said anew (C2.11)."""

from typing import Final

import msgspec

from towline_agent import Mint
from towline_protocol import (
    Block,
    Limits,
    Notice,
    PromptAccepted,
    PromptAdmitted,
    PromptId,
    PromptWithdrawn,
    Reverted,
    SessionView,
    TurnId,
)
from towline_server.errors import InboxFull, Rejected, SessionBusy, SessionGone, SessionNotFound
from towline_server.sessions.log import Log

__all__ = ["MAX_INBOX", "WHEN", "Inbox", "Said"]

MAX_INBOX: Final = 32
"""Prompts that may wait in a session (C6)."""
WHEN: Final = ("auto", "queue", "steer", "reject")
"""When something that is said may run (C2.11)."""


class Said(msgspec.Struct, frozen=True, kw_only=True):
    """Something that a person says to a session."""

    content: tuple[Block, ...]
    """Its blocks."""
    when: str = "auto"
    """`auto`, `queue`, `steer` or `reject`."""
    key: str | None = None
    """The client's own key."""
    limits: Limits | None = None
    """Bounds of the turn; `None` for the agent's own."""
    speak: bool = False
    """Whether the turn's end should say what to read aloud (A4.30)."""
    notices: tuple[Notice, ...] = ()
    """What all who look on are told of it, such as which files go along (A5.79)."""


class Inbox:
    """The prompts of one session that wait for a turn. Emits; whoever calls it settles."""

    def __init__(self, log: Log, mint: Mint) -> None:
        self.shut = False
        """Whether the session is being closed: nothing more is taken."""
        self._log = log
        self._mint = mint

    def take(self, said: Said, *, position: int | None = None) -> PromptAccepted:
        """Emit a prompt's admission.

        Args:
            said: What is said.
            position: How many prompts go before it; `None` for all that wait.
        """
        prompt = PromptId(self._mint("pmt"))
        if position is None:
            position = len(self._log.ahead.view.queue)
        self._log.emit(
            PromptAdmitted(
                prompt=prompt,
                content=said.content,
                when=said.when,
                key=said.key,
                position=position,
                limits=said.limits,
                speak=said.speak,
            ),
            outside=True,
        )
        for notice in said.notices:
            self._log.emit(notice, outside=True)
        return PromptAccepted(prompt=prompt, position=position, session=self._log.session)

    def withdraw(self, prompt: PromptId) -> None:
        """Take a waiting prompt back.

        Raises:
            SessionGone: A turn has taken it already.
            SessionNotFound: There was never such a prompt.
        """
        state = self._log.ahead
        if prompt in state.withdrawn:
            return  # the same wish again
        if any(queued.prompt == prompt for queued in state.view.queue):
            self._log.emit(PromptWithdrawn(prompt=prompt), outside=True)
        elif prompt in state.delivered:
            raise SessionGone(
                f"The prompt {prompt!r} has reached its turn; stop the turn instead.",
                reason="delivered",
            )
        else:
            raise SessionNotFound(
                f"No prompt {prompt!r} waits here; read the session's view to see what does."
            )

    def say_again(self, turn: TurnId, said: Said | None, key: str | None) -> PromptAccepted:
        """Go back to before a turn and say its prompt again, or something else in its place.

        Args:
            turn: The turn that is undone, with all after it.
            said: What is said instead; `None` for the same again.
            key: The client's own key of the same again.

        Raises:
            SessionNotFound: There is no such turn.
            Rejected: It was summed up, or undone already: nothing can be put in its place.
        """
        opening = self.check_in_conversation(turn)
        self._log.emit(Reverted(to_turn=turn), outside=True)
        return self.take(said or Said(content=opening, key=key), position=0)

    def check_in_conversation(self, turn: TurnId) -> tuple[Block, ...]:
        """Refuse to go back to before a turn that the conversation has no more.

        Returns:
            What the turn's prompt said.

        Raises:
            SessionNotFound: There is no such turn.
            Rejected: It was summed up, or undone already.
        """
        state = self._log.ahead
        opening = state.transcript.opening(turn)
        if opening is not None:
            return opening
        if turn not in state.turns:
            raise SessionNotFound(
                f"There is no turn {turn!r} in this session; read its view to see them."
            )
        raise Rejected(
            f"The turn {turn!r} is no longer in the conversation: it was summed up or undone. "
            "Say it as a new prompt.",
            reason="turn_gone",
        )

    def check(self, when: str, *, busy: bool) -> None:
        """Refuse a prompt that cannot be taken now.

        Raises:
            SessionGone: The session is closed.
            SessionBusy: `when` is `reject` and a turn runs.
            InboxFull: Too many prompts wait.
        """
        view = self._log.ahead.view
        self.check_open(view)
        if when == "reject" and (busy or view.queue):
            raise SessionBusy(
                "A turn runs already; wait for its end, or send with when='queue'.",
                reason="turn_active",
            )
        if len(view.queue) >= MAX_INBOX:
            raise InboxFull(
                f"{MAX_INBOX} prompts wait already; wait until some of them have run.",
                retry_after_s=5,
                reason="inbox_full",
            )

    def check_open(self, view: SessionView) -> None:
        """Refuse everything to a closed session.

        Raises:
            SessionGone: It is closed, or is being closed right now.
        """
        if self.shut or view.closed is not None:
            raise SessionGone(
                f"The session {self._log.session!r} is closed; start a new one.", reason="closed"
            )
