"""A question of the agent at a terminal: one line for each of its items."""

from typing import Final

import msgspec

from towline_protocol import QuestionAsked, QuestionId, QuestionItem, SessionView

__all__ = ["NOBODY", "Answering", "Form", "decline", "fill", "invite", "next_item"]

NOBODY: Final = "Nobody is here to answer; decide yourself."
"""What is said where no line can come any more."""

Answers = dict[str, tuple[str, ...]]


class Form(msgspec.Struct, frozen=True):
    """A question on its way to its answers."""

    question: QuestionAsked
    """The question."""
    answers: Answers = {}
    """What was said so far, by item id."""


def next_item(form: Form) -> QuestionItem | None:
    """The item that the next line answers; `None` when all are answered."""
    return next((item for item in form.question.items if item.id not in form.answers), None)


def invite(form: Form) -> str:
    """The start of the line that a person ends with an answer."""
    item = next_item(form)
    assert item is not None
    ways: list[str] = []
    if item.options:
        ways.append(f"1-{len(item.options)}" + (", several with commas" if item.multiple else ""))
    if item.free_text:
        ways.append("in your own words" if ways else "in words")
    count = len(form.question.items)
    place = f" {len(form.answers) + 1} of {count}" if count > 1 else ""
    return f"  Answer{place} ({' or '.join(ways)}): "


def fill(form: Form, text: str) -> tuple[Form, str]:
    """Take a line in.

    Returns:
        The form with it, and why it is no answer; empty when it is one.
    """
    item = next_item(form)
    assert item is not None
    said, why_not = _read(item, text.strip())
    if why_not:
        return form, why_not
    return Form(form.question, {**form.answers, item.id: said}), ""


def decline(question: QuestionAsked) -> Answers | None:
    """Answers that leave it to the agent; `None` when an item takes no own words."""
    if not all(item.free_text for item in question.items):
        return None
    return {item.id: (NOBODY,) for item in question.items}


def _read(item: QuestionItem, text: str) -> tuple[tuple[str, ...], str]:
    numbers = [part.strip() for part in text.split(",")] if item.options else []
    chosen = [number for number in numbers if _is_place(number, len(item.options))]
    if numbers and len(chosen) == len(numbers):
        if len(chosen) > 1 and not item.multiple:
            return (), "Choose one of them."
        return tuple(dict.fromkeys(item.options[int(n) - 1].id for n in chosen)), ""
    if text and item.free_text:
        return (text,), ""
    if item.options:
        return (), f"Answer with a number from 1 to {len(item.options)}; /interrupt stops the turn."
    return (), "Say something; /interrupt stops the turn."


def _is_place(text: str, count: int) -> bool:
    return text.isascii() and text.isdigit() and 1 <= int(text[:3]) <= count


class Answering:
    """Which question of a session a person is answering, and how far they are."""

    def __init__(self) -> None:
        self._form: Form | None = None
        self._sent: set[QuestionId] = set()

    def current(self, view: SessionView) -> Form | None:
        """The oldest open question that was not answered here."""
        waiting = [question for question in view.questions if question.question not in self._sent]
        if not waiting:
            self._form = None
        elif self._form is None or self._form.question.question != waiting[0].question:
            self._form = Form(waiting[0])
        return self._form

    def take(self, form: Form) -> None:
        """Go on with a form that a line was filled in."""
        self._form = form

    def send(self, question: QuestionId) -> None:
        """Its answers are on their way."""
        self._sent.add(question)

    def take_back(self, question: QuestionId) -> None:
        """Its answers were not taken: it may still be open."""
        self._sent.discard(question)
