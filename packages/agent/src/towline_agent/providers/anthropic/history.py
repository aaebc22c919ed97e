"""The messages of a request. Pure: the same conversation, the same bytes."""

from itertools import pairwise
from typing import Any, Final

from towline_agent.providers.anthropic.blocks import BlockEncoder
from towline_agent.providers.anthropic.flags import AnthropicFlags
from towline_agent.providers.anthropic.thinking import is_foreign
from towline_agent.providers.anthropic.wire_ids import WireIds
from towline_agent.providers.base import Model
from towline_agent.providers.fragments import Prefixes, to_json
from towline_protocol import Message

__all__ = ["HistoryEncoder"]

_Json = dict[str, Any]

_USER: Final = "user"
_ASSISTANT: Final = "assistant"
_TOOL: Final = "tool"
_END: Final = b"]}"
_SHORT_MARK: Final = b',"cache_control":{"type":"ephemeral"}}'
"""A breakpoint of five minutes, the API's usual time, at the end of a block (A2.34)."""
_OPENING: Final = b'{"role":"user","content":[{"type":"text","text":"(The conversation goes on.)"}'
"""What stands before an answer that nothing came before: the API wants a person to begin."""


class _State:
    """A conversation so far: what the JSON of the next message depends on."""

    __slots__ = ("blocks", "role")

    def __init__(self, blocks: BlockEncoder, role: str = "") -> None:
        self.blocks = blocks
        self.role = role  # of the message that is still open

    def copy(self) -> "_State":
        return _State(self.blocks.copy(), self.role)


class HistoryEncoder:
    """Encodes conversations for one model and keeps what it has encoded.

    Neighbouring messages of one role become one message: the API wants roles to alternate, and all
    results of an answer together (A2.40). So the last message stays open until the next begins.

    Args:
        model: What is known of the model.
        flags: How the gateway speaks.
    """

    def __init__(self, model: Model, flags: AnthropicFlags) -> None:
        self._model = model
        self._flags = flags
        self._prefixes = Prefixes(self._begin, self._add_all, joint=b"")

    def encode(
        self, messages: tuple[Message, ...], trailing: str = "", *, paused: bool = False
    ) -> tuple[bytes, dict[str, None]]:
        """The JSON of a conversation, joined by commas, and what was left out of it.

        Args:
            messages: The conversation.
            trailing: Words behind what is cached.
            paused: The last message is an answer that paused: it stays the last.

        The breakpoint of the tail goes to the end of what was not said by the model. An answer at
        the end is one to go on with, unless trailing words say what was wrong with it.
        """
        messages = _with_results_first(messages)
        written, state = self._prefixes.encode(messages[:-1])
        last = messages[-1] if messages else None
        if last is not None and last.role != _ASSISTANT:
            written += self._add(state, last)
        if state.role == _USER and self._flags.cache_marks:
            written = written[:-1] + _SHORT_MARK
        words = to_json({"type": "text", "text": trailing}) if trailing.strip() else b""
        if paused:
            written += _joined(state, _USER, words)
        if last is not None and last.role == _ASSISTANT:
            written += self._add(state, last, last=paused or not words)
        if not paused:
            written += _joined(state, _USER, words)
        return written + _END if written else b"", state.blocks.notices

    def _begin(self) -> _State:
        return _State(BlockEncoder(self._flags, WireIds()))

    def _add_all(self, state: _State, messages: tuple[Message, ...]) -> bytes:
        return b"".join([self._add(state, message) for message in messages])

    def _add(self, state: _State, message: Message, *, last: bool = False) -> bytes:
        if message.role != _ASSISTANT:
            role, blocks = _USER, state.blocks.user(message.content)
        else:
            foreign = is_foreign(message, self._model)
            role, blocks = _ASSISTANT, state.blocks.assistant(message.content, foreign=foreign)
            blocks = _without_last_space(blocks) if last else blocks
        return _joined(state, role, b",".join(map(to_json, blocks)))


def _joined(state: _State, role: str, blocks: bytes) -> bytes:
    """Blocks with what must stand before them; the message that they are in stays open."""
    if not blocks:
        return b""  # nothing that this dialect can say (R37)
    if role == state.role:
        return b"," + blocks
    opening = _OPENING if not state.role and role == _ASSISTANT else b""
    end = _END + b"," if state.role or opening else b""
    state.role = role
    return b"".join((opening, end, b'{"role":"', role.encode(), b'","content":[', blocks))


def _with_results_first(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Results right after the calls that they answer, should a person have spoken in between."""
    roles = [message.role for message in messages]
    late = _TOOL in roles and any(
        role == _TOOL and before not in (_ASSISTANT, _TOOL) for before, role in pairwise(roles)
    )
    if not late:
        return messages
    ordered: list[Message] = []
    for message in messages:
        place = len(ordered)
        if message.role == _TOOL:
            while place and ordered[place - 1].role not in (_ASSISTANT, _TOOL):
                place -= 1
        ordered.insert(place, message)
    return tuple(ordered)


def _without_last_space(blocks: list[_Json]) -> list[_Json]:
    """The API refuses an answer to go on with that ends in white space."""
    if not blocks or blocks[-1]["type"] != "text":
        return blocks
    return [*blocks[:-1], {**blocks[-1], "text": blocks[-1]["text"].rstrip()}]
