"""The programs of `docs_src/`: each stands on a page, word for word, and each is run here.

They ask models by name. What answers is a script, so that nothing leaves the machine.
"""

import asyncio
import re
import runpy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from towline_agent import (
    AuthenticationFailed,
    QuotaExhausted,
    StepFailed,
    SystemClock,
    TextPiece,
)
from towline_agent.providers.keys import Bench
from towline_agent.providers.vendors import VENDORS
from towline_agent.testing import (
    Script,
    Scripted,
    ScriptedProvider,
    ScriptedTransport,
    call,
    event_stream,
)
from towline_protocol import Image, Text, ToolResult, block_text

ROOT = Path(__file__).parents[1]
SNIPPETS = ROOT / "docs_src"
PAGES = ("README.md", "docs/library.md", "docs/models.md", "packages/agent/README.md")

ELSEWHERE = {"readme_ten_lines": "tests/product/test_readme.py, which has a real model"}
OF_THE_CLIENT = ("client_", "own_")  # run by test_client_snippets.py

NO_CREDIT = StepFailed(error=QuotaExhausted("No credit.", reason="quota"))


def chunk(text: str, **usage: int) -> dict[str, Any]:
    """A whole answer of Chat Completions in one event."""
    words = {"index": 0, "delta": {"content": text}, "finish_reason": "stop"}
    return {"choices": [words], "usage": usage} if usage else {"choices": [words]}


@dataclass(frozen=True)
class Case:
    """One run of a snippet."""

    models: Mapping[str, tuple[Script, ...]] = field(default_factory=dict[str, tuple[Script, ...]])
    """What each model says, by the name it is asked under."""
    answers: tuple[Scripted | bytes, ...] = ()
    """What comes back over HTTP, request by request."""
    printed: str = ""
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    keys: Mapping[str, str] = field(default_factory=dict[str, str])
    """Variables of the environment, which holds no other keys."""


