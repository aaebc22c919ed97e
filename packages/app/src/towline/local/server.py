"""Run the local model: a child process that serves it on loopback for as long as we live."""

import asyncio
import collections
import contextlib
import json
import os
import re
import secrets
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from towline.local import child
from towline.local.errors import (
    OTHER_WAYS,
    EngineMissing,
    LibraryMissing,
    LocalModelError,
    ModelServerFailed,
    ModelUnreadable,
)
from towline.local.facts import QWEN_CODER, LocalModelFacts

__all__ = ["TEMPLATE", "LocalModel", "Speed", "Work", "check_engine", "serve_model"]

TEMPLATE = Path(__file__).with_name("qwen-coder-call.jinja")
"""The chat template of the embedded model. With the built-in one no tool call comes out."""

START_TIMEOUT_S = 300.0
"""Loading takes 2 s from memory; this allows for a disk that reads 4 MB/s."""

CHECK_TIMEOUT_S = 60.0
"""Loading the engine alone takes under a second; this allows for a cold, slow disk."""

STOP_TIMEOUT_S = 3.0
"""The child ends in 0.1 s; after this it is killed."""

LOOK_TIMEOUT_S = 2.0
"""A look at what the model does is for a screen: what does not come at once is left out."""

CACHE_MIB = 512
"""Memory for prompts read before, about two whole contexts. The engine's default is 8 GiB."""

MAX_THREADS = 4
"""More threads than memory channels make it no faster."""

MAX_LOG_LINES = 50
"""How much of the child's log is kept, to find why it did not start."""

WARM_TOKENS = 16
"""Tokens written while warming: enough to measure the speed, under a second on two cores."""

_LIBRARY = re.compile(r"lib[\w+-]+\.so[.\d]*")


@dataclass(frozen=True, slots=True)
class Speed:
    """What the warming request measured on this machine."""

    read_tokens: int
    """Prompt tokens that were read: those of the system prompt and the tools."""
    read_per_s: float
    """Prompt tokens a second."""
    write_per_s: float
    """Answer tokens a second."""
    took_s: float
    """The whole request."""


@dataclass(frozen=True, slots=True)
class Work:
    """What the model does at one moment."""

    busy: bool
    """Whether it works on a request."""
    read_tokens: int
    """Tokens of the prompt that it has read or had read before; grows by whole batches."""
    prompt_tokens: int
    """Tokens of the prompt."""
    written_tokens: int
    """Tokens of the answer so far."""


