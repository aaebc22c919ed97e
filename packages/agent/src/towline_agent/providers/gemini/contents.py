"""From neutral messages to `contents` (A2.46 to A2.48, R35).

A conversation is encoded once and gone on with; its bytes depend on nothing that comes after them
(A4.5).
"""

from itertools import pairwise
from typing import Any, Final, cast

import msgspec

from towline_agent.providers.base import Model, ToolSpec
from towline_agent.providers.fragments import Prefixes, to_json
from towline_agent.providers.gemini.decode import DIALECT, SIGNATURE
from towline_agent.providers.gemini.family import family_of
from towline_agent.providers.gemini.parts import (
    MEDIA_CHARS,
    call_part,
    media_chars,
    media_parts,
    replay_part,
    response_part,
)
from towline_agent.providers.gemini.schema import fit_parameters
from towline_protocol import (
    Block,
    File,
    Image,
    Message,
    Opaque,
    Text,
    Thinking,
    ToolCall,
    ToolResult,
    block_text,
)

__all__ = ["Contents", "HistoryEncoder"]

_Json = dict[str, Any]

_USER: Final = "user"
_MODEL: Final = "model"
_ASSISTANT: Final = "assistant"
_TOOL: Final = "tool"
_END: Final = b"]}"
_UNSIGNED: Final = "skip_thought_signature_validator"
"""What Google documents for calls that the model did not make itself: without any signature
generation 3 refuses them."""
_BEFORE: Final = to_json({"text": "[What came before this is left out.]"})
"""Stands for the person where a conversation would begin with the model."""


class Contents(msgspec.Struct, frozen=True):
    """The entries of `contents`, as they go on the wire."""

    written: bytes
    """All entries, joined by commas."""
    starts: tuple[int, ...]
    """Where in them each entry begins."""
    roles: tuple[str, ...]
    """Who says each entry: `user` or `model`."""
    chars: tuple[int, ...]
    """The length of each entry in characters, as models count it."""

    def first(self, count: int) -> bytes:
        """The first entries, joined by commas."""
        if count >= len(self.starts):
            return self.written
        return self.written[: max(0, self.starts[count] - 1)]

    def after(self, count: int) -> bytes:
        """The entries after so many, joined by commas."""
        return self.written[self.starts[count] :] if count < len(self.starts) else b""


class _Known(msgspec.Struct, frozen=True, gc=False):
    """What a result must say of its call."""

    name: str
    wire_id: str | None
    place: int
    step: int


class _State:
    """A conversation so far. Its last entry is still open: more may join it."""

    __slots__ = ("calls", "chars", "notices", "roles", "size", "starts", "wire_ids")

    def __init__(self) -> None:
        self.calls: dict[str, _Known] = {}
        self.wire_ids: set[str] = set()
        self.size = 0
        self.starts: list[int] = []
        self.roles: list[str] = []
        self.chars: list[int] = []
        self.notices: list[str] = []  # of what was added last

    def copy(self) -> "_State":
        twin = _State()
        twin.calls = self.calls.copy()
        twin.wire_ids = self.wire_ids.copy()
        twin.size = self.size
        twin.starts, twin.roles = self.starts.copy(), self.roles.copy()
        twin.chars = self.chars.copy()
        return twin

    @property
    def role(self) -> str:
        """Who says the open entry."""
        return self.roles[-1] if self.roles else ""

    def write(self, role: str, parts: bytes, chars: int, *, joins: bool) -> bytes:
        """The bytes that put parts at the end; nothing is nothing (R37).

        Args:
            role: Who says them.
            parts: JSON, joined by commas.
            chars: Their length as models count it.
            joins: Whether they belong into the open entry.
        """
        if not parts:
            return b""
        if joins:
            self.chars[-1] += chars
            written = b"," + parts
        else:
            written = b""
            if not self.roles and role == _MODEL:
                written = self.write(_USER, _BEFORE, len(_BEFORE), joins=False)
            end = b"]}," if self.roles else b""
            self.starts.append(self.size + len(end))
            self.roles.append(role)
            self.chars.append(chars)
            opened = b'%s{"role":"%s","parts":[%s' % (end, role.encode(), parts)
            self.size += len(opened)
            return written + opened
        self.size += len(written)
        return written


