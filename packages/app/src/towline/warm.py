"""Warming the embedded model: it reads what every request begins with."""

from towline.assistant import INSTRUCTIONS, NAME, make_assistant
from towline.local import LocalModel, Speed
from towline_agent import LOCAL_MODEL_FACTS, LocalWorkspace, system_prompt, tool_specs

__all__ = ["warm_local_model"]


async def warm_local_model(model: LocalModel, folder: str) -> Speed:
    """Have the model read what every first request begins with, byte for byte (A2.92).

    Raises:
        LocalModelError: It did not answer.
    """
    system = system_prompt(NAME, INSTRUCTIONS, LocalWorkspace(folder))
    tools = [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for spec in tool_specs(make_assistant().tools, LOCAL_MODEL_FACTS)
    ]
    return await model.warm(system, tools)
