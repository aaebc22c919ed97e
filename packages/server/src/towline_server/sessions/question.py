"""Questions of one session: asked by its agent, answered once, or decided without an answer."""

import functools
from typing import Annotated, Any, Final

import msgspec

from towline_agent import (
    Clock,
    Tool,
    ToolContext,
    ToolError,
    ToolInputInvalid,
    ToolOutput,
    tool,
)
from towline_protocol import (
    CallId,
    Option,
    QuestionAnswered,
    QuestionAsked,
    QuestionId,
    QuestionItem,
    QuestionResolved,
    Text,
    parse_time,
)
from towline_server.auth.reserved_name import CANCEL, DEADLINE, RESERVED_NAMES
from towline_server.errors import AlreadyAnswered, Rejected, SessionGone, SessionNotFound
from towline_server.sessions.deadline import Deadline, OpenRequests, Patience
from towline_server.sessions.lead import Lead, Remember
from towline_server.sessions.log import Log

__all__ = ["ASK_USER", "MAX_ANSWER", "Answers", "Questions"]

ASK_USER: Final = "ask_user"
"""The name of the tool by which an agent asks."""
MAX_ANSWER: Final = 10_000
"""Characters of one answer in a person's own words: some pages."""

_MAX_ITEMS: Final = 8  # more of them is a form, which nobody fills in on a phone
_MAX_OPTIONS: Final = 12
_MAX_PROMPT: Final = 2_000
_MAX_LABEL: Final = 200

Answers = dict[str, tuple[str, ...]]
"""Item id to the ids of the options that were chosen, and own words."""

_Prompt = Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_PROMPT)]
_Label = Annotated[str, msgspec.Meta(min_length=1, max_length=_MAX_LABEL)]
_Labels = Annotated[list[_Label], msgspec.Meta(max_length=_MAX_OPTIONS)]