class LocalModel:
    """A running model server. Get one from `serve_model`, point an `openai_chat` provider at it."""

    def __init__(
        self, process: asyncio.subprocess.Process, origin: str, key: str, facts: LocalModelFacts
    ) -> None:
        self._process = process
        self.base_url = f"{origin}/v1"
        """Where the OpenAI-shaped routes are, such as `{base_url}/chat/completions`."""
        self.key = key
        """The access key, random for each start. Secret."""
        self.facts = facts
        """What the provider must respect; `facts.alias` is the model's name on the wire."""

    def __repr__(self) -> str:
        return f"LocalModel({self.facts.alias!r} at {self.base_url!r}, pid {self.pid})"

    @property
    def pid(self) -> int:
        """The child's process id."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """Whether the child runs."""
        return self._process.returncode is None

    async def wait_ended(self) -> ModelServerFailed:
        """Wait until the child ends, by itself or by the end of `serve_model`; returns why.

        It is data, not raised: a supervisor decides whether to start the model again.
        """
        status = await self._process.wait()
        return ModelServerFailed(
            f"The local model's server ended with status {status}. The next prompt needs it "
            f"started again; if it ends again, it may lack memory (it needs 1.5 GB): {OTHER_WAYS}."
        )

    async def warm(self, system: str, tools: Sequence[Mapping[str, Any]] = ()) -> Speed:
        """Have the model read `system` and `tools`, so that a first prompt need not wait for that.

        Args:
            system: The system prompt, exactly as the provider will send it; empty for none.
            tools: The tools in OpenAI's shape, exactly as the provider will send them.

        Raises:
            ModelServerFailed: The server did not answer, or refused.
        """
        request: dict[str, Any] = {
            "model": self.facts.alias,
            "messages": [
                *([{"role": "system", "content": system}] if system else []),
                {"role": "user", "content": "Say hello and tell me what you can do."},
            ],
            "max_tokens": WARM_TOKENS,
            "temperature": 0,
        }
        if tools:
            request["tools"] = list(tools)
        clock = asyncio.get_running_loop().time
        began = clock()
        timings = (await self._ask(request))["timings"]
        return Speed(
            read_tokens=timings["prompt_n"],
            read_per_s=timings["prompt_per_second"],
            write_per_s=timings["predicted_per_second"],
            took_s=clock() - began,
        )

    async def look(self) -> Work | None:
        """What the model does at this moment; `None` when it does not say in time."""
        import aiohttp  # as in `_ask`

        timeout = aiohttp.ClientTimeout(total=LOOK_TIMEOUT_S)
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.base_url.removesuffix('/v1')}/slots"
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
                http.get(url) as response,
            ):
                slot = cast("dict[str, Any]", (await response.json())[0])
            written = cast("list[dict[str, Any]]", slot.get("next_token") or [{}])
            return Work(
                busy=bool(slot["is_processing"]),
                read_tokens=int(slot.get("n_prompt_tokens_processed", 0))
                + int(slot.get("n_prompt_tokens_cache", 0)),
                prompt_tokens=int(slot.get("n_prompt_tokens", 0)),
                written_tokens=int(written[0].get("n_decoded", 0)),
            )
        except (aiohttp.ClientError, TimeoutError, ValueError, LookupError, TypeError):
            return None

    async def _ask(self, request: dict[str, Any]) -> dict[str, Any]:
        import aiohttp  # not with the module: it takes longer to import than all else at a start

        timeout = aiohttp.ClientTimeout(total=self.facts.idle_s)
        headers = {"Authorization": f"Bearer {self.key}"}
        url = f"{self.base_url}/chat/completions"
        try:
            async with (
                aiohttp.ClientSession(timeout=timeout, headers=headers) as http,
                http.post(url, json=request) as response,
            ):
                body = await response.json()
        except (aiohttp.ClientError, TimeoutError, ValueError) as error:
            raise ModelServerFailed(
                f"The local model's server did not answer ({type(error).__name__}). Start it "
                f"again, or {OTHER_WAYS}."
            ) from error
        if response.status != 200:
            reason = body.get("error", {}).get("message", response.reason)
            raise ModelServerFailed(
                f"The local model's server answered {response.status}: {reason}. Give it a shorter "
                f"system prompt or fewer tools, or {OTHER_WAYS}."
            )
        return body


async def check_engine() -> None:
    """Make sure that the engine can be loaded. Do this before a large download.

    Raises:
        EngineMissing: The extra is not installed.
        LibraryMissing: A system library is not installed.
        ModelServerFailed: The engine's process did not answer.
    """
    async with _child({child.CHECK_ONLY: True}, "", CHECK_TIMEOUT_S):
        pass


@contextlib.asynccontextmanager
async def serve_model(
    path: Path,
    facts: LocalModelFacts = QWEN_CODER,
    *,
    template: Path | None = TEMPLATE,
    threads: int | None = None,
) -> AsyncGenerator[LocalModel, None]:
    """Run the model at `path` for the length of an `async with` block.

    The server listens on a free loopback port with a random key. It ends with the block, and also
    when this process is killed.

    Args:
        path: A GGUF file, from `ensure_model` or `named_model`.
        facts: Its facts; the alias and the context are taken from here.
        template: The chat template; `None` takes the one in the file, for any other model.
        threads: Processor threads; all up to four if omitted.

    Raises:
        EngineMissing: The extra is not installed.
        LibraryMissing: A system library is not installed.
        ModelUnreadable: The engine cannot load the file.
        ModelServerFailed: The server did not start for another reason.
    """
    key = secrets.token_urlsafe(24)
    order = {
        "model": str(path),
        "alias": facts.alias,
        "template": str(template) if template else "",
        "key": key,
        "context_tokens": facts.context_tokens,
        "threads": threads or _usual_threads(),
        "temperature": facts.temperature,
        "cache_mib": CACHE_MIB,
    }
    async with _child(order, str(path), START_TIMEOUT_S) as (process, origin):
        yield LocalModel(process, origin, key, facts)


@contextlib.asynccontextmanager
async def _child(
    order: Mapping[str, object], path: str, timeout_s: float
) -> AsyncGenerator[tuple[asyncio.subprocess.Process, str], None]:
    """Start the child with `order`; yield it and the address that it answered with."""
    process = await asyncio.create_subprocess_exec(
        # By its file and not by its module: so it starts without loading this package.
        *(sys.executable, "-P", str(child.__file__)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        # libgomp reads this once, when it is loaded. Its default, spinning, makes two busy cores
        # write ten times slower.
        env={**os.environ, "OMP_WAIT_POLICY": "passive"},
        # A Ctrl+C in the terminal is for us: we end turns first and then the child.
        start_new_session=True,
    )
    log: collections.deque[bytes] = collections.deque(maxlen=MAX_LOG_LINES)
    draining = asyncio.create_task(_drain(process, log))
    try:
        yield process, await _handshake(process, order, path, timeout_s, log)
    finally:
        try:
            await _stop(process)
        finally:
            await draining


async def _handshake(
    process: asyncio.subprocess.Process,
    order: Mapping[str, object],
    path: str,
    timeout_s: float,
    log: collections.deque[bytes],
) -> str:
    assert process.stdin is not None
    assert process.stdout is not None
    with contextlib.suppress(ConnectionError):
        # A child that is already gone is told by the empty answer.
        process.stdin.write(json.dumps(order).encode() + b"\n")
        await process.stdin.drain()
    try:
        async with asyncio.timeout(timeout_s):
            line = await process.stdout.readline()
    except TimeoutError as error:
        raise ModelServerFailed(
            f"The local model was not ready after {timeout_s:.0f} s. Run this again when the "
            f"machine is less busy, or {OTHER_WAYS}."
        ) from error
    if not line:
        async with asyncio.timeout(STOP_TIMEOUT_S):
            status = await process.wait()
        raise ModelServerFailed(
            f"The local model's server ended with status {status} while loading. It may lack "
            f"memory (it needs 1.5 GB): {OTHER_WAYS}."
        )
    answer = cast("dict[str, str]", json.loads(line))
    if "error" in answer:
        raise _failure(answer["error"], answer["detail"], path, log)
    return answer["url"]


def _failure(kind: str, detail: str, path: str, log: collections.deque[bytes]) -> LocalModelError:
    """The child's answer as an exception with the next step."""
    if kind == child.ENGINE_MISSING:
        return EngineMissing(
            "The engine of the local model is not installed. Install it with `pip install "
            "'towline[local]'`, or set a provider key such as `export ANTHROPIC_API_KEY=…`."
        )
    if kind == child.LIBRARY_MISSING:
        found = _LIBRARY.search(detail)
        library = found[0] if found else "a library"
        package = "libgomp1" if library.startswith("libgomp") else "libgomp1 libstdc++6"
        return LibraryMissing(
            f"The engine of the local model cannot be loaded: {library!r} is missing or broken "
            f"({detail}). Install it with `apt-get install {package}`, or set a provider key such "
            "as `export ANTHROPIC_API_KEY=…`."
        )
    errors = [text for line in log if (text := _log_error(line))]
    why = next((text for text in errors if "load" in text), detail)
    return ModelUnreadable(
        f"The model file {path!r} cannot be loaded ({why}). Name another GGUF file with `--model "
        "FILE`, or delete this one if it is the embedded model, so that it is fetched again."
    )


def _log_error(line: bytes) -> str:
    """The text of a log line `0.00.001 E text`, or nothing if it is no error."""
    _, mark, text = line.decode("utf-8", "replace").partition(" E ")
    return text.strip() if mark else ""


async def _drain(process: asyncio.subprocess.Process, log: collections.deque[bytes]) -> None:
    """Read the child's log to its end, so that the child never waits for room in the pipe."""
    assert process.stderr is not None
    rest = b""
    while block := await process.stderr.read(1 << 16):
        *lines, rest = (rest + block).split(b"\n")
        log.extend(lines)


async def _stop(process: asyncio.subprocess.Process) -> None:
    """End the child: stdin's end asks, SIGTERM insists, SIGKILL is the bound."""
    try:
        if process.returncode is None:
            assert process.stdin is not None
            process.stdin.close()
            with contextlib.suppress(ProcessLookupError):
                process.terminate()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(STOP_TIMEOUT_S):
                    await process.wait()
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


def _usual_threads() -> int:
    if sys.platform == "linux":
        return min(MAX_THREADS, len(os.sched_getaffinity(0)))
    return min(MAX_THREADS, os.cpu_count() or 2)
