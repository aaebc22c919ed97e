"""What is taken out of a docstring."""

from towline_protocol import parse_docstring


def test_the_words_before_the_sections_are_the_summary() -> None:
    found = parse_docstring(
        """Find a flight.

        Only direct ones.

        Args:
            origin: Where it starts,
                as an airport's code.
            seats (int, optional): How many: one at least.
              More words.

            **options: The rest.

        Returns:
            price: Not a parameter.
        """
    )
    assert found.summary == "Find a flight.\n\nOnly direct ones."
    assert found.parameters == {
        "origin": "Where it starts, as an airport's code.",
        "seats": "How many: one at least. More words.",
        "options": "The rest.",
    }


def test_a_function_without_words_has_none() -> None:
    for text in (None, "", "   "):
        found = parse_docstring(text)
        assert (found.summary, found.parameters) == ("", {})
