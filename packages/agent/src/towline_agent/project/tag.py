"""Text of others between tags that it can neither close nor open anew (A5.79, A5.83)."""

import re

__all__ = ["wrap_text"]


def wrap_text(tag: str, text: str, **attributes: str | None) -> str:
    """Text in a tag of ours.

    Args:
        tag: The tag's name.
        text: The text; whatever it says, it stays within the tag.
        attributes: What stands in the opening tag; those that are `None` are left out.
    """
    safe = re.sub(rf"(?i)<(?=\s*/?\s*{tag}\b)", "&lt;", text)
    given = "".join(
        f' {name}="{_quote(value)}"' for name, value in attributes.items() if value is not None
    )
    return f"<{tag}{given}>\n{safe.rstrip()}\n</{tag}>"


def _quote(value: str) -> str:
    return re.sub(r"[\s\"<>]+", " ", value)
