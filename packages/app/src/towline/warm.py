"""Warming the embedded model: it reads what every request begins with."""

from towline.assistant import make_assistant, tools_for
from towline.local import LocalModel, Speed
from towline_agent import LOCAL_MODEL_FACTS, Toolset, tool_specs

__all__ = ["warm_local_model"]


async def warm_local_model(model: LocalModel, tools: Toolset | None = None) -> Speed:
    """Have the model read the tools it is offered, byte for byte as requests hold them (A2.92).

    It gets no system prompt of ours (`Model.bare_prompt`), so there is none to read.

    Args:
        model: The model that runs.
        tools: The assistant's tools; `None` for the built-in ones.

    Raises:
        LocalModelError: It did not answer.
    """
    offered = Toolset(tools_for((tools or make_assistant().tools).values(), LOCAL_MODEL_FACTS))
    shown = [
        {
            "type": "function",
            "function": {
                "name": spec.name,
                "description": spec.description,
                "parameters": spec.parameters,
            },
        }
        for spec in tool_specs(offered, LOCAL_MODEL_FACTS)
    ]
    return await model.warm("", shown)
