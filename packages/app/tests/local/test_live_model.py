"""The real model, held to what the product needs from it: tool calls, speed, and its own end."""

import asyncio
import json
import os
import select
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from towline.local.server import LocalModel, check_engine, serve_model
from towline.local.testing import require_model

pytestmark = [pytest.mark.model, pytest.mark.slow]

TRIAL: dict[str, Any] = json.loads(
    Path(__file__).with_name("recordings").joinpath("tool-prompts.json").read_text(encoding="utf-8")
)
SYSTEM = "You are towline, a helpful assistant on this machine. Be brief."
BOUND_S = 400.0

PARENT = """
import asyncio, sys
from pathlib import Path
from towline.local.server import serve_model

async def main():
    async with serve_model(Path(sys.argv[1])) as model:
        print(model.pid, flush=True)
        await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.fixture(scope="module")
def path() -> Path:
    return require_model()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(path: Path) -> AsyncGenerator[LocalModel, None]:
    async with serve_model(path) as running:
        yield running


async def chat(model: LocalModel, prompt: str, **more: Any) -> dict[str, Any]:
    request = {
        "model": model.facts.alias,
        "messages": [{"role": "user", "content": prompt}],
        "max_tokens": 128,
        **more,
    }
    headers = {"Authorization": f"Bearer {model.key}"}
    async with (
        aiohttp.ClientSession(headers=headers) as http,
        http.post(f"{model.base_url}/chat/completions", json=request) as got,
    ):
        assert got.status == 200
        return await got.json()


def first_call(answer: dict[str, Any]) -> tuple[str, Any] | None:
    """Name and arguments of the first tool call of an answer."""
    calls: list[dict[str, Any]] = answer["choices"][0]["message"].get("tool_calls", [])
    if not calls:
        return None
    called: dict[str, str] = calls[0]["function"]
    return called["name"], json.loads(called["arguments"])


@pytest.mark.asyncio(loop_scope="module")
async def test_one_completion_calls_the_right_tool(model: LocalModel) -> None:
    async with asyncio.timeout(BOUND_S):
        answer = await chat(model, "What is the weather in Paris?", tools=TRIAL["tools"])
    assert first_call(answer) == ("get_weather", {"city": "Paris"})
    assert answer["choices"][0]["finish_reason"] == "tool_calls"


@pytest.mark.asyncio(loop_scope="module")
async def test_at_least_nineteen_of_the_twenty_tool_prompts_are_right(model: LocalModel) -> None:
    wrong: list[str] = []
    async with asyncio.timeout(BOUND_S):
        for row in TRIAL["prompts"]:
            answer = await chat(model, row["prompt"], tools=TRIAL["tools"], temperature=0)
            if first_call(answer) != (row["tool"], row["arguments"]):
                wrong.append(f"{row['prompt']} -> {first_call(answer)}")
    assert len(TRIAL["prompts"]) == 20
    assert len(wrong) <= 1, wrong


@pytest.mark.asyncio(loop_scope="module")
async def test_warming_leaves_only_the_prompt_itself_to_be_read(model: LocalModel) -> None:
    async with asyncio.timeout(BOUND_S):
        speed = await model.warm(SYSTEM, TRIAL["tools"])
        messages = [
            {"role": "system", "content": SYSTEM},
            {"role": "user", "content": "What time is it?"},
        ]
        answer = await chat(model, "", messages=messages, tools=TRIAL["tools"])
    assert speed.read_per_s > 0
    assert speed.write_per_s > 0
    assert answer["timings"]["cache_n"] > 300
    assert answer["timings"]["prompt_n"] < 40
    assert first_call(answer) == ("now", {})


@pytest.mark.asyncio(loop_scope="module")
async def test_without_a_temperature_in_the_request_the_model_does_not_sample(
    model: LocalModel,
) -> None:
    async with asyncio.timeout(BOUND_S):
        said = [
            (await chat(model, "Invent a name for a ship.", max_tokens=24, seed=seed))["choices"]
            for seed in (1, 2)
        ]
    assert said[0][0]["message"]["content"] == said[1][0]["message"]["content"]


async def test_the_engine_is_installed() -> None:
    async with asyncio.timeout(BOUND_S):
        await check_engine()


@pytest.mark.skipif(not hasattr(os, "pidfd_open"), reason="NO PIDFD: the orphan test needs Linux")
def test_the_real_server_ends_when_its_parent_is_killed(path: Path) -> None:
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path)], stdout=subprocess.PIPE, text=True
    )
    with parent:
        assert parent.stdout is not None
        child = os.pidfd_open(int(parent.stdout.readline()))
        try:
            parent.kill()
            ended, _, _ = select.select([child], [], [], 20.0)
        finally:
            os.close(child)
    assert ended, "the server outlived its parent"
