"""What a caller of the library gives, looked at before anything is done with it."""

import binascii
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, Final, cast

from towline_agent.permissions.policy import MODES
from towline_agent.permissions.rules import Rule
from towline_agent.providers.base import EFFORTS, Controls
from towline_protocol import Block, File, Image, Limits, Message, PromptBlock, Text, UsageError

__all__ = [
    "Prompt",
    "check_arguments",
    "check_limits",
    "check_messages",
    "check_parts",
    "check_prompt",
    "check_root",
    "tell_idle_rules",
]

Prompt = str | Sequence[PromptBlock]
"""Words, or blocks such as `Text`, `Image` and `File`."""

_BLOCKS: Final = frozenset(Block.__args__)
_MEDIA_TYPE: Final = r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(;.*)?"
_LEAST: Final = {"max_tokens": 1, "temperature": 0, "top_p": 0}
_ENDLESS: Final = 1e15
"""Nothing is bounded by a number like this; no clock and no counter takes it either."""
_SHOWN: Final = 200
"""Characters of a bad value that a message repeats."""
_ROLES: Final = ("system", "user", "assistant", "tool")


def check_prompt(prompt: object) -> None:
    """Refuse what is no prompt.

    Raises:
        UsageError: It is neither words nor a list of blocks, or it is empty.
    """
    if isinstance(prompt, str) and prompt.strip():
        return
    if isinstance(prompt, str) or not isinstance(prompt, Sequence) or not prompt:
        raise UsageError(
            f"A prompt can't be {_show(cast('object', prompt))}; give words, or a list of blocks."
        )
    for block in cast("Sequence[Any]", prompt):
        if not isinstance(block, Text | Image | File):
            raise UsageError(
                f"A prompt can't hold {_show(block)}; its blocks are `Text`, `Image` and `File`."
            )
        if not isinstance(block, Text) and block.data is None and block.file is None:
            _check_bytes(None, type(block).__name__)
        _check_said(block)


def _check_said(block: object) -> None:
    """Refuse a block of what a person says that no provider can read."""
    if isinstance(block, Text):
        _check_text(block)
    elif isinstance(block, Image | File):
        _check_kind(block.media_type, type(block).__name__)
        if block.data is not None:  # kept elsewhere, or lost: the model is told of that
            _check_bytes(block.data, type(block).__name__)


def _check_text(block: Text) -> None:
    if not isinstance(cast("object", block.text), str):
        raise UsageError(f"The `text` of a block 'Text' can't be {_show(block.text)}; give a text.")


def _check_kind(media_type: object, kind: str) -> None:
    """Refuse a kind of bytes that no provider can read, such as a bare `png`."""
    begins, such_as = ("image/", "image/png") if kind == "Image" else ("", "application/pdf")
    whole = isinstance(media_type, str) and media_type.lower().startswith(begins)
    if not whole or not re.fullmatch(_MEDIA_TYPE, cast("str", media_type)):
        raise UsageError(
            f"The `media_type` of a block {kind!r} can't be {media_type!r}; give one such as "
            f"{such_as!r}."
        )


def _check_bytes(data: object, kind: str) -> None:
    """Refuse bytes that a provider would refuse in words of its own, or not see at all."""
    how = "give `base64.b64encode(data).decode()`"
    if not isinstance(data, str):
        raise UsageError(f"The `data` of a block {kind!r} can't be {type(data).__name__!r}; {how}.")
    if not data:
        raise UsageError(f"The `data` of a block {kind!r} is empty; {how}.")
    try:
        binascii.a2b_base64(data, strict_mode=True)
    except ValueError as error:
        raise UsageError(
            f"The `data` of a block {kind!r} is no base 64 ({error}); {how}."
        ) from error


def check_messages(messages: object) -> None:
    """Refuse what is no earlier conversation.

    Raises:
        UsageError: It is no list of messages, or one of them is none.
    """
    if isinstance(messages, str | bytes) or not isinstance(messages, Sequence):
        raise UsageError(f"'messages' can't be {_show(messages)}; give the `messages` of a result.")
    for message in cast("Sequence[Any]", messages):
        if not isinstance(message, Message):
            raise UsageError(
                f"'messages' can't hold {_show(message)}; give the `messages` of a result, or "
                "`Message(role, (Text(text=...),))`."
            )
        if message.role not in _ROLES:
            raise UsageError(f"There is no role {message.role!r}; it is one of {_ROLES}.")
        for block in _listed(message.content):
            if type(block) not in _BLOCKS:
                raise UsageError(
                    f"A message can't hold {_show(block)}; its content is a tuple of blocks such "
                    "as `Text`."
                )
            if message.role == "user" or isinstance(block, Text):
                _check_said(block)  # what a model made is sent back as it came


