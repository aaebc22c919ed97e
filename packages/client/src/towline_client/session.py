"""One session as a program holds it."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Unpack

from towline_client.bridge.bridge import Bridge
from towline_client.caller import Caller
from towline_client.courier import Courier
from towline_client.errors import ConnectionLost, PersonNeeded, TurnUnfinished
from towline_client.flow import Latest
from towline_client.options import CallOptions
from towline_client.outcome import Outcome, PromptWatch, follow_prompt
from towline_client.pump import Connection, Pump, SessionEvent
from towline_client.screen import Screen
from towline_client.talk import Talk
from towline_protocol import Limits, Presentation, PromptAccepted, SessionId, SessionView

__all__ = ["Session"]


class Session(Talk):
    """A durable conversation and the line to it. `Client.open` makes it; close it when done.

    The line reconnects by itself; commands do not wait for it. What a flow gives:

    - `events`: each stored event once, in order, deltas as they come, and a `Rebuilt` where events
      are missing. For one reader; what it has not read yet waits.
    - `views`: the newest view; a slow reader skips older ones. For any number of readers.
    - `connection`: how the line is. For any number of readers.

    All three end when the session is closed; `events` and `views` raise what made the line give up.
    """

    def __init__(
        self,
        id: SessionId,  # noqa: A002 - its name
        *,
        caller: Caller,
        courier: Courier,
        screen: Screen,
        pump: Pump,
        bridge: Bridge,
    ) -> None:
        super().__init__(id, reader=pump.reader, caller=caller, courier=courier, views=screen.views)
        self._pump = pump
        self._screen = screen
        self._attended: frozenset[str] = frozenset()
        self._bridge = bridge
        self._task = asyncio.create_task(self._live(), name=f"line of {id}")

    @property
    def closed(self) -> bool:
        """Whether the line is over: closed here, or the session's end was read."""
        return self._task.done()

    @property
    def views(self) -> AsyncIterator[SessionView]:
        """The view as it stands, then each newer one."""
        return aiter(self._views)

    @property
    def events(self) -> AsyncIterator[SessionEvent]:
        """What happened since the session was opened here, in order."""
        return aiter(self._pump.events)

    @property
    def connection(self) -> Latest[Connection]:
        """The line: `.value` is how it is now, iterating gives each change."""
        return self._pump.connection

    @property
    def presentation(self) -> Presentation:
        """How much of what is being written the views show; setting it counts from the next block.

        It changes what is shown alone: `events` and the log have everything.
        """
        return self._screen.presentation

    @presentation.setter
    def presentation(self, presentation: Presentation) -> None:
        """Show as much as this from the next block on."""
        self._screen.choose(presentation)

    @property
    def broken(self) -> int:
        """Frames that could not be read and were skipped (C1.11)."""
        return self._pump.broken

    @property
    def server_now(self) -> str | None:
        """The server's clock when the line last came up; deadlines run in server time."""
        return self._pump.server_now

    def attend(self, kinds: Iterable[str]) -> None:
        """Say what this program answers by itself as it comes, so that `ask` waits for it.

        Args:
            kinds: `permission`, `question`; none for what nothing here answers.
        """
        self._attended = frozenset(kinds)

    async def ask(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        others_answer: bool = False,
        **options: Unpack[CallOptions],
    ) -> str:
        """Say something, wait for the turn's end and return its last text.

        A turn may need a person: a permission, an answer to a question. Nothing here gives it, so
        this raises `PersonNeeded` then, and the turn waits at the server. Answer with `answer` or
        `answer_question`, and `wait_for` the rest; or ask with `others_answer=True`, when somebody
        looks at the session elsewhere. What `Client.on_permission` and `on_question` answer is
        waited for, and what `attend` names.

        Args:
            text: The words.
            limits: Bounds of the turn.
            others_answer: Whether to wait while the turn waits for a person.
            options: Those of `prompt`; bound the whole with `asyncio.timeout`.

        Raises:
            PersonNeeded: The turn waits for a person; it goes on with the answer.
            TurnUnfinished: The turn failed or was stopped; the message says why.
            ClientError: The prompt was refused, or the line was given up.
        """
        accepted = await self.prompt(text, limits=limits, **options)
        return await self.wait_for(accepted, others_answer=others_answer)

    async def wait_for(self, accepted: PromptAccepted, *, others_answer: bool = False) -> str:
        """Wait for the end of a prompt's turn and return its last text; raises as `ask` does.

        Args:
            accepted: What `prompt`, `retry`, `resend` gave, or a `PersonNeeded` holds.
            others_answer: Whether to wait while the turn waits for a person.
        """
        watch = PromptWatch(prompt=accepted.prompt, turn=accepted.turn)
        async for view in self.views:
            watch, outcome = follow_prompt(watch, view)
            if outcome is not None:
                return _text_of(outcome)
            if not others_answer:
                self._check_person(accepted, view)
        raise ConnectionLost("The session was closed before the turn ended; open it again.")

    def start(self) -> None:
        """Take the line up again, after `stop` or after it was given up. Idempotent.

        Within a minute after `stop` it goes on where it stood. Later, when a turn was running then,
        the view comes anew first.
        """
        self._pump.start()

    def stop(self) -> None:
        """Do without the line for a while, as in the background; nothing is lost. Idempotent.

        What is said here meanwhile is sent all the same.
        """
        self._pump.stop()

    def retry_now(self) -> None:
        """Connect at once instead of at `connection.value.next_try_ms`: the network is back.

        Idempotent; means nothing while no try is waited for.
        """
        self._pump.retry_now()

    async def close(self) -> None:
        """Let go of the line; the session itself lives on. Idempotent.

        Nothing that was said here is sent again. Tools that run are cancelled, and their calls
        answered with that; the tools of a line without a name of its own are taken back. A bug in
        the line comes out here, unless a flow has raised it already.
        """
        await self._bridge.leave()
        self._courier.close()
        self._pump.close()
        await asyncio.wait([self._task])
        if not self._task.cancelled():
            self._task.result()

    async def _live(self) -> None:
        """Own the line and what is answered over it; the first bug in them comes out here."""
        try:
            async with asyncio.TaskGroup() as group:
                answering = group.create_task(self._bridge.run(self))
                await self._pump.run()
                answering.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from errors

    def _check_person(self, accepted: PromptAccepted, view: SessionView) -> None:
        """Raise when the view waits for somebody and nothing here will answer."""
        permissions = tuple(
            request
            for request in view.permissions
            if request.permission not in self._answered and not self._bridge.will_answer(request)
        )
        questions = tuple(
            question
            for question in view.questions
            if question.question not in self._answered and not self._bridge.will_answer(question)
        )
        if "permission" in self._attended:
            permissions = ()
        if "question" in self._attended:
            questions = ()
        if permissions or questions:
            raise PersonNeeded(accepted, permissions=permissions, questions=questions)


def _text_of(outcome: Outcome) -> str:
    if outcome.kind == "completed":
        return outcome.text
    why = outcome.fault.message if outcome.fault is not None else outcome.text
    raise TurnUnfinished(
        f"The turn was {outcome.kind}: {why}", outcome=outcome.kind, fault=outcome.fault
    )
