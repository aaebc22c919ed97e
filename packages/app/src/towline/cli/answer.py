"""The keys that answer a permission request: the same ones at each request, in every terminal."""

from typing import Final

from towline_protocol import DENY, Option, PermissionRequested

__all__ = ["answer_key", "choose_option", "invite_answer", "open_options"]

_KEYS: Final = {"allow_once": "y", "allow_session": "s", "allow_always": "a", DENY: "n"}
"""Options are not always all there, so a place in the list would mean another thing each time."""
_SHORT: Final = {
    "allow_once": "once",
    "allow_session": "session",
    "allow_always": "always",
    DENY: "deny",
}
_WORDS: Final = {
    **{key: option for option, key in _KEYS.items()},
    **{word: option for option, word in _SHORT.items()},
    "yes": "allow_once",
    "no": DENY,
}


def answer_key(request: PermissionRequested, option: Option) -> str:
    """What a person types for an option: its letter, else its place in the list.

    Args:
        request: The request.
        option: One of its options.
    """
    return _KEYS.get(option.id) or str(request.options.index(option) + 1)


def open_options(request: PermissionRequested) -> tuple[Option, ...]:
    """The options that can be chosen: what is not shown whole can only be denied (W07)."""
    if not request.preview.truncated:
        return request.options
    return tuple(option for option in request.options if option.id == DENY)


def invite_answer(request: PermissionRequested) -> str:
    """The keys of a request in one line, such as `y once, s session, n deny`."""
    return ", ".join(
        f"{answer_key(request, option)} {_SHORT.get(option.id, option.label)}"
        for option in open_options(request)
    )


def choose_option(request: PermissionRequested, text: str) -> tuple[str | None, str]:
    """What a person's line means for a permission request.

    Returns:
        The option's id, or `None` and why the line is none.
    """
    said = text.strip().lower()
    chosen = _WORDS.get(said)
    for option in request.options:
        if option.id != chosen and (option.id in _KEYS or answer_key(request, option) != said):
            continue
        if option not in open_options(request):
            return None, "The preview is not whole, so it can only be denied: n."
        return option.id, ""
    return None, f"Nothing is decided yet. The keys are: {invite_answer(request)}."
