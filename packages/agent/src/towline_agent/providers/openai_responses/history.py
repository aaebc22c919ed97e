"""From the messages of a conversation to the items of a request. Pure.

A message gives the same bytes in every request, whatever follows it (A4.5).
"""

from collections.abc import Sequence
from typing import Any, Final

from towline_agent.providers.base import Request
from towline_agent.providers.fragments import Prefixes, to_json
from towline_agent.providers.openai_responses.assistant import assistant_items
from towline_agent.providers.openai_responses.flags import ResponsesFlags
from towline_agent.providers.openai_responses.items import MESSAGE
from towline_agent.providers.openai_responses.wire import WireIds
from towline_agent.providers.room import shown_from
from towline_protocol import File, Image, Message, Text, ToolCall, ToolResult

__all__ = ["HistoryEncoder"]

_Json = dict[str, Any]

_RESULT: Final = "function_call_output"
_ERROR_MARK: Final = "Error: "


class HistoryEncoder:
    """Encodes conversations for one model; keeps what it has encoded.

    Args:
        model: The model's name, as `provider/model`.
        flags: How the gateway speaks.
        replay: Whether encrypted reasoning goes back.
    """

    def __init__(self, model: str, flags: ResponsesFlags, *, replay: bool = True) -> None:
        self._model = model
        self._flags = flags
        self._replay = replay
        self._prefixes = Prefixes(WireIds, self._add)
        self._notices: list[str] = []

    def encode(self, request: Request) -> bytes:
        """The items of a request, joined by commas, the same from step to step (A4.5).

        The last message carries the trailing words, which the next request does not repeat. What
        the vendor has summed up is left out: it would be read, and paid for, all the same (A4.40).
        """
        messages = self._needed(request.messages)
        encoded, ids = self._prefixes.encode(messages[:-1])
        last = [item for message in messages[-1:] for item in self._items(ids, message)]
        if request.trailing:
            _add_trailing(last, request.trailing)
        return b",".join(part for part in (encoded, *map(to_json, last)) if part)

    def notices(self) -> list[str]:
        """What was left out, and why, since this was asked last."""
        told, self._notices = self._notices, []
        return told

    def _needed(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        """The messages from the newest summary of the vendor on, and what a system said before."""
        first = shown_from(messages, self._model) if self._replay else 0
        if not first:
            return messages
        said = (message for message in messages[:first] if message.role == "system")
        return (*said, *messages[first:])

    def _add(self, ids: WireIds, messages: tuple[Message, ...]) -> bytes:
        items = [item for message in messages for item in self._items(ids, message)]
        return b",".join(map(to_json, items))

    def _items(self, ids: WireIds, message: Message) -> list[_Json]:
        """The items of one message."""
        wire = ids.add(message, foreign=message.model not in (None, self._model))
        if message.role == "assistant":
            return assistant_items(message.content, wire, self._flags, replay=self._replay)
        items: list[_Json] = []
        shown: list[_Json] = []
        said: list[_Json] = []
        names = iter(wire.names)
        for block in message.content:
            match block:
                case ToolResult():
                    items.extend(self._result(block, next(names), ids, shown))
                case ToolCall():
                    next(names)
                case Text() | Image() | File():
                    said.extend(self._parts((block,)))
                case _:
                    pass
        if shown:
            items.append(_message("user", shown))
        if said:
            items.append(_message("system" if message.role == "system" else "user", said))
        return items

    def _result(
        self, result: ToolResult, name: str, ids: WireIds, shown: list[_Json]
    ) -> list[_Json]:
        """The item of a result; what it may not hold itself is shown after all of them."""
        if not name:
            self._notices.append("A result whose call is gone was left out.")
            return []
        blocks = [block for block in result.content if isinstance(block, Text | Image | File)]
        text = "\n".join(block.text for block in blocks if isinstance(block, Text) and block.text)
        mark = _ERROR_MARK if result.is_error and not text.startswith(_ERROR_MARK) else ""
        others = [block for block in blocks if not isinstance(block, Text)]
        output: Any = mark + text
        if others and self._flags.result_parts:
            output = [*([_text(mark.strip())] if mark else []), *self._parts(blocks)]
        elif others:
            output = mark + (text or "[what it returned is shown below]")
            shown.append(_text(f"Returned by {ids.tool(result.call)}:"))
            shown.extend(self._parts(others))
        return [{"type": _RESULT, "call_id": name, "output": output}]

    def _parts(self, blocks: Sequence[Text | Image | File]) -> list[_Json]:
        return [self._part(block) for block in blocks if not isinstance(block, Text) or block.text]

    def _part(self, block: Text | Image | File) -> _Json:
        if isinstance(block, Text):
            return _text(block.text)
        if block.data is None:
            self._notices.append(f"A {block.media_type} block without its bytes was left out.")
            return _text(f"[a {block.media_type} block that is no longer there]")
        url = f"data:{block.media_type};base64,{block.data}"
        if isinstance(block, Image):
            return {"type": "input_image", "image_url": url, "detail": "auto"}
        return {"type": "input_file", "filename": block.name, "file_data": url}


def _add_trailing(items: list[_Json], words: str) -> None:
    """Add words to the end of the last message.

    After results they belong to the last one: a message of its own would begin a new turn, and the
    reasoning of this one would be lost.
    """
    last = items[-1] if items else {}
    if last.get("type") == _RESULT:
        output: Any = last["output"]
        if isinstance(output, list):
            last["output"] = [*output, _text(words)]
        else:
            last["output"] = f"{output}\n\n{words}" if output else words
    elif last.get("role") == "user":
        last["content"] = [*last["content"], _text(words)]
    else:
        items.append(_message("user", [_text(words)]))


def _message(role: str, content: list[_Json]) -> _Json:
    return {"type": MESSAGE, "role": role, "content": content}


def _text(text: str) -> _Json:
    return {"type": "input_text", "text": text}
