"""What a session asks of a person at a terminal, and the answers that they type."""

from collections.abc import Awaitable, Callable

from towline.cli.answer import choose_option, invite_answer
from towline.cli.page import Page
from towline.cli.question import Answering, Form, decline, fill, invite, next_item
from towline.cli.visible import show_line
from towline_client import Session
from towline_protocol import DENY, PermissionRequested, QuestionId, SessionView, TowlineError

__all__ = ["Asked"]


class Asked:
    """The open permissions and questions of one session; each is answered here once.

    Args:
        session: The session.
        page: Where to write.
        run: Sends an answer, in line with all else that is sent.
        interrupt: Stops the turn, when that is the only answer left.
    """

    def __init__(
        self,
        session: Session,
        page: Page,
        *,
        run: Callable[[Awaitable[object]], None],
        interrupt: Callable[[], None],
    ) -> None:
        self._session = session
        self._page = page
        self._run = run
        self._interrupt = interrupt
        self._answered: set[str] = set()
        self._refused: set[str] = set()
        self._answering = Answering()

    def permissions(self, view: SessionView) -> list[PermissionRequested]:
        """The open permission requests that were not answered here, oldest first."""
        return [r for r in view.permissions if r.permission not in self._answered]

    def waits(self, view: SessionView) -> bool:
        """Whether the next line is an answer."""
        return bool(self.permissions(view)) or self._answering.current(view) is not None

    def take(self, view: SessionView, text: str) -> bool:
        """Take a line as the answer to what is asked first; `False` when nothing is asked."""
        requests = self.permissions(view)
        form = self._answering.current(view)
        if requests:
            self._answer(requests[0], text)
        elif form is not None:
            self._fill(form, text)
        return bool(requests) or form is not None

    def refuse_all(self, view: SessionView) -> None:
        """No line will come any more: nothing may wait for one."""
        for request in self.permissions(view):
            if request.permission not in self._refused:
                self._refused.add(request.permission)
                self._page.say("Nobody is left to answer, so it is denied.")
                self._decide(request, DENY)
        form = self._answering.current(view)
        if form is None or form.question.question in self._refused:
            return
        self._refused.add(form.question.question)
        answers = decline(form.question)
        if answers is None:
            self._page.say("Nobody is left to answer, so the turn is stopped.")
            self._interrupt()
        else:
            self._page.say("Nobody is left to answer, so the agent decides itself.")
            self._send_answers(form.question.question, answers)

    def _answer(self, request: PermissionRequested, text: str) -> None:
        self._page.echo(text)
        option, why_not = choose_option(request, text)
        if option is None:
            self._page.say(why_not)
            self._page.ask(f"  Answer ({show_line(invite_answer(request))}): ")
        else:
            self._decide(request, option)

    def _decide(self, request: PermissionRequested, option: str) -> None:
        self._answered.add(request.permission)
        self._run(self._send_answer(request, option))

    async def _send_answer(self, request: PermissionRequested, option: str) -> None:
        try:
            await self._session.answer(request, option)
        except TowlineError:
            self._answered.discard(request.permission)  # it may still be open
            raise

    def _fill(self, form: Form, text: str) -> None:
        self._page.echo(text)
        form, why_not = fill(form, text)
        self._answering.take(form)
        if why_not:
            self._page.say(why_not)
        if next_item(form) is None:
            self._send_answers(form.question.question, form.answers)
        else:
            self._page.ask(invite(form))

    def _send_answers(self, question: QuestionId, answers: dict[str, tuple[str, ...]]) -> None:
        self._answering.send(question)
        self._run(self._answer_question(question, answers))

    async def _answer_question(
        self, question: QuestionId, answers: dict[str, tuple[str, ...]]
    ) -> None:
        try:
            await self._session.answer_question(question, answers)
        except TowlineError:
            self._answering.take_back(question)
            raise
