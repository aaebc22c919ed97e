"""Towline's agent, by its public face."""

from work import EXCHANGES, INSTRUCTIONS, PROMPT, TOOLS

from towline_agent import Agent, OpenAIChat, tool
from towline_protocol import CallId, Message, Text, ToolCall, ToolResult


class Towline:
    def __init__(self, url: str, model: str) -> None:
        tools = [tool(effect="read")(function) for function in TOOLS]
        provider = OpenAIChat(model, base_url=url)
        self._agent = Agent(provider, instructions=INSTRUCTIONS, tools=tools)

    def history(self) -> tuple[Message, ...]:
        messages: list[Message] = []
        for exchange in EXCHANGES:
            calls = tuple(
                ToolCall(id=CallId(call.id), name=call.name, arguments=call.arguments)
                for call in exchange.calls
            )
            results = tuple(
                ToolResult(call=CallId(call.id), content=(Text(text=call.result),))
                for call in exchange.calls
            )
            messages.append(Message("user", (Text(text=exchange.prompt),)))
            messages.append(Message("assistant", calls))
            messages.append(Message("tool", results))
            messages.append(Message("assistant", (Text(text=exchange.answer),)))
        return tuple(messages)

    async def run(self, history: tuple[Message, ...]) -> str:
        return (await self._agent.run(PROMPT, messages=history)).final_message

    async def aclose(self) -> None:
        await self._agent.aclose()


make = Towline
