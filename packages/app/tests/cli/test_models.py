"""`towline models` on a screen of its own."""

import json
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from towline.cli.model_table import ModelRow, format_price, format_tokens, show_rows
from towline.cli.models import show_models, show_provider
from towline.local_provider import LOCAL_MODEL
from towline.picks import Picks
from towline_agent import HttpAnswer, HttpCall, Model, TransportFailed
from towline_agent.testing import ScriptedTransport
from towline_protocol import UsageError


def listed(*names: str) -> bytes:
    """A list of models."""
    rows = [{"id": name, "object": "model"} for name in names]
    return json.dumps({"object": "list", "data": rows}).encode()


class Web(ScriptedTransport):
    """Answers by a part of the address; no other host is known."""

    def __init__(self, answers: dict[str, bytes | int] | None = None) -> None:
        super().__init__()
        self._answers = answers or {}

    async def json(self, call: HttpCall) -> HttpAnswer:
        """The answer of that address."""
        self.calls.append(call)
        for part, answer in self._answers.items():
            if part in call.url and isinstance(answer, int):
                return HttpAnswer(status=answer, body=b'{"error": "no such key sk-secret"}')
            if part in call.url and isinstance(answer, bytes):
                return HttpAnswer(status=200, body=answer)
        raise TransportFailed("dns" if "https" in call.url else "refused")


class Screen:
    """What a person sees."""

    def __init__(self, tmp_path: Path, width: int = 80) -> None:
        self.file = StringIO()
        self.console = Console(file=self.file, width=width)
        self.environ = {"TOWLINE_HOME": str(tmp_path), "TOWLINE_MODEL_DIR": str(tmp_path)}

    async def models(self, web: Web, *, as_json: bool = False, **environ: str) -> str:
        """`towline models`."""
        code = await show_models(
            self.console, as_json=as_json, environ={**self.environ, **environ}, transport=web
        )
        assert code == 0
        return self.file.getvalue()

    async def provider(self, name: str, web: Web, *, as_json: bool = False, **environ: str) -> str:
        """`towline models NAME`."""
        environ = {**self.environ, **environ}
        code = await show_provider(
            name, self.console, as_json=as_json, environ=environ, transport=web
        )
        assert code == 0
        return self.file.getvalue()


@pytest.fixture
def screen(tmp_path: Path) -> Screen:
    """A screen of 80 columns."""
    return Screen(tmp_path)


@pytest.mark.rules("A2.86", "A2.90")
async def test_without_anything_the_embedded_model_is_taken_and_all_is_explained(
    screen: Screen,
) -> None:
    text = await screen.models(Web())
    assert text.startswith(f"New sessions take {LOCAL_MODEL}.\nNo provider key is set")
    assert f"▸  {LOCAL_MODEL}" in text
    assert "1.1 GB are fetched at the first use" in text
    assert "Without a key or an address here: anthropic, openai, gemini" in text
    assert max(map(len, text.splitlines())) <= 80


@pytest.mark.rules("A2.85", "A2.86", "A2.90")
async def test_what_was_found_is_shown_with_the_model_and_why(screen: Screen) -> None:
    web = Web({
        "api.openai.com": listed("gpt-6.1-sol", "gpt-5", "tts-1"),
        "127.0.0.1:11434": listed("qwen3:14b"),
    })  # fmt: skip
    text = await screen.models(web, OPENAI_API_KEY="sk-1")
    assert text.startswith("New sessions take openai/gpt-6.1-sol.\nOPENAI_API_KEY is set.\n")
    rows = text.splitlines()
    assert next(row for row in rows if "openai/gpt-6.1-sol " in row).split() == [
        "▸", "openai/gpt-6.1-sol", "1.05M", "2+", "10+",
    ]  # fmt: skip
    words = " ".join(text.split())
    assert "OPENAI_API_KEY is set; the usual one of OpenAI. It offers 2 models." in words
    assert next(row for row in rows if "ollama/" in row).split() == [
        "ollama/qwen3:14b", "?", "free", "free",
    ]  # fmt: skip
    assert text.index("ollama/qwen3:14b") < text.index(LOCAL_MODEL)
    assert "▸  local" not in text


@pytest.mark.rules("A1.27", "A2.90")
async def test_a_provider_that_cannot_be_asked_is_a_line(screen: Screen) -> None:
    web = Web({"api.groq.com": 401})
    text = await screen.models(
        web, GROQ_API_KEY="sk-secret", OPENAI_API_KEY="sk-1", VERTEX_ACCESS_TOKEN="t"
    )
    assert "groq/openai/gpt-oss-120b" in text
    assert "set GROQ_API_KEY to a valid key" in " ".join(text.split())
    assert "api.openai.com/v1/models is not known" in " ".join(text.split())
    assert "set GOOGLE_CLOUD_PROJECT" in " ".join(text.split())
    assert "sk-secret" not in text


@pytest.mark.rules("A2.87", "A2.90")
async def test_the_last_pick_and_the_settings_decide(screen: Screen, tmp_path: Path) -> None:
    Picks(tmp_path / "data").remember("groq/llama-3.3-70b-versatile")
    web = Web({"api.groq.com": listed("openai/gpt-oss-120b")})
    text = await screen.models(web, GROQ_API_KEY="k")
    assert text.startswith("New sessions take groq/llama-3.3-70b-versatile.")
    (tmp_path / "config.toml").write_text('model = "groq/openai/gpt-oss-20b"\n')
    again = Screen(tmp_path)
    text = await again.models(web, GROQ_API_KEY="k")
    assert text.startswith("New sessions take groq/openai/gpt-oss-20b.")
    assert "▸  groq/openai/gpt-oss-20b" in text


