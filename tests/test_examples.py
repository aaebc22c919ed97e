"""The programs in `examples/`, each run as its reader would run it."""

import asyncio
import os
import re
import signal
import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, web

from towline_agent.testing import event_stream

pytestmark = pytest.mark.slow  # each starts a program

EXAMPLES = Path(__file__).parents[1] / "examples"
CLIENTS = (  # run by test_client_examples.py
    "bad_network.py",
    "chat_client.py",
    "client_tool.py",
    "pair_client.py",
    "three_sessions.py",
)

Answer = list[dict[str, Any]] | tuple[int, str]
"""What the model says, as chunks; or a status and the reason of a refusal."""


@dataclass(frozen=True)
class Case:
    """One run of an example."""

    answers: tuple[Answer, ...] = ()
    """What comes back, request by request."""
    arguments: tuple[str, ...] = ()
    typed: str = ""
    printed: str = ""
    keys: str = "sk-example"


def chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def say(*words: str) -> Answer:
    return [*(chunk({"content": word}) for word in words), chunk({}, "stop")]


def call(name: str, arguments: str) -> Answer:
    wanted = {"index": 0, "id": "x", "function": {"name": name, "arguments": arguments}}
    return [chunk({"tool_calls": [wanted]}), chunk({}, "tool_calls")]


CASES = {
    "weather.py": Case(
        answers=(call("weather", '{"city": "Lisbon"}'), say("Sunny, 24 °C.")),
        printed="Sunny, 24 °C.\n(2 steps, 1 call)\n",
    ),
    "stream.py": Case(
        arguments=("Roll.",),
        answers=(call("roll", '{"sides": 20}'), say("A ", "twenty", "!")),
        printed='[roll {"sides": 20}]\nA twenty!\n',
    ),
    "ask_first.py": Case(
        typed="y\n",
        answers=(call("write_note", '{"text": "4747"}'), say("Noted.")),
        printed="Write down: 4747\nAllow it? [y/N] Noted.\nnotes: ['4747']\n",
    ),
    "conversation.py": Case(
        answers=(say("Hello Ann."), say("Once ", "upon"), say("Ann.")),
        printed="Hello Ann.\nOnce …\nAnn.\n",
    ),
    "typed_output.py": Case(
        arguments=("Tea with Ann at four",),
        answers=(say('{"what": "Tea", "day": "today", "hour": 16, "guests": ["Ann"]}'),),
        printed="today, 16: Tea, with Ann\n",
    ),
    "fallback.py": Case(
        keys="sk-number-one,sk-number-two",
        answers=(
            (429, "rate limit"),
            (404, "there is no such model"),
            (429, "rate limit"),
            say("Hello."),
        ),
        printed="openai/gpt-6.1-luna takes over from openai/gpt-6.1-sol: model_not_found.\n"
        "Key …-one of 'openai' is set aside for 60 s (rate_limit); "
        "the request went to key …-two.\n"
        "Hello.\n",
    ),
    "sub_agent.py": Case(
        answers=(
            call("spawn_agent", '{"prompt": "Is it?", "agent": "friend"}'),
            say("It warms."),
            call("spawn_agent", '{"prompt": "Is it?", "agent": "foe"}'),
            say("It stains."),
            say("Drink it."),
        ),
        printed="friend: It warms.\nfoe: It stains.\njudge: Drink it.\n",
    ),
    "own_provider.py": Case(arguments=("a  b",), printed="a b\ncost: 0.0\n"),
    "test_your_agent.py": Case(printed="2 tests passed\n"),
}


@asynccontextmanager
async def serve(answers: tuple[Answer, ...]) -> AsyncGenerator[tuple[str, list[dict[str, Any]]]]:
    """A server that speaks Chat Completions: its address, and what it was asked."""
    waiting = list(answers)
    asked: list[dict[str, Any]] = []

    async def complete(request: web.Request) -> web.Response:
        asked.append(await request.json())
        answer = waiting.pop(0)
        if isinstance(answer, tuple):
            return web.json_response({"error": {"message": answer[1]}}, status=answer[0])
        return web.Response(body=event_stream(*answer), content_type="text/event-stream")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", complete)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/v1", asked
    finally:
        await runner.cleanup()


