"""CPU for each streamed chunk: the agent loop against a bare aiohttp + msgspec loop."""

import asyncio
import statistics
import subprocess
import sys
import time
from pathlib import Path

import aiohttp
import msgspec

from towline_agent import Agent, OpenAIChat

CHUNKS = 20_000
ROUNDS = 11
BODY = {
    "model": "m",
    "stream": True,
    "stream_options": {"include_usage": True},
    "messages": [{"role": "user", "content": "go"}],
}


class Delta(msgspec.Struct):
    content: str | None = None


class Choice(msgspec.Struct):
    delta: Delta


class Chunk(msgspec.Struct):
    choices: list[Choice] = []


async def bare(session: aiohttp.ClientSession, url: str) -> int:
    """The least that reads the same stream: split lines, decode, count characters."""
    decoder = msgspec.json.Decoder(Chunk)
    parts: list[str] = []
    rest = b""
    async with session.post(f"{url}/chat/completions", json=BODY) as answer:
        async for data in answer.content.iter_any():
            lines = (rest + data).split(b"\n")
            rest = lines.pop()
            for line in lines:
                if line.startswith(b"data: {"):
                    chunk = decoder.decode(line[6:])
                    if chunk.choices and chunk.choices[0].delta.content:
                        parts.append(chunk.choices[0].delta.content)
    return len("".join(parts))


async def measure(url: str) -> None:
    agent = Agent(OpenAIChat("m", base_url=url))
    ours: list[float] = []
    floor: list[float] = []
    async with aiohttp.ClientSession() as session:
        for _ in range(ROUNDS):
            began = time.process_time()
            length = await bare(session, url)
            floor.append(time.process_time() - began)
            began = time.process_time()
            result = await agent.run("go")
            ours.append(time.process_time() - began)
            assert len(result.final_message) == length == CHUNKS * 5
    await agent.aclose()
    ratio = statistics.median(a / b for a, b in zip(ours, floor, strict=True))
    us = statistics.median(ours) / CHUNKS * 1e6
    bare_us = statistics.median(floor) / CHUNKS * 1e6
    print(f"bare aiohttp + msgspec  {bare_us:6.2f} µs CPU a chunk")
    print(f"agent loop, all of it   {us:6.2f} µs CPU a chunk")
    print(f"ratio                   {ratio:6.2f}")


def main() -> None:
    server = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("chunk_server.py")), "--chunks", str(CHUNKS)],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    try:
        port = int(server.stdout.readline())
        asyncio.run(measure(f"http://127.0.0.1:{port}/v1"))
    finally:
        server.terminate()
        server.wait()


if __name__ == "__main__":
    main()
