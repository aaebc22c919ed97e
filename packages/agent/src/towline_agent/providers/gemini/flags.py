"""What is different between the Gemini API and Vertex AI, as data."""

import msgspec

__all__ = ["GeminiFlags"]


class GeminiFlags(msgspec.Struct, frozen=True, kw_only=True):
    """How one address speaks the dialect; the defaults are those of the Gemini API."""

    vertex: bool = False
    """Whether it is Vertex AI: models lie under a publisher, finish reasons have other numbers, and
    the provider's own tools cannot be told apart from functions in an answer."""
