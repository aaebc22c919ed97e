"""Functions as tools: what is told of them, and what they return."""

import asyncio
import base64
import threading
from collections.abc import Callable
from typing import Any, Literal

import pytest

from towline_client import CallContext, CallFailed, Client
from towline_client.bridge.handlers import MAX_TOOLS
from towline_client.bridge.result import MAX_BLOCKS, MAX_PICTURE, to_content
from towline_client.bridge.threads import Threads
from towline_client.bridge.tool import BoundTool, bind_tool
from towline_client.testing import ScriptedServer, ScriptedTransport
from towline_protocol import CallId, ClientTool, Image, SessionId, Text, UsageError

PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(20)).decode()


def _client() -> Client:
    return Client("", "token", transport=ScriptedTransport(ScriptedServer()))


def _bind(function: Callable[..., Any], **facts: Any) -> BoundTool:
    known: dict[str, Any] = {
        "name": None,
        "description": None,
        "effect": "write",
        "idempotent": False,
        "timeout_s": 120.0,
    }
    return bind_tool(function, Threads("test", 2), **{**known, **facts})


def _context() -> CallContext:
    def show(text: str, fraction: float | None) -> None:
        raise AssertionError((text, fraction))

    return CallContext(CallId("call_1"), session=SessionId("ses_1"), expires_at="", show=show)


@pytest.mark.rules("C5.12")
def test_a_tool_is_told_by_the_signature_and_the_docstring_of_its_function() -> None:
    async def locate(context: CallContext, unit: Literal["m", "ft"] = "m") -> str:
        """Where this phone is.

        Args:
            unit: Of the height.
        """
        return f"{context.call} {unit}"

    told = _bind(locate).declared
    assert told == ClientTool(
        name="locate",
        description="Where this phone is.",
        parameters={
            "type": "object",
            "properties": {
                "unit": {"enum": ["ft", "m"], "description": "Of the height.", "default": "m"}
            },
            "required": [],
            "additionalProperties": False,
        },
    )
    assert (told.effect, told.idempotent, told.timeout_s) == ("write", False, 120.0)
    facts = {"effect": "read", "idempotent": True, "timeout_s": 5.0}
    told = _bind(lambda: None, name="look_up", description="Words.", **facts).declared
    assert (told.name, told.description) == ("look_up", "Words.")
    assert (told.effect, told.idempotent, told.timeout_s) == ("read", True, 5.0)
    assert _bind(lambda: None, name="look_up").declared.description == "look up"


async def test_a_plain_function_runs_in_a_thread_and_an_async_one_in_the_loop() -> None:
    here = threading.get_ident()

    def plain() -> bool:
        return threading.get_ident() == here

    async def waits() -> bool:
        return threading.get_ident() == here

    def gives() -> Any:
        return waits()

    class Bell:
        async def __call__(self) -> bool:
            return threading.get_ident() == here

    async with asyncio.timeout(10):
        assert await _bind(plain).run(_context(), "{}") is False
        assert await _bind(waits).run(_context(), "{}") is True
        assert await _bind(gives).run(_context(), "{}") is True
        assert await _bind(Bell(), name="it").run(_context(), "{}") is True


async def test_arguments_come_as_the_types_of_the_signature() -> None:
    async def add(context: CallContext, left: int, right: int = 2) -> str:
        return f"{context.session} {left + right}"

    tool = _bind(add)
    assert await tool.run(_context(), '{"left": 1}') == "ses_1 3"
    for text in ('{"left": "x"}', "{}", '{"left": 1, "more": 1}', "{", "[]"):
        with pytest.raises(CallFailed, match="The arguments of add do not fit: "):
            await tool.run(_context(), text)

    async def bare() -> int:
        return 1

    assert await _bind(bare).run(_context(), " ") == 1


async def test_a_plain_function_raises_as_any_other_and_only_so_many_run_at_once() -> None:
    threads = Threads("test", 1)
    go, begun = threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    def hold() -> None:
        loop.call_soon_threadsafe(begun.set)
        go.wait(10)

    def stop() -> None:
        raise StopIteration("odd")

    async with asyncio.timeout(10):
        first = asyncio.create_task(threads.run(hold))
        await begun.wait()
        second = asyncio.create_task(threads.run(stop))
        first.cancel()
        await asyncio.wait([first])
        assert first.cancelled()
        assert not second.done()  # the place is taken until the thread is done
        go.set()
        with pytest.raises(RuntimeError, match="StopIteration"):
            await second


