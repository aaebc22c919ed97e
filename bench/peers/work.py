"""What every peer has to do: the cases, the tools and the earlier conversation."""

from collections.abc import Awaitable, Callable
from typing import Any, Final, NamedTuple, Protocol

INSTRUCTIONS: Final = "You plan trips. Look things up before you answer."
PROMPT: Final = "When does the ferry leave, and will it rain?"
RESULT: Final = "The ferry leaves at 8:40 and at 17:15, on Sundays and holidays at 10:05. "


class Peer(Protocol):
    """One way to write the loop, over one model."""

    def history(self) -> Any:
        """The earlier conversation in this peer's own form, made anew."""
        ...

    async def run(self, history: Any) -> str:
        """Take `PROMPT` to its end and say what the model said last."""
        ...

    async def aclose(self) -> None:
        """Give back connections."""
        ...


class Case(NamedTuple):
    """One thing to measure."""

    model: str
    """Picks the server's script."""
    words: int
    """Of the last answer, to see that the work was done."""
    warm: str = ""
    """The script to warm up with, where it is another one."""
    long: bool = False
    """Whether there is an earlier conversation."""
    at_once: int = 1
    """Runs at the same time."""
    repeats: int = 20
    """Measured runs of one process, where the budget allows."""


CASES: Final = {
    "burst": Case("answer-2000", 2000),
    "paced": Case("paced-2000", 2000, warm="answer-2000", repeats=1),
    "loop": Case("loop-10", 10),
    "long": Case("loop-10", 10, long=True),
    "many": Case("answer-10", 10, at_once=100),
    "start": Case("answer-10", 10),
}


async def weather(city: str, days: int) -> str:
    """Say how the weather will be.

    Args:
        city: The English name of a city.
        days: How many days to look ahead.
    """
    return f"{city}, {days} days: {RESULT}"


async def search(query: str, limit: int) -> str:
    """Find pages by their words.

    Args:
        query: What to look for.
        limit: The most pages to name.
    """
    return f"{query}, {limit} pages: {RESULT}"


async def read_page(path: str, line: int) -> str:
    """Read one page.

    Args:
        path: Its name, as `search` gave it.
        line: The line to begin at.
    """
    return f"{path}:{line}: {RESULT}"


TOOLS: Final[tuple[Callable[..., Awaitable[str]], ...]] = (weather, search, read_page)
BY_NAME: Final = {tool.__name__: tool for tool in TOOLS}


def _schema(name: str, about: str, **parameters: tuple[str, str]) -> dict[str, Any]:
    properties = {
        parameter: {"type": kind, "description": text}
        for parameter, (kind, text) in parameters.items()
    }
    schema = {"type": "object", "properties": properties, "required": list(properties)}
    function = {"name": name, "description": about, "parameters": schema}
    return {"type": "function", "function": function}


SCHEMAS: Final = [
    _schema(
        "weather",
        "Say how the weather will be.",
        city=("string", "The English name of a city."),
        days=("integer", "How many days to look ahead."),
    ),
    _schema(
        "search",
        "Find pages by their words.",
        query=("string", "What to look for."),
        limit=("integer", "The most pages to name."),
    ),
    _schema(
        "read_page",
        "Read one page.",
        path=("string", "Its name, as `search` gave it."),
        line=("integer", "The line to begin at."),
    ),
]
"""The tools' words for the model, for those who write them by hand."""


class Call(NamedTuple):
    """A call of the earlier conversation, and its result."""

    id: str
    name: str
    arguments: str
    result: str


class Exchange(NamedTuple):
    """Five messages: a question, two calls at once, their two results, an answer."""

    prompt: str
    calls: tuple[Call, ...]
    answer: str


def _exchange(number: int) -> Exchange:
    weather_arguments = f'{{"city": "Town {number}", "days": 3}}'
    search_arguments = f'{{"query": "ferry {number}", "limit": 5}}'
    return Exchange(
        f"Question {number}: {PROMPT}",
        (
            Call(f"call_h{number:04}_0_b3Rt8", "weather", weather_arguments, RESULT * 4),
            Call(f"call_h{number:04}_1_z9Lm4", "search", search_arguments, RESULT * 4),
        ),
        f"Answer {number}: {RESULT * 3}",
    )


EXCHANGES: Final = tuple(_exchange(number) for number in range(40))
"""200 messages."""


def chat_history() -> list[dict[str, Any]]:
    """The earlier conversation as Chat Completions has it."""
    messages: list[dict[str, Any]] = []
    for exchange in EXCHANGES:
        calls = [
            {"id": call.id, "type": "function", "function": _function(call)}
            for call in exchange.calls
        ]
        messages.append({"role": "user", "content": exchange.prompt})
        messages.append({"role": "assistant", "content": None, "tool_calls": calls})
        messages.extend(
            {"role": "tool", "tool_call_id": call.id, "content": call.result}
            for call in exchange.calls
        )
        messages.append({"role": "assistant", "content": exchange.answer})
    return messages


def _function(call: Call) -> dict[str, str]:
    return {"name": call.name, "arguments": call.arguments}