class HistoryEncoder:
    """Encodes conversations and tools for one model and keeps what it has encoded.

    Args:
        model: Who is asked; what others have proved means nothing to it (A2.32).
    """

    def __init__(self, model: Model) -> None:
        family = family_of(model)
        self._model = model.name
        # from generation 3 on a call without a proof is refused
        self._unsigned = _UNSIGNED if family.newest and family.control == "level" else None
        self._prefixes = Prefixes(_State, self._add_all, joint=b"")
        self._declared: tuple[tuple[ToolSpec, ...], bytes] = ((), b"")

    def declare(self, tools: tuple[ToolSpec, ...]) -> bytes:
        """The declarations of all tools, joined by commas; the same tools are declared once."""
        if tools is not self._declared[0]:
            self._declared = (tools, b",".join(map(_declare, tools)))
        return self._declared[1]

    def encode(
        self, messages: tuple[Message, ...], trailing: str = ""
    ) -> tuple[Contents, list[str]]:
        """A conversation, and what was left out of its new messages (A1.19).

        Args:
            messages: The conversation, every call with exactly one result.
            trailing: Words for the end of the last entry, which the next request does not repeat.
        """
        written, state = self._prefixes.encode(_with_joined_results(messages))
        if trailing:
            part = to_json({"text": trailing})
            written += state.write(_USER, part, len(part), joins=state.role == _USER)
        contents = Contents(
            written + _END if written else b"",
            tuple(state.starts),
            tuple(state.roles),
            tuple(state.chars),
        )
        return contents, state.notices

    def _add_all(self, state: _State, messages: tuple[Message, ...]) -> bytes:
        return b"".join([self._add(state, message) for message in messages])

    def _add(self, state: _State, message: Message) -> bytes:
        if message.role == _ASSISTANT:
            return self._add_model(state, message)
        results = [block for block in message.content if isinstance(block, ToolResult)]
        answered = _add_results(state, results) if results else b""
        if len(results) == len(message.content):
            return answered
        parts = _user_parts(message, state.notices)
        encoded = b",".join(map(to_json, parts))
        media = sum(media_chars(b) for b in message.content if isinstance(b, Image | File))
        joins = bool(answered)  # words of a person join results of their own message alone
        return answered + state.write(_USER, encoded, len(encoded) - media, joins=joins)

    def _add_model(self, state: _State, message: Message) -> bytes:
        """What the model said; several messages in a row are one entry (R35)."""
        foreign = message.model is not None and message.model != self._model
        parts: list[_Json] = []
        unsigned = self._unsigned  # for the first call alone
        for block in message.content:
            match block:
                case Text(text=text) if text:
                    parts.append({"text": text})
                case Thinking(signature=str(proof)) if proof and not foreign:
                    parts.append({"text": block.text, "thought": True, SIGNATURE: proof})
                case ToolCall():
                    proof = None if foreign else block.signature
                    parts.append(call_part(block, _know(state, block), proof or unsigned))
                    unsigned = None
                case Opaque(dialect=dialect, raw=dict()) if dialect == DIALECT and not foreign:
                    replay_part(parts, cast("_Json", block.raw))
                case Image() | File():
                    parts.extend(media_parts(block, state.notices))
                case _:
                    pass  # what others thought or did means nothing here
        encoded = b",".join(map(to_json, parts))
        return state.write(_MODEL, encoded, len(encoded), joins=state.role == _MODEL)


def _declare(tool: ToolSpec) -> bytes:
    described = {"description": tool.description} if tool.description else {}
    declared = to_json({"name": tool.name, **described})
    parameters = fit_parameters(tool.parameters)
    return declared if parameters is None else b'%s,"parameters":%s}' % (declared[:-1], parameters)


def _know(state: _State, call: ToolCall) -> str | None:
    """The id of a call on the wire: as it came, unless an earlier one had the same (A2.48)."""
    wire_id = call.wire_id or None
    if wire_id is not None:
        wire_id = call.id if wire_id in state.wire_ids else wire_id
        while wire_id in state.wire_ids:
            wire_id += "_"
        state.wire_ids.add(wire_id)
    # its entry is not there yet; before a first one of the model a person's is put
    step = max(1, len(state.roles) - (state.role == _MODEL))
    state.calls[call.id] = _Known(call.name, wire_id, len(state.calls), step)
    return wire_id


def _user_parts(message: Message, notices: list[str]) -> list[_Json]:
    parts: list[_Json] = []
    for block in message.content:
        if isinstance(block, Text):
            parts.extend([{"text": block.text}] if block.text else [])
        elif isinstance(block, Image | File):
            parts.extend(media_parts(block, notices))
    return parts


def _add_results(state: _State, results: list[ToolResult]) -> bytes:
    """The results of a step in one entry, in the order of its calls (R35).

    What the API takes for no result comes after them: pictures and files (A2.47).
    """
    step = len(state.roles) - 1 if state.role == _MODEL else -1
    asked = [(state.calls.get(result.call), result) for result in results]
    asked.sort(key=lambda pair: _place(pair[0], step))
    parts: list[_Json] = []
    shown: list[tuple[str, Image | File]] = []
    for known, result in asked:
        if known is not None and known.step == step:
            parts.append(response_part(result, known.name, known.wire_id))
        else:  # the API takes a result only right behind its call
            parts.append({"text": f"[Result of an earlier call]\n{block_text(result.content)}"})
        name = known.name if known is not None else "a tool"
        shown.extend((name, block) for block in result.content if isinstance(block, Image | File))
    encoded = b",".join(map(to_json, parts))
    chars = len(encoded)
    for name, block in shown:
        label = [{"text": f"Returned by {name}:"}] if len(results) > 1 else []
        for part in map(to_json, (*label, *media_parts(block, state.notices))):
            encoded += b"," + part
            chars += min(len(part), MEDIA_CHARS)
    return state.write(_USER, encoded, chars, joins=False)


def _place(known: _Known | None, step: int) -> tuple[bool, int]:
    if known is None or known.step != step:
        return True, 0
    return False, known.place


def _with_joined_results(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """Each run of tool messages as one: the results of a step share an entry."""
    if not any(a.role == b.role == _TOOL for a, b in pairwise(messages)):
        return messages
    joined: list[Message] = []
    for message in messages:
        if message.role == _TOOL and joined and joined[-1].role == _TOOL:
            blocks: tuple[Block, ...] = (*joined[-1].content, *message.content)
            joined[-1] = Message(_TOOL, blocks)
        else:
            joined.append(message)
    return tuple(joined)