async def run(
    name: str, case: Case, home: Path, environ: Mapping[str, str]
) -> tuple[int | None, str, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        *case.arguments,
        env={"PATH": os.environ["PATH"], "HOME": str(home), "PYTHONUTF8": "1", **environ},
        cwd=home,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            out, errors = await process.communicate(case.typed.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode(), errors.decode()


def asking(url: str, case: Case) -> dict[str, str]:
    """Where an example's model is."""
    return {"OPENAI_API_KEYS": case.keys, "OPENAI_BASE_URL": url}


def test_each_example_has_a_run_here() -> None:
    elsewhere = {*CLIENTS, "embed.py"}
    assert {path.name for path in EXAMPLES.glob("*.py")} == CASES.keys() | elsewhere


def test_each_example_has_a_row_of_its_own() -> None:
    index = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| \[(\w+\.py)\]\(\1\) \| [^|]+ \|$", index, re.MULTILINE)
    assert sorted(listed) == sorted(path.name for path in EXAMPLES.glob("*.py"))


@pytest.mark.parametrize("name", CASES)
async def test_an_example_does_what_it_says(name: str, tmp_path: Path) -> None:
    case = CASES[name]
    async with serve(case.answers) as (url, asked):
        code, out, errors = await run(name, case, tmp_path, asking(url, case))
    assert (code, errors) == (0, "")
    assert out == case.printed
    assert len(asked) == len(case.answers)


@pytest.mark.parametrize("name", [name for name, case in CASES.items() if case.answers])
@pytest.mark.parametrize(
    ("environ", "says"),
    [
        ({}, "There is no key for 'openai'"),
        ({"TOWLINE_MODEL": "local/any"}, "The model 'local' belongs to the towline app"),
    ],
    ids=["without-a-key", "local"],
)
async def test_an_example_that_cannot_ask_its_model_says_so_in_one_line(
    name: str, environ: dict[str, str], says: str, tmp_path: Path
) -> None:
    code, _, errors = await run(name, CASES[name], tmp_path, environ)
    assert code == 1
    (line,) = errors.splitlines()
    assert line.startswith(says)


def test_the_page_on_embedding_shows_the_example_as_it_is() -> None:
    page = (EXAMPLES.parent / "docs" / "embedding.md").read_text(encoding="utf-8")
    program = (EXAMPLES / "embed.py").read_text(encoding="utf-8")
    assert re.findall(r"^```python\n(.*?)^```$", page, re.DOTALL | re.MULTILINE) == [program]


@asynccontextmanager
async def embedding(model: str, home: Path) -> AsyncGenerator[str]:
    """The example's app, served: where; it is stopped as by Ctrl+C, and must end in order."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / "embed.py"),
        env={"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-example", "OPENAI_BASE_URL": model}
        | {"HOME": str(home), "PORT": "0"},
        cwd=home,
        stderr=asyncio.subprocess.PIPE,
    )
    assert process.stderr is not None
    try:
        async with asyncio.timeout(60):
            while (
                found := re.search(rb"running on (\S+)", line := await process.stderr.readline())
            ) is None:
                assert line, "it ended before it served"
            yield found[1].decode()
            process.send_signal(signal.SIGINT)
            errors = (await process.communicate())[1]
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert (process.returncode, b"Traceback" in errors) == (0, False)


async def test_the_app_that_holds_the_service_has_sessions_of_its_own_users(tmp_path: Path) -> None:
    answers = CASES["weather.py"].answers
    ann = {"authorization": "Bearer badge-of-ann"}
    async with (
        serve(answers) as (model, asked),
        embedding(model, tmp_path) as url,
        ClientSession(f"{url}/agent/") as client,
    ):
        prompt = {"prompt": [{"type": "text", "text": "Weather?"}]}
        async with client.post("api/sessions", json=prompt) as answer:
            assert answer.status == 401
        async with client.post("api/sessions", json=prompt, headers=ann) as answer:
            assert answer.status == 201
            session = (await answer.json())["id"]
        async with client.get(f"api/sessions/{session}/events", headers=ann) as stream:
            async for line in stream.content:
                if b'"turn_completed"' in line:
                    break
        bob = {"authorization": "Bearer badge-of-bob"}
        async with client.get(f"api/sessions/{session}", headers=bob) as answer:
            assert answer.status == 404
    assert len(asked) == len(answers)
    assert "sunny in Lisbon" in str(asked[1]["messages"][-1])


async def test_what_a_stopped_run_had_heard_is_told_to_the_next_one(tmp_path: Path) -> None:
    case = CASES["conversation.py"]
    async with serve(case.answers) as (url, asked):
        await run("conversation.py", case, tmp_path, asking(url, case))
    roles = [message["role"] for message in asked[2]["messages"] if message["role"] != "system"]
    assert roles == ["user", "assistant", "user", "assistant", "user"]
    assert "Once" in str(asked[2]["messages"])
