"""What a person is told about the local model, in plain sentences."""

from towline.local.facts import LocalModelFacts
from towline.local.server import Speed

__all__ = ["describe_local_model"]

STRONG_MODEL_LINE = "export ANTHROPIC_API_KEY=…"
"""The one line that brings a strong model."""


def describe_local_model(facts: LocalModelFacts, speed: Speed | None = None) -> list[str]:
    """The sentences to print when the local model answers, one a line.

    Args:
        facts: Which model runs.
        speed: What `LocalModel.warm` measured; the sentence is left out without it.
    """
    told = [
        f"Model: {facts.title}, running on this machine. It needs no key and sends nothing away.",
        "It is small and can be wrong: look at what it says and does before you rely on it.",
    ]
    if speed is not None:
        told.append(
            f"Here it reads about {speed.read_per_s:.0f} and writes about {speed.write_per_s:.0f} "
            "tokens a second (a token is about three quarters of a word)."
        )
    told.append(f"For a strong model, stop this, type `{STRONG_MODEL_LINE}` and start it again.")
    return told
