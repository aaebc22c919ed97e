"""What a function returns, as text for a model."""

from typing import Any

import msgspec

from towline_protocol.errors import UsageError

__all__ = ["mend_text", "value_text"]


def value_text(value: object) -> str:
    """A value as text: a string as it is, `None` as `null`, all else as JSON.

    Raises:
        UsageError: The value can't be made into JSON.
    """
    return mend_text(value) if isinstance(value, str) else mend_text(_to_json(value))


def mend_text(text: str) -> str:
    """The text with halves of characters joined, or replaced by U+FFFD.

    Names of files that are no UTF-8 come with such halves, and nothing could store or send them.
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def _encoded(value: object) -> str:
    try:
        return msgspec.json.encode(value, enc_hook=_plain).decode()
    except UnicodeEncodeError:  # half a character in some text of it
        import json  # by hardly any value, and a twentieth of the library's import

        plain: object = msgspec.to_builtins(value, enc_hook=_plain, str_keys=True)
        return json.dumps(plain, ensure_ascii=False, separators=(",", ":"))


def _to_json(value: object) -> str:
    try:
        return _encoded(value)
    except (TypeError, ValueError, RecursionError) as error:
        raise UsageError(
            f"A tool returned a {type(value).__qualname__} that can't be made into JSON ({error}); "
            "return text, blocks, or what JSON can hold."
        ) from error


def _plain(value: object) -> Any:
    """A pydantic model as plain values; told by its method, so that pydantic is never imported."""
    dump = getattr(value, "model_dump", None)
    if dump is None:
        raise TypeError(f"{type(value).__qualname__} is no JSON type")
    return dump(mode="json")
