"""Blocks, and what of them stays in the server."""

import pytest

from towline_protocol import (
    Block,
    CallId,
    Image,
    Opaque,
    Private,
    Text,
    Thinking,
    ToolCall,
    block_text,
    encode,
    restore_private,
    strip_private,
)

CALL = CallId("call_1")
BLOCKS: tuple[Block, ...] = (
    Text(text="a"),
    Thinking(text="hm", signature="secret-1"),
    Thinking(text="", signature="secret-2", redacted=True),
    Thinking(text="plain"),
    ToolCall(id=CALL, name="now", arguments="{}", wire_id="secret-3", signature="secret-4"),
    ToolCall(id=CALL, name="now", arguments="{}"),
    Opaque(dialect="anthropic", raw={"secret-5": [1]}),
    Opaque(dialect="anthropic"),
    Image(media_type="image/png", file="f" * 64),
)


@pytest.mark.rules("C1.9")
def test_what_only_a_provider_needs_is_taken_out_and_put_back() -> None:
    public, private = strip_private(BLOCKS)
    assert b"secret" not in encode(public)
    assert len(public) == len(BLOCKS)
    assert restore_private(public, private) == BLOCKS


def test_blocks_without_private_parts_stay_as_they_are() -> None:
    plain = (BLOCKS[0], BLOCKS[3], BLOCKS[5], BLOCKS[7], BLOCKS[8])
    assert strip_private(plain) == (plain, ())
    assert restore_private(plain) == plain


def test_private_parts_that_fit_no_block_are_left_out() -> None:
    text: tuple[Block, ...] = (Text(text="a"),)
    stray = (Private(block=0, signature="x"), Private(block=9, raw=1))
    assert restore_private(text, stray) == text


def test_the_text_of_blocks_is_that_of_text_blocks_alone() -> None:
    blocks: tuple[Block, ...] = (Text(text="a"), Thinking(text="b"), Text(text="c"))
    assert block_text(blocks) == "ac"
