"""The embedded model does a whole task: it reads a file with a tool and answers from it."""

from pathlib import Path

import pytest
from tasks.run import choose_tasks, make_agent
from tasks.task import judge

from towline.local.testing import require_model
from towline.local_provider import LocalProvider
from towline_protocol import ToolCall

pytestmark = [pytest.mark.model, pytest.mark.slow]

BOUND_S = 400.0


@pytest.fixture(scope="module")
def model_is_there() -> bool:
    return require_model().exists()


async def test_the_local_model_reads_a_file_and_answers_from_it(
    model_is_there: bool, tmp_path: Path
) -> None:
    assert model_is_there
    (task,) = choose_tasks(["answer_from_file"])
    folder = task.copy(tmp_path / "project")
    provider = LocalProvider()
    try:
        agent = make_agent(task, provider, folder, wall_s=BOUND_S)
        result = await agent.run(task.prompt)
    finally:
        await provider.aclose()
    calls = [b for m in result.messages for b in m.content if isinstance(b, ToolCall)]
    assert [call.name for call in calls][:1] == ["read_file"]
    assert judge(task, folder, result.final_message).why == "", result.final_message
