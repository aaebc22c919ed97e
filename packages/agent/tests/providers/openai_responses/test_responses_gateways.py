"""Answers of gateways that speak Responses with an accent of their own."""

import json
from typing import Any

import pytest

from towline_agent.providers.base import ArgumentsPiece, Piece, StepAnswer, TextPiece
from towline_agent.providers.errors import Peer
from towline_agent.providers.openai_responses.decode import ResponsesDecoder
from towline_protocol import Opaque, SearchArtifact, SseEvent, Text, Thinking, ToolCall

PEER = Peer(provider="p", model="m", url="https://example.test/v1")
_Json = dict[str, Any]


def event(kind: str, **fields: Any) -> _Json:
    return {"type": f"response.{kind}", **fields}


def answer(*values: _Json, names: bool = False) -> tuple[StepAnswer, list[Piece]]:
    """The answer; with `names` the kind of an event stands in its own line alone."""
    pieces: list[Piece] = []
    decoder = ResponsesDecoder(PEER, pieces.append)
    for value in values:
        name = value.pop("type") if names else ""
        decoder.feed(SseEvent(json.dumps(value).encode(), name))
    result = decoder.finish()
    assert isinstance(result, StepAnswer), result
    return result, pieces


def said(*words: str, **more: Any) -> _Json:
    parts = [{"type": "output_text", "text": text} for text in words]
    return {"type": "message", "role": "assistant", "content": parts, **more}


def call(name: str, arguments: Any = "{}", **more: Any) -> _Json:
    return {"type": "function_call", "name": name, "arguments": arguments, **more}


def thought(*words: str, field: str = "content", **more: Any) -> _Json:
    kind = "reasoning_text" if field == "content" else "summary_text"
    parts = [{"type": kind, "text": text} for text in words]
    return {"type": "reasoning", "summary": [], **more, field: parts}


def words(result: StepAnswer) -> list[Any]:
    return [
        (block.name, block.arguments) if isinstance(block, ToolCall) else block.text
        for block in result.content
        if isinstance(block, ToolCall | Text | Thinking)
    ]


@pytest.mark.rules("A2.30")
def test_an_answer_that_comes_only_in_the_last_event_is_told_whole() -> None:
    output = [thought("Hm."), said("Hi", "there"), call("f", '{"a":1}', call_id="c")]
    result, pieces = answer(event("completed", response={"output": output}))
    assert words(result) == ["Hm.", "Hi", "there", ("f", '{"a":1}')]
    assert [piece.text for piece in pieces] == ["Hm.", "Hi", "there", '{"a":1}']


@pytest.mark.rules("A2.30")
def test_each_word_is_told_once_however_often_it_comes() -> None:
    item = said("Hello", id="msg_1")
    result, pieces = answer(
        event("output_item.added", output_index=0, item={**item, "content": []}),
        event("output_item.added", output_index=0, item={**item, "content": []}),
        event("output_text.delta", output_index=0, content_index=0, delta="Hel"),
        event("output_text.done", output_index=0, content_index=0, text="Hello"),
        event("content_part.done", output_index=0, content_index=0, part=item["content"][0]),
        event("output_item.done", output_index=0, item=item),
        event("output_text.delta", output_index=0, content_index=0, delta="late"),
        event("output_item.done", output_index=0, item=item),
        event("completed", response={"output": [item]}),
    )
    assert words(result) == ["Hello"]
    assert pieces == [TextPiece(1, "Hel"), TextPiece(1, "lo")]


@pytest.mark.rules("A2.30", "A2.12")
@pytest.mark.parametrize(
    "values",
    [
        [event("function_call_arguments.done", item_id="fc", arguments='{"a":1}')],
        [event("output_item.done", item=call("f", '{"a":1}', id="fc", call_id="c"))],
        [event("output_item.done", item=call("f", {"a": 1}, id="fc", call_id="c"))],
        [event("function_call_arguments.done", item_id="fc", arguments={"a": 1})],
        [],
    ],
)
def test_arguments_may_come_late_or_only_once(values: list[_Json]) -> None:
    result, pieces = answer(
        event("output_item.added", item=call("f", "", id="fc", call_id="c")),
        *values,
        event("completed", response={"output": [call("f", '{"a":1}', id="fc", call_id="c")]}),
    )
    (block,) = result.content
    assert isinstance(block, ToolCall)
    assert json.loads(block.arguments) == {"a": 1}
    assert block.wire_id == "c"
    assert pieces == [ArgumentsPiece(0, block.arguments)]


