"""The client for scripts that do not await.

```python
from towline_client.blocking import connect

with connect("http://127.0.0.1:4747", token) as client:
    session = client.open()
    print(session.ask("What time is it?"))
```

Written out here is what scripts need most. Everything else is one step away: `client.api` and
`session.api` are the `Client` and the `Session`, and `run` waits for any call of theirs, with its
own types: `client.run(client.api.models.list_models())`. All clients of a process share one loop in
one daemon thread (D13), so this works in notebooks too; the line to a session goes on in it while
the script does something else.
"""

import asyncio
import os
import threading
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping, Sequence
from enum import Enum
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar, Unpack

from towline_client.caller import Credential
from towline_client.client import Client
from towline_client.options import CallOptions
from towline_client.pump import SessionEvent
from towline_client.scrollback import Scrollback
from towline_client.session import Session
from towline_client.transport import Transport
from towline_protocol import (
    CreateSession,
    Interrupted,
    Limits,
    PermissionAnswered,
    PermissionId,
    PermissionRequested,
    PromptAccepted,
    PromptBlock,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    SessionId,
    SessionView,
    TurnDiff,
    TurnId,
    TurnReverted,
    UsageError,
)

__all__ = ["BlockingClient", "BlockingSession", "connect"]

_T = TypeVar("_T")

_TIDY_S: Final = 10.0  # for a call that was interrupted to put away what it holds


def connect(
    url: str,
    credential: Credential = None,
    *,
    transport: Transport | None = None,
    scrollback: Scrollback | None = None,
) -> "BlockingClient":
    """A client for a script; nothing is sent yet. Use it as a context, or close it.

    Args:
        url: The server's address.
        credential: A token, or an async function that is asked for one before every request.
        transport: How requests travel; HTTP when left out. The client closes it.
        scrollback: Where finished messages are kept, to be shown before the server answers;
            `None` for nowhere. The client closes it.

    Raises:
        UsageError: The address cannot be used.
    """
    return BlockingClient(Client(url, credential, transport=transport, scrollback=scrollback))


class BlockingClient:
    """A `Client` whose calls return when they are done. Any thread may use it."""

    def __init__(self, api: Client) -> None:
        self.api = api
        """The client itself; its calls go through `run`."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def open(
        self, session: SessionId | str | None = None, *, new: CreateSession | None = None
    ) -> "BlockingSession":
        """Take up the line to a session, as `Client.open`.

        Args:
            session: Its id; `None` makes a new one.
            new: What a new session is made of.
        """
        return BlockingSession(self.run(self.api.open(session, new=new)))

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do what `api` can do, and wait for it: `client.run(client.api.me())`.

        Raises:
            UsageError: It is called on the loop that it would wait for.
        """
        return _background.run(work)

    def close(self) -> None:
        """Close every session's line and all connections. Idempotent."""
        self.run(self.api.close())


