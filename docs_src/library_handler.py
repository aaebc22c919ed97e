import json

from towline_agent import Agent, make_tool

SCHEMA = {"type": "object", "properties": {"on": {"type": "boolean"}}, "required": ["on"]}


class House:
    """Runs all of its tools."""

    async def handle(self, name: str, arguments_json: str) -> str:
        lit = json.loads(arguments_json)["on"]
        return f"{name} is {'on' if lit else 'off'}"


house = House()
tools = [
    make_tool("lamp", "Switch the lamp in the hall.", SCHEMA, house),
    make_tool("radio", "Switch the radio in the kitchen.", SCHEMA, house),
]
print(Agent("openai", tools=tools).run_sync("Some light, please.").final_message)