async def test_a_phone_gets_words_instead_of_columns(tmp_path: Path) -> None:
    screen = Screen(tmp_path, width=44)
    text = await screen.models(Web(), OPENAI_API_KEY="k")
    assert "1.05M tokens, $2+ in, $10+ out" in text
    assert "8k tokens, free" in text
    assert "$ in" not in text.replace("$2+ in", "")
    assert max(map(len, text.splitlines())) <= 44


@pytest.mark.rules("A1.27", "A2.82")
async def test_a_provider_is_listed_with_windows_and_prices(screen: Screen) -> None:
    names = ("gpt-5.10-x", "gpt-5.9-x", "gpt-5-mini", "gpt-6.1-sol", "text-embedding-3-small")
    text = await screen.provider("openai", Web({"/models": listed(*names)}), OPENAI_API_KEY="k")
    assert text.startswith("OpenAI offers 4 models.\n")
    assert "Taken here: openai/gpt-6.1-sol (the usual one of OpenAI)." in text
    rows = [row.split() for row in text.splitlines() if "gpt-" in row][1:]
    assert rows == [
        ["gpt-5-mini", "400k", "0.25", "2"],
        ["gpt-5.9-x", "?", "?", "?"],
        ["gpt-5.10-x", "?", "?", "?"],
        ["▸", "gpt-6.1-sol", "1.05M", "2+", "10+"],
    ]
    assert "embedding" not in text
    assert "? is unknown. A + means" in " ".join(text.split())


@pytest.mark.rules("A1.27")
async def test_without_a_key_the_known_models_are_listed_and_why(screen: Screen) -> None:
    web = Web()
    text = await screen.provider("google", web)
    assert text.startswith("Google Gemini gave no list; ")
    assert "set GEMINI_API_KEY to a valid key" in " ".join(text.split())
    assert "gemini-2.5-pro" in text
    assert "▸  gemini-3.8-flash" in text
    assert web.calls == []


async def test_an_address_that_says_nothing_leaves_no_empty_table(screen: Screen) -> None:
    text = await screen.provider("custom", Web(), TOWLINE_BASE_URL="https://mine.test")
    assert "gave no list; no models of it are known here." in text
    assert "mine.test" in text
    assert "Tokens" not in text


async def test_the_embedded_model_can_be_listed_and_nobody_cannot(screen: Screen) -> None:
    assert "qwen2.5-coder" in await screen.provider("local", Web())
    with pytest.raises(UsageError, match="There is no provider 'nobody'"):
        await screen.provider("nobody", Web())


async def test_what_a_server_writes_cannot_redraw_the_screen(screen: Screen) -> None:
    web = Web({"127.0.0.1:11434": listed("evil\x1b[2K\u202e[bold]x:bug:")})
    text = await screen.provider("ollama", web)
    assert "evil␛[2K<U+202E>[bold]x:bug:" in text
    assert "\x1b" not in text


@pytest.mark.rules("A2.90")
async def test_programs_get_json(screen: Screen, tmp_path: Path) -> None:
    web = Web({"api.openai.com": listed("gpt-5-mini")})
    found: dict[str, Any] = json.loads(await screen.models(web, as_json=True, OPENAI_API_KEY="k"))
    assert found["taken"]["model"] == "openai/gpt-6.1-sol"
    (offer,) = found["providers"]
    assert (offer["provider"], offer["count"], offer["problem"]) == ("openai", 1, None)
    assert found["embedded"]["model"] == LOCAL_MODEL
    again = Screen(tmp_path, width=20)
    found = json.loads(await again.provider("openai", web, as_json=True, OPENAI_API_KEY="k"))
    assert (found["live"], found["problem"]) == (True, None)
    (model,) = found["models"]
    assert (model["model"], model["window"]) == ("openai/gpt-5-mini", 400_000)
    assert (model["price_input"], model["price_cache_read"]) == (0.25, 0.025)


@pytest.mark.parametrize(
    ("tokens", "text"),
    [(None, "?"), (512, "512"), (8192, "8k"), (131_072, "131k"), (1_050_000, "1.05M"),
     (1_000_000, "1M"), (10_000_000, "10M")],
)  # fmt: skip
def test_numbers_of_tokens_are_short(tokens: int | None, text: str) -> None:
    assert format_tokens(tokens) == text


@pytest.mark.parametrize(
    ("dollars", "more", "text"),
    [(None, False, "?"), (0.0, False, "free"), (0.039, False, "0.039"), (2.5, True, "2.5+"),
     (15.0, False, "15")],
)  # fmt: skip
def test_prices_are_short(dollars: float | None, more: bool, text: str) -> None:
    assert format_price(dollars, more=more) == text


@pytest.mark.parametrize("width", [24, 40, 80, 200])
def test_a_long_name_is_folded_and_never_cut(width: int) -> None:
    name = "accounts/fireworks/models/some-very-long-model-name-with-many-parts-and-no-end"
    file = StringIO()
    facts = Model(provider="fireworks", id=name, window=1000, price_input=1.0, price_output=2.0)
    show_rows(Console(file=file, width=width), [ModelRow(name=name, facts=facts, taken=True)])
    lines = file.getvalue().splitlines()
    assert max(map(len, lines)) <= width
    # the numbers stand behind the first part of the name
    assert name in "".join(file.getvalue().split()).replace("1k12", "")


@pytest.mark.rules("A2.90")
@pytest.mark.slow
def test_the_command_needs_no_key(headless_environ: dict[str, str]) -> None:
    run = subprocess.run(
        [sys.executable, "-m", "towline", "models", "anthropic", "--json"],
        env=headless_environ,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    found = json.loads(run.stdout)
    assert (found["provider"], found["live"]) == ("anthropic", False)
    assert "ANTHROPIC_API_KEY" in found["problem"]