async def test_a_thread_that_cannot_start_takes_no_place(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads("test", 1)

    def start(thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            await threads.run(lambda: 1)
    async with asyncio.timeout(10):
        assert await threads.run(lambda: 1) == 1


def _yields() -> Any:
    yield 1


def _takes_all(*more: str) -> str:
    return " ".join(more)


_UNFIT: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (lambda: None, {"name": "no name"}, "can't be a tool's name"),
    (lambda: None, {"name": "x", "effect": "own"}, "has the effect 'own'; use one of read"),
    (lambda: None, {"name": "x", "timeout_s": 0.5}, "takes 1 to 600 seconds"),
    (lambda: None, {"name": "x", "timeout_s": 601.0}, "takes 1 to 600 seconds"),
    (_yields, {}, "yields; return its result instead"),
    (_takes_all, {}, "can't fill parameter 'more'"),
]


@pytest.mark.parametrize(("function", "facts", "words"), _UNFIT)
def test_a_function_that_can_be_no_tool_is_refused_with_what_to_do(
    function: Callable[..., Any], facts: dict[str, Any], words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        _client().tool(**facts)(function)


def test_what_is_registered_is_given_back_and_names_are_taken_once() -> None:
    client = _client()

    @client.tool
    def ring(loud: bool = False) -> str:
        return "RANG" if loud else "rang"

    @client.tool(name="ring_twice", effect="read")
    def again() -> str:
        return "rang, rang"

    assert (ring(loud=True), again()) == ("RANG", "rang, rang")
    with pytest.raises(UsageError, match="There is a tool 'ring' already"):
        client.tool(ring)
    for number in range(MAX_TOOLS - 2):
        client.tool(name=f"ring_{number}")(again)
    with pytest.raises(UsageError, match="'last' is one too many"):
        client.tool(name="last")(again)

    @client.on_permission
    def no(request: object) -> str:
        return f"deny {request}"

    @client.on_question
    def words(question: object) -> str:
        return f"some {question}"

    assert (no(1), words(2)) == ("deny 1", "some 2")
    with pytest.raises(UsageError, match="answers permissions already"):
        client.on_permission(no)
    with pytest.raises(UsageError, match="answers questions already"):
        client.on_question(words)


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize(
    ("value", "content"),
    [
        ("as it is", (Text(text="as it is"),)),
        ("half \ud83d", (Text(text="half �"),)),
        (None, (Text(text="null"),)),
        ({"lat": 1.5}, (Text(text='{"lat":1.5}'),)),
        ([], (Text(text="[]"),)),
        (Text(text="a"), (Text(text="a"),)),
        (
            [Text(text="a"), Image(media_type="image/png", data=PNG)],
            (Text(text="a"), Image(media_type="image/png", data=PNG)),
        ),
        ([Text(text="a"), 1], (Text(text='[{"type":"text","text":"a"},1]'),)),
    ],
)
def test_text_and_blocks_pass_and_all_else_becomes_json(
    value: object, content: tuple[Any, ...]
) -> None:
    assert to_content(value) == content


@pytest.mark.rules("C5.12")
@pytest.mark.parametrize(
    ("value", "words"),
    [
        (Image(media_type="image/png"), "without its bytes"),
        (Image(media_type="image/png", data=PNG, file="f"), "without its bytes"),
        (Image(media_type="image/jpeg", data=PNG), "as 'image/jpeg' whose bytes are image/png"),
        (Image(media_type="image/png", data="aGVsbG8gd29ybGQ="), "bytes are no picture"),
        (Image(media_type="image/png", data="%%%"), "bytes are no picture"),
        (
            Image(media_type="image/png", data="A" * ((MAX_PICTURE + 2) // 3 * 4 + 4)),
            f"more than {MAX_PICTURE} bytes",
        ),
        ([Text(text="a")] * (MAX_BLOCKS + 1), f"{MAX_BLOCKS} are the most"),
        (object(), "can't be made into JSON"),
    ],
)
def test_a_result_that_cannot_be_sent_is_found_before_it_is(value: object, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        to_content(value)


@pytest.mark.parametrize(
    ("head", "kind"),
    [
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF87a", "image/gif"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x00\x00\x00\x00WEBPVP8 ", "image/webp"),
    ],
)
def test_each_kind_of_picture_is_known_by_its_bytes(head: bytes, kind: str) -> None:
    data = base64.b64encode(head + bytes(20)).decode()
    assert to_content(Image(media_type=kind, data=data))
