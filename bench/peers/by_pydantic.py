# pyright: basic, reportMissingImports=false
# The packages are in the peers' environment alone.
"""`pydantic-ai-slim[openai]` over Chat Completions, streamed."""

from typing import Any

from openai import AsyncOpenAI
from pydantic_ai import Agent, AgentRunResultEvent
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from work import EXCHANGES, INSTRUCTIONS, PROMPT, TOOLS


class Pydantic:
    def __init__(self, url: str, model: str) -> None:
        self._client = AsyncOpenAI(base_url=url, api_key="sk-unused")
        provider = OpenAIProvider(openai_client=self._client)
        chat = OpenAIChatModel(model, provider=provider)
        self._agent: Any = Agent(chat, instructions=INSTRUCTIONS, tools=list(TOOLS))

    def history(self) -> list[ModelMessage]:
        messages: list[ModelMessage] = []
        for exchange in EXCHANGES:
            calls = [
                ToolCallPart(tool_name=call.name, args=call.arguments, tool_call_id=call.id)
                for call in exchange.calls
            ]
            results = [
                ToolReturnPart(tool_name=call.name, content=call.result, tool_call_id=call.id)
                for call in exchange.calls
            ]
            messages.append(ModelRequest(parts=[UserPromptPart(content=exchange.prompt)]))
            messages.append(ModelResponse(parts=calls))
            messages.append(ModelRequest(parts=results))
            messages.append(ModelResponse(parts=[TextPart(content=exchange.answer)]))
        return messages

    async def run(self, history: list[ModelMessage]) -> str:
        text = ""
        async with self._agent.run_stream_events(PROMPT, message_history=history) as events:
            async for event in events:
                if isinstance(event, AgentRunResultEvent):
                    text = event.result.output
        return text

    async def aclose(self) -> None:
        await self._client.close()


make = Pydantic