@pytest.mark.rules("A2.13")
def test_a_call_without_arguments_is_one_without_parameters() -> None:
    for arguments in (None, ""):
        result, _ = answer(
            event("output_item.done", output_index=0, item=call("f", arguments, call_id="c")),
            event("completed", response={}),
        )
        assert words(result) == [("f", "{}")]


@pytest.mark.rules("A2.9")
def test_a_call_without_an_id_of_its_own_goes_by_its_items() -> None:
    result, _ = answer(
        event("function_call_arguments.delta", output_index=0, item_id="fc_1", delta="{}"),
        event("output_item.done", output_index=0, item=call("f", "{}", id="fc_1")),
        event("completed", response={}),
    )
    (block,) = result.content
    assert isinstance(block, ToolCall)
    assert (block.name, block.arguments, block.wire_id) == ("f", "{}", "fc_1")


@pytest.mark.rules("A2.30")
def test_ids_that_change_with_each_event_do_not_part_an_item() -> None:
    reasoning = thought("Hm.", field="summary", id="rs_c", encrypted_content="c")
    result, pieces = answer(
        event("output_item.added", output_index=0, item={"type": "reasoning", "id": "rs_a"}),
        event("reasoning_summary_text.delta", output_index=0, item_id="x1", delta="H"),
        event("reasoning_summary_text.delta", output_index=0, item_id="x2", delta="m."),
        event("output_item.done", output_index=0, item=reasoning),
        event("output_item.added", output_index=1, item={"type": "message", "id": "msg_a"}),
        event("output_text.delta", output_index=1, item_id="x3", delta="H"),
        event("output_text.delta", output_index=1, item_id="x4", delta="i"),
        event("output_item.done", output_index=1, item=said("Hi", id="msg_b")),
        event(
            "completed",
            response={"output": [{**reasoning, "id": "rs_d"}, said("Hi", id="msg_c")]},
        ),
    )
    assert words(result) == ["Hm.", "Hi"]
    assert [piece.text for piece in pieces] == ["H", "m.", "H", "i"]
    assert result.content[0] == Opaque(dialect="openai_responses", raw=reasoning)


@pytest.mark.rules("A2.30")
def test_arguments_that_come_encrypted_give_way_to_the_whole() -> None:
    result, _ = answer(
        event("output_item.added", output_index=0, item=call("f", "", id="a", call_id="c")),
        event("function_call_arguments.delta", output_index=0, item_id="b", delta="q9Xz+"),
        event("function_call_arguments.done", output_index=0, item_id="d", arguments='{"a":1}'),
        event("output_item.done", output_index=0, item=call("f", '{"a":1}', id="e", call_id="c")),
        event("completed", response={}),
    )
    assert words(result) == [("f", '{"a":1}')]
    spaced, _ = answer(  # both make sense: what was told stays
        event("output_item.added", output_index=0, item=call("f", "", id="a", call_id="c")),
        event("function_call_arguments.delta", output_index=0, delta='{"a":1}'),
        event("output_item.done", output_index=0, item=call("f", '{"a": 1}', id="a", call_id="c")),
        event("completed", response={}),
    )
    assert words(spaced) == [("f", '{"a":1}')]


