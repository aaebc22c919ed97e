"""A question at a terminal: which line is which answer."""

import pytest

from towline.cli.question import NOBODY, Answering, Form, decline, fill, invite, next_item
from towline_protocol import Option, QuestionAsked, QuestionId, QuestionItem, SessionView

OPTIONS = (Option(id="a", label="This"), Option(id="b", label="That"), Option(id="c", label="Both"))
ONE = QuestionItem(id="one", prompt="Which?", options=OPTIONS)
MANY = QuestionItem(id="many", prompt="Which ones?", options=OPTIONS, multiple=True)
OPEN = QuestionItem(id="open", prompt="Which?", options=OPTIONS, free_text=True)
WORDS = QuestionItem(id="words", prompt="What?", free_text=True)


def _form(*items: QuestionItem, question: str = "qst_1") -> Form:
    return Form(QuestionAsked(question=QuestionId(question), items=items))


@pytest.mark.parametrize(
    ("item", "line", "said"),
    [
        (ONE, " 2 ", ("b",)),
        (MANY, "3, 1,3", ("c", "a")),
        (OPEN, "1", ("a",)),
        (OPEN, "1, but larger", ("1, but larger",)),
        (WORDS, "2", ("2",)),
        (WORDS, " a, b ", ("a, b",)),
    ],
)
def test_a_line_is_options_or_own_words(item: QuestionItem, line: str, said: tuple[str]) -> None:
    form, why_not = fill(_form(item), line)
    assert (form.answers, why_not) == ({item.id: said}, "")
    assert next_item(form) is None


@pytest.mark.parametrize(
    ("item", "line", "why"),
    [
        (ONE, "4", "from 1 to 3"),
        (ONE, "0", "from 1 to 3"),
        (ONE, "red", "from 1 to 3"),
        (ONE, "1,2", "Choose one"),
        (OPEN, "1,2", "Choose one"),
        (MANY, "1,", "from 1 to 3"),
        (ONE, "²", "from 1 to 3"),
        (WORDS, "  ", "Say something"),
    ],
)
def test_a_line_that_is_no_answer_says_what_would_be_one(
    item: QuestionItem, line: str, why: str
) -> None:
    form = _form(item)
    kept, why_not = fill(form, line)
    assert kept == form
    assert why in why_not


def test_each_item_is_asked_for_in_turn() -> None:
    form = _form(MANY, WORDS)
    assert invite(form) == "  Answer 1 of 2 (1-3, several with commas): "
    form, _ = fill(form, "1")
    assert invite(form) == "  Answer 2 of 2 (in words): "
    assert invite(_form(OPEN)) == "  Answer (1-3 or in your own words): "


def test_where_nobody_is_left_only_own_words_can_say_so() -> None:
    assert decline(_form(OPEN, WORDS).question) == {"open": (NOBODY,), "words": (NOBODY,)}
    assert decline(_form(WORDS, ONE).question) is None


def test_the_oldest_question_that_was_not_answered_here_is_the_current_one() -> None:
    first, second = _form(ONE, WORDS), _form(WORDS, question="qst_2")
    view = SessionView(questions=(first.question, second.question))
    answering = Answering()
    assert answering.current(view) == first
    filled, _ = fill(first, "1")
    answering.take(filled)
    assert answering.current(view) == filled
    answering.send(first.question.question)
    assert answering.current(view) == second
    answering.take_back(first.question.question)
    assert answering.current(view) == first
    assert answering.current(SessionView()) is None