class _Wish(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One question, as a model puts it."""

    prompt: Annotated[_Prompt, msgspec.Meta(description="What you want to know.")]
    options: Annotated[_Labels, msgspec.Meta(description="Answers to choose from, if any.")] = []
    multiple: Annotated[bool, msgspec.Meta(description="Whether several may be chosen.")] = False
    free_text: Annotated[bool, msgspec.Meta(description="Whether own words are taken too.")] = True


_Wishes = Annotated[list[_Wish], msgspec.Meta(min_length=1, max_length=_MAX_ITEMS)]


class Questions:
    """Asks people what the agent wants to know, and takes their answers."""

    def __init__(
        self, log: Log, *, clock: Clock, patience: Patience, waiting: OpenRequests, lead: Lead
    ) -> None:
        self._log = log
        self._lead = lead
        self._clock = clock
        self._patience = patience
        self._waiting = waiting
        self._last_alive = log.view.updated

    def tool(self) -> Tool:
        """The tool `ask_user` of this session. It bounds itself: people take their time."""
        return msgspec.structs.replace(_declare(), run=self._run)

    async def _run(self, context: ToolContext, arguments: dict[str, Any]) -> ToolOutput:
        items = _to_items(arguments["items"])
        resolved = await self.ask(_question_of(context.call), items)
        return ToolOutput(content=(Text(text=_tell(items, resolved)),))

    async def ask(self, question: QuestionId, items: tuple[QuestionItem, ...]) -> QuestionResolved:
        """Ask people. While nobody is attached it ends without an answer at a deadline (C5.9).

        A question that a crash cut is asked again with its id (C5.8).
        """
        answered = self._log.ahead.answered
        if question in answered:  # somebody was quicker than the turn's resumption
            await self._log.settle()
            return answered[question]
        if self._lead.parent is not None:
            return await self._pass_on(question, items)
        by: str = CANCEL
        try:
            with self._waiting.hold(
                question,
                self._deadline(question),
                lambda until: self._log.emit(
                    QuestionAsked(question=question, items=items, expires_at=until)
                ),
            ) as waiting:
                await self._log.settle()
                await waiting.wait()
            by = DEADLINE
        finally:
            taken = answered.get(question)
            if taken is None:
                taken = QuestionResolved(question=question, answers={}, by=by)
                self._log.emit(taken)
        return taken

    async def resolve(
        self,
        question: QuestionId,
        answers: Answers,
        *,
        by: str,
        remember: Remember | None = None,
    ) -> Answers:
        """Take a person's answers; the first valid ones win (C5.10).

        They also count when the turn has not come to ask again yet, right after a restart.

        Returns:
            The answers that stand.

        Raises:
            SessionNotFound: There was never such a question.
            SessionGone: It ended before it was answered.
            AlreadyAnswered: Somebody answered otherwise.
            Rejected: The answers do not fit the question, which stays open.
            StoreError: They could not be kept.
        """
        if self._lead.parent is not None:
            desk = (await self._lead.boss()).questions
            return await desk.resolve(question, answers, by=by, remember=remember)
        earlier = self._log.ahead.answered.get(question)
        if earlier is not None:
            await self._log.settle()
            return _again(earlier, answers)
        asked = self._log.ahead.questions.get(question)
        if asked is None:
            raise SessionNotFound(
                f"There is no question {question!r} here; read the session's view."
            )
        _check(asked.items, answers)
        self._log.emit(QuestionResolved(question=question, answers=answers, by=by))
        self._waiting.answer(question)  # before anything can show it again
        if remember is not None:
            self._log.keep(remember(QuestionAnswered(answers=answers)))
        await self._log.settle()
        return answers

    async def _pass_on(
        self, question: QuestionId, items: tuple[QuestionItem, ...]
    ) -> QuestionResolved:
        """Ask in the session that this one works for, which people see (D5)."""
        self._log.emit(QuestionAsked(question=question, items=items))
        await self._log.settle()
        taken = QuestionResolved(question=question, answers={}, by=CANCEL)
        try:
            with self._lead.waits():
                desk = (await self._lead.boss()).questions
                taken = await desk.ask(question, _name(self._log.ahead.view.agent, items))
        finally:
            self._log.emit(taken)
        return taken

    def _deadline(self, question: QuestionId) -> Deadline:
        """None while somebody is attached; else the full time, or what was left of it (C5.8)."""
        open_since = self._log.ahead.questions.get(question)
        left_s = None
        if open_since is not None and open_since.expires_at is not None:
            left_ms = parse_time(open_since.expires_at) - parse_time(self._last_alive)
            left_s = left_ms / 1000
        return Deadline(
            self._clock.monotonic(),
            window_s=self._patience.question_s,
            away_s=self._patience.away_s,
            readers=self._log.hub.readers,
            left_s=left_s,
        )


@functools.cache
def _declare() -> Tool:
    """What the tools of all sessions share: making it takes a millisecond, and each turn needs one.

    A session puts its own `run` in.
    """

    @tool(
        name=ASK_USER,
        effect="own",
        idempotent=True,  # asked again after a crash, it finds its open question
        title=lambda arguments: _title(arguments["items"]),
        verify=_verify,
    )
    async def ask_user(items: _Wishes) -> str:
        """Ask the person you work for, and wait for the answers.

        Only for what you can't find out and what changes your work. Ask all at once.

        Args:
            items: The questions.
        """
        raise ToolError(f"There is nobody to ask about {items[0].prompt!r} here; decide yourself.")

    return msgspec.structs.replace(ask_user, timeout_s=None)


def _question_of(call: CallId) -> QuestionId:
    """A call asks one question; the id of the one leads to that of the other after a crash."""
    return QuestionId(f"qst_{call.removeprefix('call_')}")


def _title(wishes: list[_Wish]) -> str:
    more = len(wishes) - 1
    return f"Ask: {wishes[0].prompt}" + (f" (and {more} more)" if more else "")


def _verify(arguments: dict[str, Any]) -> None:
    """Refuse what a person could not answer."""
    wishes: list[_Wish] = arguments["items"]
    for wish in wishes:
        if not wish.prompt.strip() or not all(label.strip() for label in wish.options):
            raise ToolInputInvalid("A question or an option is empty; put it into words.")
        if len(set(wish.options)) < len(wish.options):
            raise ToolInputInvalid(f"{wish.prompt!r} offers an option twice; leave one out.")


def _to_items(wishes: list[_Wish]) -> tuple[QuestionItem, ...]:
    """Ids that nobody types as own words: an answer is an option or a text by what it says."""
    return tuple(
        QuestionItem(
            id=f"item_{number}",
            prompt=wish.prompt,
            options=tuple(
                Option(id=f"option_{place}", label=label)
                for place, label in enumerate(wish.options, 1)
            ),
            multiple=wish.multiple and len(wish.options) > 1,
            free_text=wish.free_text or not wish.options,
        )
        for number, wish in enumerate(wishes, 1)
    )


def _name(agent: str, items: tuple[QuestionItem, ...]) -> tuple[QuestionItem, ...]:
    """The items in the name of the agent that asks."""
    return tuple(msgspec.structs.replace(item, prompt=f"{agent}: {item.prompt}") for item in items)


def _check(items: tuple[QuestionItem, ...], answers: Answers) -> None:
    """Refuse answers that do not fit what was asked; none at all leave it to the agent."""
    if not answers:
        return
    unknown = answers.keys() - {item.id for item in items}
    if unknown:
        raise Rejected(f"{min(unknown)!r} is none of the question's items; leave it out.")
    for item in items:
        problem = _misfit(item, answers.get(item.id, ()))
        if problem is not None:
            raise Rejected(f"The answer to {item.id!r} {problem}", reason="answer_unfit")


def _misfit(item: QuestionItem, given: tuple[str, ...]) -> str | None:
    """What is wrong with the answer to one item; `None` when nothing is."""
    offered = {option.id for option in item.options}
    words = [answer for answer in given if answer not in offered]
    if not given:
        return "is missing; answer every item."
    if len(given) > 1 and not item.multiple:
        return "has several values; choose one."
    if len(set(given)) < len(given) or len(words) > 1:
        return "says the same or own words twice; say it once."
    if words and not item.free_text:
        return f"is {words[0][:_MAX_LABEL]!r}, which was not offered; take one of the options."
    if words and not words[0].strip():
        return "is empty; say something."
    if words and len(words[0]) > MAX_ANSWER:
        return f"has {len(words[0])} characters; {MAX_ANSWER} are the most."
    return None


def _again(earlier: QuestionResolved, answers: Answers) -> Answers:
    if earlier.by in RESERVED_NAMES:
        raise SessionGone("The question has ended without an answer.", reason="expired")
    if earlier.answers == answers:
        return answers  # the same again: a retry, not a conflict
    raise AlreadyAnswered(
        f"The question was answered by {earlier.by!r} already.", reason="already_resolved"
    )


def _tell(items: tuple[QuestionItem, ...], resolved: QuestionResolved) -> str:
    """The answers in words, for the model."""
    if resolved.by == DEADLINE:
        return "Nobody is there to answer. Decide yourself, and say what you decided and why."
    if not resolved.answers and resolved.by not in RESERVED_NAMES:
        return "They leave it to you. Decide yourself, and say what you decided and why."
    if not resolved.answers:
        return "The question was taken back without an answer."
    told: list[str] = []
    for item in items:
        labels = {option.id: option.label for option in item.options}
        given = resolved.answers.get(item.id, ())
        told.append(f"{item.prompt}\n→ {', '.join(labels.get(one, one) for one in given)}")
    return "\n\n".join(told)