@pytest.mark.rules("A2.30")
def test_events_without_a_place_go_by_their_ids() -> None:
    result, _ = answer(
        event("output_item.added", item=call("f", "", id="fc_a", call_id="a")),
        event("function_call_arguments.delta", item_id="fc_a", delta='{"a"'),
        event("output_item.added", item=call("g", "", id="fc_b", call_id="b")),
        event("function_call_arguments.delta", item_id="fc_b", delta="{}"),
        event("function_call_arguments.delta", item_id="fc_a", delta=":1}"),
        event("output_item.done", item=call("f", '{"a":1}', id="fc_a", call_id="a")),
        event("output_item.done", item=call("g", "{}", id="fc_b", call_id="b")),
        event("completed", response={}),
    )
    assert words(result) == [("f", '{"a":1}'), ("g", "{}")]


@pytest.mark.rules("A2.8", "A2.30")
def test_one_place_for_all_items_does_not_mix_them() -> None:
    result, _ = answer(
        event("output_item.added", output_index=0, item={"type": "reasoning", "id": "r"}),
        event("reasoning_text.delta", output_index=0, item_id="r", delta="Hm."),
        event("output_item.added", output_index=0, item={"type": "message", "id": "m"}),
        event("output_text.delta", output_index=0, item_id="m", delta="Hi"),
        event("output_item.added", output_index=0, item=call("f", "", id="a", call_id="ca")),
        event("output_item.added", output_index=0, item=call("g", "", id="b", call_id="cb")),
        event("function_call_arguments.delta", output_index=0, item_id="a", delta='{"a":1}'),
        event("function_call_arguments.delta", output_index=0, item_id="b", delta='{"b":2}'),
        event("completed", response={}),
    )
    assert words(result) == ["Hm.", "Hi", ("f", '{"a":1}'), ("g", '{"b":2}')]


@pytest.mark.rules("A2.30")
def test_events_that_name_nothing_belong_to_the_newest_item() -> None:
    result, _ = answer(
        event("output_text.delta", delta="Hel"),
        event("output_text.delta", delta="lo"),
        event("output_item.added", item=call("f", "", call_id="c")),
        event("function_call_arguments.delta", delta="{}"),
        event("completed", response={}),
    )
    assert words(result) == ["Hello", ("f", "{}")]


@pytest.mark.rules("A2.30")
def test_parts_that_are_numbered_otherwise_in_the_end_are_the_same_parts() -> None:
    result, pieces = answer(
        event("output_item.added", output_index=0, item={"type": "message", "id": "m"}),
        event("output_text.delta", output_index=0, content_index=1, delta="Hi"),
        event("output_text.done", output_index=0, content_index=1, text="Hi"),
        event("output_item.done", output_index=0, item=said("Hi", id="m")),
        event("completed", response={"output": [said("Hi", id="m")]}),
    )
    assert words(result) == ["Hi"]
    assert len(pieces) == 1
    assert result.content[0] == Opaque(
        dialect="openai_responses",
        raw={
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text"}],
            "id": "m",
        },
    )


@pytest.mark.rules("A2.30")
def test_a_text_whose_whole_differs_stays_as_it_was_told() -> None:
    result, _ = answer(
        event("output_text.delta", output_index=0, delta="Hello."),
        event("output_item.done", output_index=0, item=said("Hello, world.")),
        event("completed", response={}),
    )
    assert words(result) == ["Hello."]


@pytest.mark.rules("A2.30")
def test_the_kind_may_stand_in_the_line_of_the_event_alone() -> None:
    result, _ = answer(
        event("output_text.delta", delta="Hi"),
        event("output_item.added", output_index=1, item=call("f", "{}", call_id="c")),
        event("done", response={"status": "completed"}),
        names=True,
    )
    assert words(result) == ["Hi", ("f", "{}")]


@pytest.mark.rules("A2.30")
def test_an_answer_that_is_over_twice_with_the_same_ids_keeps_both_items() -> None:
    first = thought("One.", field="summary", id="rs", encrypted_content="1")
    second = thought("Two.", field="summary", id="rs", encrypted_content="2")
    result, _ = answer(event("completed", response={"output": [first, second, said("Hi")]}))
    assert words(result) == ["One.", "Two.", "Hi"]
    kept = [block.raw for block in result.content if isinstance(block, Opaque)]
    assert kept == [first, second]


