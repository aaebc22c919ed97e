"""What people ask first, word for word: the page's starters, the README, the guide."""

import pytest

from towline.assistant import tools_for
from towline.local.testing import require_model
from towline.local_provider import LocalProvider
from towline_agent import LOCAL_MODEL_FACTS, Request, StepAnswer, Toolset, builtin_tools, tool_specs
from towline_protocol import Message, Text, ToolCall

pytestmark = [pytest.mark.model, pytest.mark.slow]

FIRST_CALL = {
    "What time is it?": "now",
    "What time is it here?": "now",
    "Which day is today?": "now",
    "What is in this folder?": "list_dir",
    "List the files in this folder.": "list_dir",
    "Read the file notes.txt and tell me what it says.": "read_file",
    "Run the program `uptime` and tell me what it says.": "run_program",
    "Hello!": None,
}


@pytest.fixture(scope="module")
def model_is_there() -> bool:
    return require_model().exists()


async def test_the_local_model_takes_the_right_tool_for_everyday_prompts(
    model_is_there: bool,
) -> None:
    assert model_is_there
    provider = LocalProvider()
    offered = tools_for(builtin_tools(), LOCAL_MODEL_FACTS)
    taken: dict[str, str | None] = {}
    try:
        for prompt in FIRST_CALL:
            request = Request(
                model=provider.model.id,
                messages=(Message("user", (Text(text=prompt),)),),
                tools=tool_specs(Toolset(offered), LOCAL_MODEL_FACTS),
                max_tokens=48,
            )
            answer = await provider.step(request, lambda piece: None)
            assert isinstance(answer, StepAnswer), answer
            calls = [block.name for block in answer.content if isinstance(block, ToolCall)]
            taken[prompt] = calls[0] if calls else None
    finally:
        await provider.aclose()
    assert taken == FIRST_CALL
