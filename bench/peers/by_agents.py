# pyright: basic, reportMissingImports=false
# The packages are in the peers' environment alone.
"""The `openai-agents` SDK over Chat Completions, streamed, without its tracing."""

from typing import Any

from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from work import EXCHANGES, INSTRUCTIONS, PROMPT, TOOLS

MAX_TURNS = 24


class Agents:
    def __init__(self, url: str, model: str) -> None:
        set_tracing_disabled(True)
        self._client = AsyncOpenAI(base_url=url, api_key="sk-unused")
        self._agent = Agent(
            name="bench",
            instructions=INSTRUCTIONS,
            tools=[function_tool(function) for function in TOOLS],
            model=OpenAIChatCompletionsModel(model=model, openai_client=self._client),
        )

    def history(self) -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = []
        for exchange in EXCHANGES:
            items.append({"role": "user", "content": exchange.prompt})
            items.extend(
                {
                    "type": "function_call",
                    "call_id": call.id,
                    "name": call.name,
                    "arguments": call.arguments,
                }
                for call in exchange.calls
            )
            items.extend(
                {"type": "function_call_output", "call_id": call.id, "output": call.result}
                for call in exchange.calls
            )
            items.append({"role": "assistant", "content": exchange.answer})
        return items

    async def run(self, history: list[dict[str, Any]]) -> str:
        asked: Any = [*history, {"role": "user", "content": PROMPT}]
        result = Runner.run_streamed(self._agent, asked, max_turns=MAX_TURNS)
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    async def aclose(self) -> None:
        await self._client.close()


make = Agents
