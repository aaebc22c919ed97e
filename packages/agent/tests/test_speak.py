"""What of an answer is said aloud."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.speak import ASK_TO_SPEAK, speak_text, without_speak


@pytest.mark.rules("A4.30")
@pytest.mark.parametrize(
    ("answer", "spoken", "written"),
    [
        (
            "<speak>All is well.</speak>\n\nThe **tests** pass.",
            "All is well.",
            "The **tests** pass.",
        ),
        ("Before <Speak> one\ntwo </SPEAK> after", "one two", "Before  after"),
        ("<speak>a</speak> x <speak>b</speak>", "a b", "x"),
        ("Text.\n<speak>cut off he", "cut off he", "Text."),
    ],
)
def test_what_the_model_wrote_to_be_said_is_said(answer: str, spoken: str, written: str) -> None:
    assert speak_text(answer) == spoken
    assert without_speak(answer) == written


@pytest.mark.rules("A4.31")
@pytest.mark.parametrize(
    "answer",
    ["Use <speak> for this.", "Write `<speak>hi</speak>`.", "An end </speak> alone.", "Plain."],
)
def test_a_tag_that_is_only_spoken_of_is_text(answer: str) -> None:
    assert without_speak(answer) == answer
    assert speak_text(answer) == answer.replace("`", "")


def test_a_tag_in_code_is_code() -> None:
    answer = "SSML:\n```xml\n<speak>hi</speak>\n```\nThat is all."
    assert without_speak(answer) == answer
    assert speak_text(answer) == "SSML: That is all."


def test_an_empty_tag_says_nothing_so_the_words_are_said() -> None:
    assert speak_text("<speak> </speak>It works.") == "It works."
    assert without_speak("<speak> </speak>It works.") == "It works."


_ANSWER = """# Result

The *two* __main__ `parts` of [the page](https://a.example/x_(y) "T") are done (https://b.example).
See <https://c.example/?q=1> or www.d.example. 2*3 and 2 * 3 stay, and ~~not~~ this.

| name | size |
|:-----|-----:|
| a    | 1    |

~~~python
print("no")
```
print("nor this")
~~~

1. first
2. second!
- [x] third
> quoted

---
![picture](https://e.example/p.png)
[1]: https://f.example
```
open
"""


@pytest.mark.rules("A4.31")
def test_code_tables_and_urls_are_left_out() -> None:
    assert speak_text(_ANSWER) == (
        "Result. The two main parts of the page are done. See or. 2*3 and 2 * 3 stay, and not "
        "this. first. second! third. quoted."
    )


@pytest.mark.rules("A4.31")
def test_a_long_answer_is_cut_at_the_last_sentence_that_fits() -> None:
    sentence = "It took 3.5 seconds, e.g. here! "
    spoken = speak_text(sentence * 40)
    assert spoken == (sentence * 18).strip()
    assert len(spoken) <= 600
    assert speak_text("本日は晴れ。" * 200) == "本日は晴れ。" * 100
    exact = "a" * 599 + "."
    assert speak_text(exact) == exact
    assert speak_text(f"{exact} More.") == exact


@pytest.mark.rules("A4.31")
def test_words_without_an_end_are_cut_between_two_of_them() -> None:
    spoken = speak_text("word " * 200)
    assert spoken.endswith("word…")
    assert len(spoken) <= 600
    assert speak_text("x" * 700) == "x" * 599 + "…"
    assert speak_text("a" * 590 + " 3.5" * 9).endswith("3.5 3.5…")


def test_an_answer_of_nothing_but_code_says_nothing() -> None:
    assert speak_text("```\ncode\n```") == ""
    assert speak_text("") == ""


def test_a_model_is_asked_in_the_words_that_are_read() -> None:
    assert "<speak>…</speak>" in ASK_TO_SPEAK


PIECES = st.sampled_from(
    ["```", "~~~\n", "\n", "word. ", "|-|", "a|b", "`", "[x](", "http://y ", "# ", "*", "<", ")"]
)


@pytest.mark.rules("A4.31")
@given(st.lists(PIECES, max_size=200).map("".join))
def test_any_answer_can_be_said_within_the_bound(answer: str) -> None:
    assert without_speak(answer) == answer
    spoken = speak_text(answer)
    assert len(spoken) <= 600
    assert "http" not in spoken


PLAIN = st.text(st.characters(exclude_characters="<`~"), max_size=40)


@pytest.mark.rules("A4.30")
@given(before=PLAIN, said=PLAIN, after=PLAIN)
def test_whatever_stands_in_the_tag_is_said(before: str, said: str, after: str) -> None:
    answer = f"{before}<speak>{said}</speak>{after}"
    assert without_speak(answer) == (before + after).strip()
    if said.strip():
        assert speak_text(answer) == " ".join(said.split())


@pytest.mark.parametrize(
    "bad", ["<speak>", "[", "[a](", "```\n", "|-", "http://", "> ", "*", "www.", "-= ", "1. "]
)
def test_hostile_markdown_is_read_in_one_go(bad: str) -> None:
    begin_s = time.process_time()
    speak_text(bad * 20_000)
    assert time.process_time() - begin_s < 3  # some hundredths; quadratic work takes minutes
