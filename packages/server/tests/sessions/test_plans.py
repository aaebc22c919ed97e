"""What a session's turns run by: its models, its words to say."""

from pathlib import Path

import pytest

from towline_agent import Model, ModelNotFound, StepFailed
from towline_agent.testing import ScriptedProvider
from towline_protocol import Fallback, SendPrompt, Text, TurnCompleted
from towline_server import Connection
from towline_server.testing import AppClient, open_test_app, ran


@pytest.mark.rules("A3.35", "A2.29", "A2.60")
async def test_a_session_falls_back_to_the_models_of_its_agent(tmp_path: Path) -> None:
    gone = StepFailed(error=ModelNotFound("Gone.", reason="model_not_found"))
    first = ScriptedProvider(gone, "Still here.", model=Model(provider="p", id="one"))
    second = ScriptedProvider("I am here.", model=Model(provider="q", id="two"))
    providers = {"p/one": first, "q/two": second}

    async def connect(model: str) -> Connection:
        return Connection(providers[model])

    fallbacks = ("q/two", "p/one")  # its own model is not asked twice
    async with open_test_app(first, root=tmp_path, connect=connect, fallbacks=fallbacks) as built:
        client = AppClient(built)
        session = await client.create()
        await client.prompt(session, "Hi")
        await client.until(session, ran(1))
        (switch,) = [e.event for e in await client.log(session) if isinstance(e.event, Fallback)]
        assert (switch.from_, switch.to) == ("p/one", "q/two")
        await client.prompt(session, "Again")
        await client.until(session, ran(2))
    assert len(first.requests) == 2  # the next turn begins with its own model again
    assert {request.cache_key for request in first.requests} == {session}
    assert first.requests[0].server_tools == ("web_search",)
    assert second.requests[0].messages[-1].content == (Text(text="Hi"),)


@pytest.mark.rules("A4.30")
async def test_a_prompt_that_asks_for_words_to_say_gets_them_at_the_end(tmp_path: Path) -> None:
    provider = ScriptedProvider("<speak>Yes.</speak>Yes, it is.", "No.")
    async with open_test_app(provider, root=tmp_path) as built:
        client = AppClient(built)
        session = await client.create()
        for speak in (True, False):
            body = SendPrompt(content=(Text(text="Is it?"),), speak=speak)
            path = f"/api/sessions/{session}/prompts"
            await client.ask("POST", path, body, headers={"idempotency-key": f"say-it-{speak}"})
            await client.until(session, ran(1 if speak else 2))
        log = await client.log(session)
        ends = [e.event.speak for e in log if isinstance(e.event, TurnCompleted)]
    assert ends == ["Yes.", None]
    assert "read aloud" in provider.requests[0].trailing
    assert "read aloud" not in provider.requests[1].trailing