def check_arguments(
    texts: dict[str, object],
    limits: object,
    controls: object,
    mode: object,
    effort: object,
) -> None:
    """Refuse what an agent cannot be made of.

    Raises:
        UsageError: A value is of a wrong type or no word of its list.
    """
    for name, value in texts.items():
        if not isinstance(value, str):
            raise UsageError(f"{name!r} can't be {value!r}; give a text.")
    if not isinstance(limits, Limits | None):
        raise UsageError(f"'limits' can't be {limits!r}; give `Limits(...)`.")
    check_limits(limits or Limits())
    if not isinstance(controls, Controls | None):
        raise UsageError(f"'controls' can't be {controls!r}; give `Controls(...)`.")
    _check_controls(controls or Controls())
    if mode not in MODES:
        raise UsageError(f"There is no mode {mode!r}; it is one of: {', '.join(MODES)}.")
    if effort is not None and effort not in EFFORTS:
        raise UsageError(f"There is no effort {effort!r}; it is one of: {', '.join(EFFORTS)}.")


def check_parts(
    model: object,
    fallbacks: object,
    rules: object,
    server_tools: object,
    callbacks: Mapping[str, object],
) -> None:
    """Refuse models, rules and functions that are none, before they are passed over in silence.

    Raises:
        UsageError: One of them is of a wrong type.
    """
    if isinstance(fallbacks, str) or not isinstance(fallbacks, Sequence):
        raise UsageError(f"'fallbacks' can't be {fallbacks!r}; give a list of models.")
    for asked in (model, *cast("Sequence[object]", fallbacks)):
        _check_model(asked)
    listed = _listed(rules)
    if listed == (rules,) or not all(isinstance(rule, Rule) for rule in listed):
        raise UsageError(
            f"'rules' can't be {_show(rules)}; give a list, such as [parse_rule('deny send_mail')]."
        )
    if isinstance(server_tools, str) or not all(
        isinstance(word, str) for word in _listed(server_tools)
    ):
        raise UsageError(
            f"'server_tools' can't be {server_tools!r}; give a list such as `['web_search']`."
        )
    for name, value in callbacks.items():
        if not callable(value) and (value is not None or name == "policy"):
            raise UsageError(f"{name!r} can't be {value!r}; give a function.")


def check_limits(limits: Limits) -> None:
    """Refuse bounds that nothing can be held against.

    Raises:
        UsageError: One is no number, below 0, or not whole where only whole ones count.
    """
    for name in limits.__struct_fields__:
        value: Any = getattr(limits, name)
        if value is None and name != "max_steps":
            continue
        if type(value) not in (int, float) or not -_ENDLESS < cast("float", value) < _ENDLESS:
            how = "a whole number" if name == "max_steps" else "a number, or `None` for none"
            raise UsageError(f"The limit {name!r} can't be {_show(value)}; give {how}.")
        if name == "max_steps" and type(value) is not int:
            raise UsageError(f"The limit {name!r} can't be {value!r}; give a whole number.")
        if value is not None and value < 0:
            raise UsageError(
                f"The limit {name!r} can't be {value!r}; give one that is not below 0."
            )


def _check_controls(controls: Controls) -> None:
    """Refuse controls that every provider would."""
    for name in controls.__struct_fields__:
        value: Any = getattr(controls, name)
        if name == "stop":
            if isinstance(value, str) or not all(isinstance(text, str) for text in _listed(value)):
                raise UsageError(f"The control 'stop' can't be {value!r}; give a tuple of texts.")
            continue
        if value is None:
            continue
        if type(value) not in (int, float) or value != value:
            raise UsageError(f"The control {name!r} can't be {value!r}; give a number.")
        if value < _LEAST.get(name, value):
            raise UsageError(
                f"The control {name!r} can't be {value!r}; give {_LEAST[name]} or more."
            )


def _check_model(model: object) -> None:
    asks = callable(getattr(model, "step", None)) and hasattr(model, "model")
    if not isinstance(model, str) and (not asks or isinstance(model, type)):
        raise UsageError(
            f"A model can't be {model!r}; give 'provider/model', or a provider such as "
            "`OpenAIChat(...)`."
        )


def check_root(root: object) -> None:
    """Refuse what is no place to work in.

    Raises:
        UsageError: It is no text, no path and no `Workspace`.
    """
    if root is None or isinstance(root, str):
        return
    if isinstance(root, type) or not isinstance(getattr(root, "root", None), str):
        raise UsageError(
            f"'root' can't be {_show(root)}; give a folder as text or a `Path`, or a `Workspace`."
        )


def tell_idle_rules(rules: Sequence[Rule], tools: Collection[str]) -> Iterator[str]:
    """A sentence for each rule that names no tool, as a mistyped one does.

    Args:
        rules: The rules.
        tools: The names of all tools that there are.
    """
    for rule in rules:
        if rule.tool == "*" or rule.tool in tools:
            continue
        import difflib  # few rules are mistyped

        near = difflib.get_close_matches(rule.tool, sorted(tools), n=2, cutoff=0.6)
        hint = f" (did you mean {' or '.join(map(repr, near))}?)" if near else ""
        yield f"The rule {rule.text!r} does nothing: there is no tool {rule.tool!r}{hint}."


def _show(value: object) -> str:
    """A bad value as a message repeats it: its beginning, since a result or a picture is long."""
    shown = repr(value)
    return shown if len(shown) <= _SHOWN else f"{shown[:_SHOWN]}…"


def _listed(value: object) -> Sequence[object]:
    """The items of a list; what is none stands for itself, to be refused by name."""
    if isinstance(value, Sequence) and not isinstance(value, str):
        return cast("Sequence[object]", value)
    return (value,)