CASES = {
    "readme_agent": Case(
        models={
            "anthropic": (
                call("newest_mail", sender="Hotel Alba"),
                '{"number": "2026-118", "total": 240}',
            )
        },
        printed="2026-118 240.0\n",
    ),
    "library_first": Case(
        models={"openai": (call("weather", city="Lisbon"), "It is sunny.")},
        printed="It is sunny.\n",
    ),
    "library_conversation": Case(
        models={"anthropic/claude-opus-5-5": ("It is Lisbon.", "About 570,000 people.")},
        printed="About 570,000 people.\n",
    ),
    "library_saved": Case(
        models={"openai": ("The way to Lisbon.",)},
        files={
            "conversation.json": b'[{"role":"user","content":[{"type":"text","text":"Where is '
            b'it?"}]},{"role":"assistant","content":[{"type":"text","text":"In Portugal."}]}]'
        },
        printed="2 The way to Lisbon.\n",
    ),
    "library_stream": Case(
        models={"openai": (call("roll", sides=20), [TextPiece(0, "A "), TextPiece(0, "twenty!")])},
        printed='[roll {"sides": 20}]\nA twenty!\n2 steps\n',
    ),
    "library_stop": Case(
        models={"openai": ([TextPiece(0, "1, 2, 3"), asyncio.Event()], "At three.")},
        printed="At three.\n",
    ),
    "library_tools": Case(
        models={
            "openai": (
                call("count", article="coffee"),
                call("order", article="coffee", packets=500),
                call("order", article="coffee", packets=20),
                "There are 20 now.",
            )
        },
        printed="There are 20 now.\n{'tea': 12, 'coffee': 20}\n",
    ),
    "library_handler": Case(
        models={"openai": (call("lamp", on=True), "The lamp is on.")}, printed="The lamp is on.\n"
    ),
    "library_typed": Case(
        models={
            "openai": (
                '{"number": "118", "currency": "EUR", "lines": '
                '[{"what": "nights", "price": 240}, {"what": "breakfast", "price": 9}]}',
            )
        },
        printed="249.0 EUR\n",
    ),
    "library_picture": Case(
        models={"gemini": ("A cat.",)}, files={"cat.png": b"a picture"}, printed="A cat.\n"
    ),
    "library_limits": Case(
        models={"gemini": ("Take all of them, and multiply.",)},
        printed="end_turn\nprice unknown\n",
    ),
    "library_refusals": Case(
        models={
            "anthropic": (NO_CREDIT,),
            "openai": (NO_CREDIT,),
            "groq/openai/gpt-oss-120b": ("A tram.",),
        },
        printed="A tram.\n",
    ),
    "library_keys": Case(
        answers=(Scripted(status=429), event_stream(chunk("Hello."))), printed="Hello.\n"
    ),
    "library_permissions": Case(
        models={
            "openai": (
                call("send_mail", to="boss@example.com", text="I am ill."),
                call("send_mail", to="ann@example.com", text="I am ill."),
                "Ann knows; your boss does not.",
            )
        },
        printed="Send a mail to ann@example.com? ['allow_once', 'allow_session', 'deny']\n"
        "['ann@example.com: I am ill.']\n",
    ),
    "library_agents": Case(
        models={
            "anthropic": (
                call("spawn_agent", prompt="Umbrellas?", agent="critic"),
                "It does not rain.",
                "Don't.",
            )
        },
        printed="Don't. 30\n",
    ),
    "library_spawn": Case(
        models={
            "anthropic": (call("spawn_agent", prompt="Umbrellas?", agent="critic"), "Don't."),
            "openai": ("It does not rain.",),
            "groq": (),
        },
        printed="Don't.\n",
    ),
    "library_errors": Case(
        models={"openai": (StepFailed(error=AuthenticationFailed("Set OPENAI_API_KEY.")),)},
        printed="Look at the key: Set OPENAI_API_KEY.\n",
    ),
    "library_testing": Case(),
    "models_gateway": Case(
        answers=(event_stream(chunk("Hello.", prompt_tokens=20, completion_tokens=5)),),
        printed="Hello. 4e-06\n",
    ),
    "models_choose": Case(
        answers=(
            b'{"models": [{"name": "models/gemini-3.8-flash"}, {"name": "models/gemini-4.0-pro"},'
            b' {"name": "models/gemini-4.0-flash"}]}',
        ),
        keys={"GEMINI_API_KEY": "AIza-example"},
        printed="gemini: GEMINI_API_KEY is set\n"
        "gemini-4.0-flash: the newest of its kind that Google Gemini offers\n",
    ),
}


def test_each_snippet_has_a_run_and_stands_on_a_page() -> None:
    names = {path.stem for path in SNIPPETS.glob("*.py")}
    names -= {name for name in names if name.startswith(OF_THE_CLIENT)}
    assert names == CASES.keys() | ELSEWHERE.keys()
    shown = {name for page in PAGES for name in _shown(page, names)}
    assert names - shown == set()


@pytest.mark.parametrize("page", PAGES)
def test_a_page_shows_no_python_that_is_not_run(page: str) -> None:
    names = {path.stem for path in SNIPPETS.glob("*.py")}
    blocks = re.findall(r"^```python$", (ROOT / page).read_text("utf-8"), re.MULTILINE)
    assert len(blocks) == len(_shown(page, names))


def _shown(page: str, names: set[str]) -> list[str]:
    """The snippets that a page shows as they are."""
    text = (ROOT / page).read_text(encoding="utf-8")
    return [
        name
        for name in sorted(names)
        if f"```python\n{(SNIPPETS / f'{name}.py').read_text('utf-8')}```" in text
    ]


