"""Permissions and questions that this program answers by itself."""

import asyncio
import functools
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, Generic, TypeVar, cast

from towline_client.bridge.contain import contain
from towline_client.bridge.handlers import Callback, Handlers
from towline_client.bridge.line import Line
from towline_client.bridge.patience import insist
from towline_client.clock import Clock
from towline_client.current import Current
from towline_client.errors import CommandRejected
from towline_protocol import (
    Option,
    PermissionRequested,
    QuestionAsked,
    TowlineError,
    UsageError,
)

__all__ = ["People"]

_log: Final = logging.getLogger("towline.client")

_R = TypeVar("_R", PermissionRequested, QuestionAsked)


class People:
    """What is done about the open requests of one session."""

    def __init__(self, handlers: Handlers, *, clock: Clock, on_decline: Callable[[], None]) -> None:
        """Begin with none.

        Args:
            handlers: The functions that answer.
            clock: Holds deadlines against the server's time.
            on_decline: Told that a request was left to others.
        """
        self._handlers = handlers
        self._permissions = _Kind[PermissionRequested](clock, _answer_permission, on_decline)
        self._questions = _Kind[QuestionAsked](clock, _answer_question, on_decline)

    def look(self, current: Current, line: Line, group: asyncio.TaskGroup) -> None:
        """Stop asking about what was answered elsewhere, and ask about what is new.

        Args:
            current: What is open by now.
            line: Where answers go.
            group: Owns the work.
        """
        view = current.view
        self._permissions.look(
            {request.permission: request for request in view.permissions},
            self._handlers.permission,
            current,
            line,
            group,
        )
        self._questions.look(
            {question.question: question for question in view.questions},
            self._handlers.question,
            current,
            line,
            group,
        )

    def will_answer(self, request: PermissionRequested | QuestionAsked) -> bool:
        """Whether a function has this request, or will have it."""
        if isinstance(request, PermissionRequested):
            kind, id_, callback = self._permissions, request.permission, self._handlers.permission
        else:
            kind, id_, callback = self._questions, request.question, self._handlers.question
        return callback is not None and id_ not in kind.declined


class _Kind(Generic[_R]):
    """The open requests of one kind. Each is asked about once, whatever its deadline does."""

    def __init__(
        self,
        clock: Clock,
        answer: Callable[[Line, _R, Any], Awaitable[None]],
        on_decline: Callable[[], None],
    ) -> None:
        self.declined: set[str] = set()
        """The ids of those that were left to others."""
        self._clock = clock
        self._answer = answer
        self._on_decline = on_decline
        self._asked: dict[str, asyncio.Task[None]] = {}

    def look(
        self,
        opened: Mapping[str, _R],
        callback: Callback | None,
        current: Current,
        line: Line,
        group: asyncio.TaskGroup,
    ) -> None:
        for id_ in [id_ for id_ in self._asked if id_ not in opened]:
            self._asked.pop(id_).cancel()
            self.declined.discard(id_)
        if callback is None:
            return
        for id_, request in opened.items():
            late = current.is_over(request.expires_at, self._clock.now_ms())
            if id_ not in self._asked and not late:
                work = self._ask(id_, request, callback, line)
                self._asked[id_] = group.create_task(work)

    async def _ask(self, id_: str, request: _R, callback: Callback, line: Line) -> None:
        """Ask the function and send its answer; nothing that it raises goes further."""
        try:
            work = self._ask_and_answer(id_, request, callback, line)
            if await contain(f"The function that answers {id_}", work):
                return
        except CommandRejected as error:
            _log.info("The answer to %s was left out: %s", id_, error.message)
            return
        except TowlineError as error:
            _log.error("The request %s is left to others: %s", id_, error.message)
        self.declined.add(id_)
        self._on_decline()

    async def _ask_and_answer(self, id_: str, request: _R, callback: Callback, line: Line) -> bool:
        """Whether there was an answer; raises whatever an odd one leads to."""
        said = await callback.ask(request, line.id)
        if said is not None:
            work = functools.partial(self._answer, line, request, said)
            await insist(work, f"The answer to {id_}", clock=self._clock)
        return said is not None


async def _answer_permission(line: Line, request: PermissionRequested, said: object) -> None:
    option = said.id if isinstance(said, Option) else said
    known = [each.id for each in request.options]
    if option not in known:
        raise UsageError(f"{option!r} is no option of this request; return one of {known}.")
    await line.answer(request, cast("str", option))


async def _answer_question(line: Line, question: QuestionAsked, said: object) -> None:
    if not isinstance(said, Mapping):
        raise UsageError(
            f"A function answered a question with {said!r}; return a mapping of item ids to "
            "answers, or None."
        )
    await line.answer_question(question, cast("Mapping[str, Any]", said))
