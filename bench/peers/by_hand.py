"""The bare loop: aiohttp and msgspec, and nothing that could be left out."""

import asyncio
from typing import Any

import aiohttp
import msgspec
from work import BY_NAME, INSTRUCTIONS, PROMPT, SCHEMAS, chat_history


class Function(msgspec.Struct):
    name: str | None = None
    arguments: str | None = None


class Part(msgspec.Struct):
    index: int
    function: Function
    id: str | None = None


class Delta(msgspec.Struct):
    content: str | None = None
    tool_calls: list[Part] = []


class Choice(msgspec.Struct):
    delta: Delta


class Chunk(msgspec.Struct):
    choices: list[Choice] = []


class Hand:
    def __init__(self, url: str, model: str) -> None:
        self._session = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0))
        self._url = f"{url}/chat/completions"
        self._rest = {"model": model, "stream": True, "tools": SCHEMAS}
        self._decoder = msgspec.json.Decoder(Chunk)

    def history(self) -> list[dict[str, Any]]:
        return chat_history()

    async def run(self, history: list[dict[str, Any]]) -> str:
        messages: list[dict[str, Any]] = [{"role": "system", "content": INSTRUCTIONS}, *history]
        messages.append({"role": "user", "content": PROMPT})
        while True:
            text, calls = await self._ask(messages)
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text or None, "tool_calls": calls})
            messages += await asyncio.gather(*map(self._call, calls))

    async def _ask(self, messages: list[dict[str, Any]]) -> tuple[str, list[dict[str, Any]]]:
        options = {"include_usage": True}
        body = msgspec.json.encode({**self._rest, "stream_options": options, "messages": messages})
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        rest = b""
        head = {"content-type": "application/json"}
        async with self._session.post(self._url, data=body, headers=head) as answer:
            async for data in answer.content.iter_any():
                lines = (rest + data).split(b"\n")
                rest = lines.pop()
                for line in lines:
                    if line.startswith(b"data: {"):
                        for choice in self._decoder.decode(line[6:]).choices:
                            self._take(choice.delta, texts, calls)
        return "".join(texts), calls

    def _take(self, delta: Delta, texts: list[str], calls: list[dict[str, Any]]) -> None:
        if delta.content:
            texts.append(delta.content)
        for part in delta.tool_calls:
            if part.index == len(calls):
                function = {"name": part.function.name, "arguments": ""}
                calls.append({"id": part.id, "type": "function", "function": function})
            calls[part.index]["function"]["arguments"] += part.function.arguments or ""

    async def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        function = call["function"]
        result = await BY_NAME[function["name"]](**msgspec.json.decode(function["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    async def aclose(self) -> None:
        await self._session.close()


make = Hand