@dataclass(frozen=True)
class Ran:
    """A snippet after its run."""

    names: dict[str, Any]
    """What it has defined."""
    providers: dict[str, ScriptedProvider]
    """Who was asked, by the model's name."""
    transport: ScriptedTransport
    """What was sent over HTTP."""


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[str], Ran]:
    """Runs a snippet as its reader would, in an empty folder."""

    def run_snippet(name: str) -> Ran:
        case = CASES[name]
        providers = {model: ScriptedProvider(*script) for model, script in case.models.items()}
        transport = ScriptedTransport(*case.answers)

        def shared_transport(_ca_file: str | None) -> ScriptedTransport:
            return transport

        for file, content in case.files.items():
            (tmp_path / file).write_bytes(content)
        if providers:
            monkeypatch.setattr("towline_agent.providers.catalog.connect", providers.__getitem__)
        monkeypatch.setattr("towline_agent.providers.http.shared_transport", shared_transport)
        bench = Bench(SystemClock())  # another run has benched keys on the process's own
        monkeypatch.setattr("towline_agent.providers.keys.shared_bench", lambda: bench)
        for setting, value in case.keys.items():
            monkeypatch.setenv(setting, value)
        names = runpy.run_path(str(SNIPPETS / f"{name}.py"))
        return Ran(names, providers, transport)

    monkeypatch.chdir(tmp_path)
    for vendor in VENDORS.values():
        for setting in filter(None, (*vendor.key_settings, vendor.url_setting)):
            monkeypatch.delenv(setting, raising=False)
            monkeypatch.delenv(f"{setting}S", raising=False)
    return run_snippet


@pytest.mark.parametrize("name", CASES)
def test_a_snippet_does_what_its_page_says(
    name: str, run: Callable[[str], Ran], capsys: pytest.CaptureFixture[str]
) -> None:
    ran = run(name)
    assert capsys.readouterr().out == CASES[name].printed
    asked = {model: len(provider.requests) for model, provider in ran.providers.items()}
    assert asked == {model: len(script) for model, script in CASES[name].models.items()}
    assert len(ran.transport.calls) == len(CASES[name].answers)


def test_the_tests_that_the_library_page_shows_pass(run: Callable[[str], Ran]) -> None:
    tests = [value for name, value in run("library_testing").names.items() if "test_" in name]
    assert len(tests) == 2
    for test in tests:
        asyncio.run(test())


def told(ran: Ran, model: str) -> list[str]:
    """The results of calls that a model was told, in order."""
    return [
        block_text(block.content)
        for message in ran.providers[model].requests[-1].messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]


def test_the_tools_of_the_pages_tell_the_model_what_they_did(run: Callable[[str], Ran]) -> None:
    assert told(run("readme_agent"), "anthropic")[0].startswith("Bill 2026-118")
    assert told(run("library_first"), "openai") == ["Sunny in Lisbon."]
    assert told(run("library_handler"), "openai") == ["lamp is on"]
    bad, ordered = told(run("library_tools"), "openai")[1:]
    assert "order 100 at most" in bad
    assert ordered == "ordered"


def test_a_conversation_goes_on_with_what_was_said(run: Callable[[str], Ran]) -> None:
    for name, model in {"conversation": "anthropic/claude-opus-5-5", "stop": "openai"}.items():
        request = run(f"library_{name}").providers[model].requests[1]
        assert [message.role for message in request.messages] == ["user", "assistant", "user"]


def test_a_picture_goes_to_the_model(run: Callable[[str], Ran]) -> None:
    (request,) = run("library_picture").providers["gemini"].requests
    picture, words = request.messages[0].content
    assert isinstance(picture, Image)
    assert words == Text(text="What is in the picture?")
    assert picture.data == "YSBwaWN0dXJl"


def test_effort_and_the_search_of_a_provider_are_asked_of_each_model(
    run: Callable[[str], Ran],
) -> None:
    for provider in run("library_refusals").providers.values():
        (request,) = provider.requests
        assert (request.effort, request.server_tools) == ("high", ("web_search",))


def test_the_next_key_and_a_header_of_ones_own_are_sent(run: Callable[[str], Ran]) -> None:
    sent = [call.headers["authorization"] for call in run("library_keys").transport.calls]
    assert sent == ["Bearer gsk-of-the-team", "Bearer gsk-of-mine"]
    (only,) = run("models_gateway").transport.calls
    assert (only.url, only.headers["x-team"]) == (
        "https://llm.example/v1/chat/completions",
        "books",
    )