@pytest.mark.rules("A2.27")
@pytest.mark.parametrize(
    ("item", "hidden"),
    [
        (thought(field="summary"), True),
        (thought("Hm.", field="summary"), True),
        (thought(field="summary", encrypted_content="x"), False),
        (thought("Hm."), False),
        (said("Hi"), False),
    ],
)
def test_reasoning_that_cannot_go_back_is_noticed(item: _Json, hidden: bool) -> None:
    decoder = ResponsesDecoder(PEER, lambda _: None)
    value = event("completed", response={"output": [item]})
    decoder.feed(SseEvent(json.dumps(value).encode()))
    decoder.finish()
    assert decoder.hides_reasoning is hidden


def search(query: Any = "cats", sources: Any = None, **more: Any) -> _Json:
    action: _Json = {"type": "search", "query": query, "sources": sources or [], **more}
    return {"type": "web_search_call", "id": f"ws_{query}", "status": "completed", "action": action}


def cited(*urls: str, title: str = "T") -> _Json:
    marks = [{"type": "url_citation", "url": url, "title": f"{title} {url}"} for url in urls]
    part = {"type": "output_text", "text": "Hi", "annotations": marks}
    return {"type": "message", "role": "assistant", "content": [part]}


def found(*output: _Json) -> list[tuple[str, list[str]]]:
    result, _ = answer(event("completed", response={"output": list(output)}))
    return [(made.query, [hit.url for hit in made.items]) for made in result.searches]


@pytest.mark.rules("A2.63")
def test_the_pages_of_a_search_become_an_artifact() -> None:
    sources = [{"type": "url", "url": "https://a.test/1"}, {"type": "api", "name": "weather"}]
    result, _ = answer(
        event("completed", response={"output": [search(sources=sources), cited("https://b.test")]})
    )
    (made,) = result.searches
    assert isinstance(made, SearchArtifact)
    assert made.query == "cats"
    assert [(hit.title, hit.url) for hit in made.items] == [
        ("a.test", "https://a.test/1"),
        ("T https://b.test", "https://b.test"),
    ]
    assert not made.truncated


@pytest.mark.rules("A2.63")
def test_what_no_search_lists_counts_for_the_last_one() -> None:
    a, b = "https://a.test", "https://b.test"
    listed = [{"type": "url", "url": a}]
    assert found(search("one", listed), search("two"), cited(a, b)) == [("one", [a]), ("two", [b])]
    assert found(search(None, queries=["one", "two"]), cited(a)) == [("one; two", [a])]
    assert found(cited(a, a)) == [("", [a])]
    assert found(search("unknown pages"), said("Hi")) == []
    assert found({**search(), "action": {"type": "open_page", "url": a}}) == []
    assert found({**search(), "action": None}, {**search(), "action": {"type": "search"}}) == []


@pytest.mark.rules("A2.63")
def test_a_citation_may_come_in_an_event_of_its_own() -> None:
    mark = {"type": "url_citation", "url": "https://a.test/x", "title": "1"}
    result, _ = answer(
        event("output_text.delta", output_index=0, delta="Hi"),
        event("output_text.annotation.added", output_index=0, annotation=mark),
        event("output_text.annotation.added", output_index=0, annotation={"type": "file_citation"}),
        event("output_text.annotation.added", output_index=0, annotation=7),
        event("completed", response={}),
    )
    (made,) = result.searches
    assert [(hit.title, hit.url) for hit in made.items] == [("a.test", "https://a.test/x")]


@pytest.mark.rules("A2.63")
def test_a_search_with_very_many_pages_is_cut() -> None:
    pages = [f"https://a.test/{number}" for number in range(200)]
    sources = [{"type": "url", "url": url} for url in pages]
    for output in ([search(sources=sources)], [search(), cited(*pages)]):
        result, _ = answer(event("completed", response={"output": output}))
        (made,) = result.searches
        assert [hit.url for hit in made.items] == pages[:50]
        assert made.truncated