class BlockingSession:
    """A `Session` whose calls return when they are done. Any thread may use it."""

    def __init__(self, api: Session) -> None:
        self.api = api
        """The session itself; its calls go through `run`."""
        self.id = api.id
        """The session's id."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def view(self) -> SessionView:
        """The newest view."""
        return self.api.view

    @property
    def views(self) -> Iterator[SessionView]:
        """The view as it stands, then each newer one; skips what the script was too slow for."""
        return _each(self.api.views)

    @property
    def events(self) -> Iterator[SessionEvent]:
        """What happened since the session was opened here, in order; for one reader."""
        return _each(self.api.events)

    def ask(
        self,
        text: str,
        *,
        limits: Limits | None = None,
        others_answer: bool = False,
        **options: Unpack[CallOptions],
    ) -> str:
        """Say something, wait for the turn's end and return its last text; as `Session.ask`."""
        return self.run(self.api.ask(text, limits=limits, others_answer=others_answer, **options))

    def wait_for(self, accepted: PromptAccepted, *, others_answer: bool = False) -> str:
        """Wait for the end of a prompt's turn and return its last text; as `Session.wait_for`."""
        return self.run(self.api.wait_for(accepted, others_answer=others_answer))

    def prompt(
        self,
        content: str | Sequence[PromptBlock],
        *,
        when: str = "auto",
        limits: Limits | None = None,
        **options: Unpack[CallOptions],
    ) -> PromptAccepted:
        """Say something; it is durable when this returns; as `Session.prompt`."""
        return self.run(self.api.prompt(content, when=when, limits=limits, **options))

    def interrupt(self, turn: TurnId | None = None, **options: Unpack[CallOptions]) -> Interrupted:
        """Stop the running turn; as `Session.interrupt`."""
        return self.run(self.api.interrupt(turn, **options))

    def answer(
        self,
        request: PermissionRequested | PermissionId,
        option: str,
        *,
        note: str | None = None,
        **options: Unpack[CallOptions],
    ) -> PermissionAnswered:
        """Decide a permission request; as `Session.answer`."""
        return self.run(self.api.answer(request, option, note=note, **options))

    def answer_question(
        self,
        question: QuestionAsked | QuestionId,
        answers: Mapping[str, str | Sequence[str]],
        **options: Unpack[CallOptions],
    ) -> QuestionAnswered:
        """Answer all items of a question; as `Session.answer_question`."""
        return self.run(self.api.answer_question(question, answers, **options))

    def diff(self, turn: TurnId, **options: Unpack[CallOptions]) -> TurnDiff:
        """What a turn did to files, its first page; as `session.files.diff`."""
        return self.run(self.api.files.diff(turn, **options))

    def revert(
        self,
        turn: TurnId,
        *,
        skip_conflicts: bool = False,
        conversation: bool = False,
        **options: Unpack[CallOptions],
    ) -> TurnReverted:
        """Put files back to what they were before a turn; as `session.files.revert`."""
        return self.run(
            self.api.files.revert(
                turn, skip_conflicts=skip_conflicts, conversation=conversation, **options
            )
        )

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        """Do what `api` can do, and wait for it: `session.run(session.api.history())`.

        Raises:
            UsageError: It is called on the loop that it would wait for.
        """
        return _background.run(work)

    def close(self) -> None:
        """Let go of the line; the session itself lives on. Idempotent."""
        self.run(self.api.close())


class _Background:
    """One loop in one daemon thread, made on first use."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._parents: list[asyncio.AbstractEventLoop] = []

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        if threading.current_thread() is self._thread:
            work.close()
            raise UsageError(
                "This runs on the loop that the call would wait for; await the call of `api`."
            )
        loop, job = self._living_loop(), _Job(work)
        try:
            return asyncio.run_coroutine_threadsafe(job.run(), loop).result()
        finally:
            if not job.ended.is_set():  # Ctrl-C ends the call, not the loop
                loop.call_soon_threadsafe(job.give_up)
                job.ended.wait(_TIDY_S)

    def leave_parent(self) -> None:
        """Forget the thread: a forked child has none."""
        self._lock = threading.Lock()
        if self._loop is not None:
            self._parents.append(self._loop)  # closing it would reach the parent's own
        self._loop = self._thread = None

    def _living_loop(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None:
                loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=loop.run_forever, name="towline-blocking", daemon=True
                )
                self._thread.start()
                self._loop = loop  # last: after a Ctrl-C in between, the next call begins anew
            return self._loop


class _Job(Generic[_T]):
    """One call on the loop, which may be given up at any moment, even before it has begun."""

    def __init__(self, work: Coroutine[Any, Any, _T]) -> None:
        self.ended = threading.Event()
        self._work = work
        self._task: asyncio.Task[Any] | None = None

    async def run(self) -> _T:
        self._task = asyncio.current_task()
        if self.ended.is_set():
            raise asyncio.CancelledError
        try:
            return await self._work
        finally:
            self.ended.set()

    def give_up(self) -> None:
        if self._task is not None:
            self._task.cancel()
            return
        self._work.close()
        self.ended.set()


_background: Final = _Background()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_background.leave_parent)


class _End(Enum):
    """Stands where a flow has ended."""

    END = "end"


def _each(flow: AsyncIterator[_T]) -> Iterator[_T]:
    """What a flow gives, one by one as it is asked for."""
    while not isinstance(item := _background.run(_next(flow)), _End):
        yield item


async def _next(flow: AsyncIterator[_T]) -> _T | _End:
    return await anext(flow, _End.END)
