# pyright: basic, reportMissingImports=false
# The package is in the peers' environment alone.
"""A loop written by hand over the `openai` SDK, streamed."""

import asyncio
import json
from typing import Any, cast

from openai import AsyncOpenAI
from work import BY_NAME, INSTRUCTIONS, PROMPT, SCHEMAS, chat_history


class OpenAI:
    def __init__(self, url: str, model: str) -> None:
        self._client = AsyncOpenAI(base_url=url, api_key="sk-unused")
        self._model = model

    def history(self) -> list[dict[str, Any]]:
        return chat_history()

    async def run(self, history: list[dict[str, Any]]) -> str:
        messages: list[Any] = [{"role": "system", "content": INSTRUCTIONS}, *history]
        messages.append({"role": "user", "content": PROMPT})
        while True:
            text, calls = await self._ask(messages)
            if not calls:
                return text
            messages.append({"role": "assistant", "content": text or None, "tool_calls": calls})
            messages += await asyncio.gather(*map(self._call, calls))

    async def _ask(self, messages: list[Any]) -> tuple[str, list[dict[str, Any]]]:
        texts: list[str] = []
        calls: list[dict[str, Any]] = []
        stream: Any = await self._client.chat.completions.create(
            model=self._model,
            messages=messages,
            tools=cast("Any", SCHEMAS),
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in stream:
            for choice in chunk.choices:
                if choice.delta.content:
                    texts.append(choice.delta.content)
                for part in choice.delta.tool_calls or ():
                    if part.index == len(calls):
                        function = {"name": part.function.name, "arguments": ""}
                        calls.append({"id": part.id, "type": "function", "function": function})
                    calls[part.index]["function"]["arguments"] += part.function.arguments or ""
        return "".join(texts), calls

    async def _call(self, call: dict[str, Any]) -> dict[str, Any]:
        function = call["function"]
        result = await BY_NAME[function["name"]](**json.loads(function["arguments"]))
        return {"role": "tool", "tool_call_id": call["id"], "content": result}

    async def aclose(self) -> None:
        await self._client.close()


make = OpenAI
