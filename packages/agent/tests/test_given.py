"""What a caller of the library gives and cannot be: each is refused with what to give instead."""

import base64
import logging
from pathlib import Path
from typing import Any, Final, cast

import msgspec
import pytest

from towline_agent.agent import Agent
from towline_agent.delegate import EXPLORE, SubAgent
from towline_agent.errors import AbortTurn
from towline_agent.permissions.rules import parse_rule
from towline_agent.providers.anthropic.provider import Anthropic
from towline_agent.providers.base import Controls, Model
from towline_agent.providers.gemini.provider import Gemini
from towline_agent.providers.keys import KeyRing
from towline_agent.providers.openai_chat.provider import OpenAIChat
from towline_agent.providers.openai_responses.provider import OpenAIResponses
from towline_agent.testing import ScriptedProvider, call
from towline_agent.tools.builtin import builtin_tools
from towline_agent.tools.function import make_tool, tool
from towline_agent.tools.spawn import make_spawn_agent
from towline_agent.workspaces.local import LocalWorkspace
from towline_protocol import (
    File,
    Image,
    Limits,
    Message,
    PermissionRequested,
    Text,
    ToolResult,
    UsageError,
    block_text,
)

_Json = dict[str, Any]

SCHEMA: Final[_Json] = {"type": "object", "properties": {}}


def look(at: int) -> int:
    """Look."""
    return at


def explore(**facts: Any) -> SubAgent:
    return msgspec.structs.replace(EXPLORE, **facts)


def results(messages: tuple[Message, ...]) -> list[str]:
    blocks = [block for message in messages for block in message.content]
    return [block_text(block.content) for block in blocks if isinstance(block, ToolResult)]


def given(value: Any) -> Any:
    """A value whose type is wrong on purpose."""
    return value


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"model": None}, "'provider/model'"),
        ({"model": 3}, "'provider/model'"),
        ({"model": ScriptedProvider}, "'provider/model'"),
        ({"fallbacks": [None]}, "'provider/model'"),
        ({"fallbacks": None}, "list of models"),
        ({"rules": ["deny look"]}, "parse_rule"),
        ({"rules": "deny look"}, "parse_rule"),
        ({"server_tools": "web_search"}, "['web_search']"),
        ({"server_tools": [3]}, "['web_search']"),
        ({"answer": "yes"}, "give a function"),
        ({"judge": 3}, "give a function"),
        ({"limits": Limits(max_steps=given("3"))}, "'max_steps'"),
        ({"limits": Limits(max_steps=given(None))}, "'max_steps'"),
        ({"limits": Limits(wall_s=float("nan"))}, "'wall_s'"),
        ({"limits": Limits(max_tokens=True)}, "'max_tokens'"),
        ({"limits": Limits(max_steps=-1)}, "not below 0"),
        ({"limits": Limits(max_steps=given(1.5))}, "whole number"),
        ({"controls": Controls(max_tokens=0)}, "1 or more"),
        ({"controls": Controls(temperature=-1.0)}, "0 or more"),
        ({"rules": parse_rule("deny look")}, "give a list"),
        ({"root": 5}, "give a folder"),
        ({"root": b"/tmp"}, "give a folder"),
        ({"policy": None}, "give a function"),
        ({"limits": Limits(wall_s=10**400)}, "give a number"),
        ({"limits": Limits(max_cost=float("inf"))}, "give a number"),
        ({"root": LocalWorkspace}, "give a folder"),
        ({"agents": [SubAgent(name=" ", description="", instructions="")]}, "no name"),
        ({"agents": [SubAgent(name=given(5), description="", instructions="")]}, "must be text"),
        ({"agents": [explore(limits=given({"max_steps": 3}))]}, "`Limits(...)`"),
        ({"agents": [explore(limits=Limits(wall_s=-1.0))]}, "not below 0"),
        ({"limits": Limits(max_cost=-0.5)}, "not below 0"),
        ({"controls": Controls(stop=given("END"))}, "tuple of texts"),
        ({"controls": Controls(temperature=given("hot"))}, "'temperature'"),
        ({"tools": [None]}, "give functions"),
        ({"tools": ["look"]}, "'look'"),
        ({"tools": [[look]]}, "give functions"),
    ],
)
def test_what_an_agent_cannot_be_made_of_is_refused_and_named(facts: _Json, words: str) -> None:
    model = facts.pop("model", "openai")
    with pytest.raises(UsageError) as caught:
        Agent(model, **facts)
    assert words in caught.value.message


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("gpt-5", "Did you mean 'openai/gpt-5'?"),
        ("claude-opus-5-5", "Did you mean 'anthropic/claude-opus-5-5'?"),
        ("opnai/gpt-5", "Did you mean 'openai'?"),
    ],
)
async def test_a_model_without_its_provider_is_told_with_it(name: str, words: str) -> None:
    with pytest.raises(UsageError) as caught:
        await Agent(name).run("Hi")
    assert words in caught.value.message


@pytest.mark.rules("A4.50")
@pytest.mark.parametrize(
    ("messages", "words"),
    [
        ("Hi", "`messages` of a result"),
        (3, "`messages` of a result"),
        ([{"role": "user", "content": "Hi"}], "Message(role"),
        ([Message("usr", (Text(text="Hi"),))], "'usr'"),
        ([Message("user", given("Hi"))], "tuple of blocks"),
        ([Message("user", (given("Hi"),))], "tuple of blocks"),
        ([Message("user", (Text(text=given(3)),))], "give a text"),
    ],
)
async def test_what_is_no_conversation_is_refused_before_anything_is_sent(
    messages: Any, words: str
) -> None:
    provider = ScriptedProvider("Hello.")
    with pytest.raises(UsageError) as caught:
        await Agent(provider).run("Go on.", messages=messages)
    assert words in caught.value.message
    with pytest.raises(UsageError):
        async with Agent(provider).stream("Go on.", messages=messages):
            pass
    assert provider.requests == []


@pytest.mark.rules("A4.46")
@pytest.mark.parametrize("text", [3, None, b"Hi"])
async def test_words_that_are_no_text_are_refused(text: Any) -> None:
    with pytest.raises(UsageError, match="give a text"):
        await Agent(ScriptedProvider("Hi.")).run([Text(text=text)])


@pytest.mark.rules("A4.46")
@pytest.mark.parametrize("kind", ["png", "", "text/plain", "image/", None, 3])
async def test_a_picture_of_no_kind_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match="'image/png'"):
        await Agent(ScriptedProvider("I see.")).run([Image(media_type=kind, data="YWJj")])
    for good in ("image/svg+xml", "Image/PNG"):
        await Agent(ScriptedProvider("I see.")).run([Image(media_type=good, data="YWJj")])


@pytest.mark.rules("A4.46")
@pytest.mark.parametrize("kind", ["pdf", "", "/", None])
async def test_a_file_of_no_kind_is_refused(kind: Any) -> None:
    with pytest.raises(UsageError, match="'application/pdf'"):
        await Agent(ScriptedProvider("I see.")).run([File(name="a", media_type=kind, data="YWJj")])
    good = File(name="a", media_type="text/plain; charset=utf-8", data="YWJj")
    await Agent(ScriptedProvider("I see.")).run([good])


@pytest.mark.rules("A4.46")
@pytest.mark.parametrize("data", ["???", "a", "", b"abc", None, 3])
async def test_a_picture_without_readable_bytes_is_refused(data: Any) -> None:
    with pytest.raises(UsageError, match="base64") as caught:
        await Agent(ScriptedProvider("I see.")).run([Image(media_type="image/png", data=data)])
    assert "Image" in caught.value.message
    good = base64.b64encode(b"abc").decode()
    await Agent(ScriptedProvider("I see.")).run([Image(media_type="image/png", data=good)])


@pytest.mark.rules("A4.46")
@pytest.mark.parametrize(("kind", "data"), [("png", "YWJj"), ("image/png", b"abc")])
async def test_a_picture_said_before_is_looked_at_too(kind: str, data: Any) -> None:
    said = Message("user", (Image(media_type=kind, data=data),))
    with pytest.raises(UsageError, match="Image"):
        await Agent(ScriptedProvider("I see.")).run("Go on.", messages=[said])
    lost = Message("user", (Image(media_type="image/png"),))
    await Agent(ScriptedProvider("It is gone.")).run("Go on.", messages=[lost])


@pytest.mark.rules("A4.46")
@pytest.mark.parametrize("root", ["/nowhere/at/all", __file__])
async def test_a_root_that_is_no_folder_is_told_to_the_caller_and_not_to_the_model(
    root: str,
) -> None:
    provider = ScriptedProvider("Hello.")
    with pytest.raises(UsageError) as caught:
        await Agent(provider, root=root).run("Hi")
    assert repr(root) in caught.value.message
    assert provider.requests == []


async def test_a_root_is_looked_for_where_the_process_is_now(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for here in (tmp_path / "one", tmp_path / "two"):
        (here / "in").mkdir(parents=True)
        monkeypatch.chdir(here)
        provider = ScriptedProvider(call("create_file", path="made", content="x"), "Made.")
        await Agent(provider, tools=builtin_tools(), root="in").run("Make it")
        assert (here / "in" / "made").read_text() == "x"


@pytest.mark.rules("A5.68")
async def test_an_answer_that_is_no_option_denies_and_the_log_says_what_is_one(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def answer(_: PermissionRequested) -> str:
        return "yes"

    agent = Agent(ScriptedProvider(call("look", at=1), "Ok."), tools=[look], mode="ask")
    denied = await agent.run("Look.")
    assert caplog.records == []  # nobody answers, on purpose
    agent = Agent(
        ScriptedProvider(call("look", at=1), "Ok."), tools=[look], mode="ask", answer=answer
    )
    with caplog.at_level(logging.WARNING, "towline.agent"):
        result = await agent.run("Look.")
    assert len(results(result.messages)) == len(results(denied.messages)) == 1
    assert "denied" in results(result.messages)[0]
    (record,) = caplog.records
    assert "'yes'" in record.getMessage()
    assert "'allow_once'" in record.getMessage()


def allow(_: PermissionRequested) -> str:
    return "allow_once"


@pytest.mark.rules("A5.68")
async def test_an_answer_that_is_not_async_is_told_to_whoever_runs_it() -> None:
    agent = Agent(
        ScriptedProvider(call("look", at=1), "Ok."),
        tools=[look],
        mode="ask",
        answer=given(allow),
    )
    with pytest.raises(UsageError, match="async def"):
        await agent.run("Look.")


class PlainHouse:
    """A handler that is not async."""

    def handle(self, name: str, arguments_json: str) -> str:
        return f"{name} {arguments_json}"


class WrappedHouse:
    """A handler whose plain method gives what must be awaited."""

    def handle(self, name: str, arguments_json: str) -> Any:
        async def run() -> str:
            return f"{name} {arguments_json}"

        return run()


def wrapped() -> Any:
    """Give what must be awaited."""

    async def run() -> str:
        return "lamp {}"

    return run()


@pytest.mark.rules("A4.44", "A4.25")
@pytest.mark.parametrize("house", [PlainHouse(), WrappedHouse()])
async def test_a_handler_that_is_not_async_runs_in_a_thread(house: Any) -> None:
    lamp = make_tool("lamp", "Light.", SCHEMA, house)
    assert lamp.threaded
    result = await Agent(ScriptedProvider(call("lamp"), "Lit."), tools=[lamp]).run("Light!")
    assert results(result.messages) == ["lamp {}"]


@pytest.mark.rules("A4.56")
async def test_a_plain_function_round_an_async_one_is_awaited() -> None:
    result = await Agent(ScriptedProvider(call("wrapped"), "Ok."), tools=[wrapped]).run("Go.")
    assert results(result.messages) == ["lamp {}"]


@pytest.mark.rules("A4.45", "A4.44")
@pytest.mark.parametrize("handler", [None, 3, object(), type])
def test_what_can_handle_no_tool_is_refused(handler: Any) -> None:
    with pytest.raises(UsageError, match="async def handle"):
        make_tool("lamp", "Light.", SCHEMA, handler)


@pytest.mark.rules("A4.45", "A4.43")
@pytest.mark.parametrize(
    "value", [float("nan"), object(), b"bytes", {1, 2}], ids=["nan", "object", "bytes", "set"]
)
def test_a_schema_that_is_no_json_is_refused(value: Any) -> None:
    with pytest.raises(UsageError, match="holds what JSON can't"):
        make_tool("lamp", "Light.", {**SCHEMA, "x-more": value}, WrappedHouse())


class Thing:
    """A class with a method."""

    def see(self, at: int) -> int:
        """See."""
        return at


@pytest.mark.rules("A4.45", "A4.56")
def test_a_method_is_a_tool_only_of_an_object() -> None:
    assert list(tool(Thing().see).parameters["properties"]) == ["at"]
    with pytest.raises(UsageError, match="the method of an object"):
        tool(Thing.see)


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize("bound", ["soon", None, 0, float("nan"), [3], True, 10**400])
def test_a_time_that_is_none_is_refused(bound: Any) -> None:
    made = tool(effect="read", timeout_s=bound)
    if bound is None:
        assert made(look).timeout_s is None
        return
    with pytest.raises(UsageError, match="above 0"):
        made(look)


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize("fact", ["title", "subject", "preview", "look"])
def test_a_fact_of_a_tool_that_is_no_function_is_refused(fact: str) -> None:
    facts: _Json = {fact: "x"}
    with pytest.raises(UsageError, match=f"{fact}='x'; give a function"):
        tool(**facts)(look)


@pytest.mark.rules("A4.45")
def test_a_description_that_is_no_text_is_refused() -> None:
    with pytest.raises(UsageError, match="description=3; give a text"):
        tool(description=given(3))(look)


@pytest.mark.rules("A5.47", "A5.42")
@pytest.mark.parametrize("mode", ["auto", "ask"])
async def test_a_rule_denies_a_subject_that_is_a_number(mode: str) -> None:
    ran: list[int] = []

    @tool(subject=lambda arguments: given(arguments["at"]), title=lambda _: given(7))
    async def write(at: int) -> None:
        """Write."""
        ran.append(at)

    made = Agent(
        ScriptedProvider(call("write", at=3), "Done."),
        tools=[write],
        rules=[parse_rule("deny write(3)")],
        mode=mode,
    )
    result = await made.run("Go.")
    assert "Denied by rule" in results(result.messages)[0]
    assert ran == []


async def test_a_preview_that_is_none_ends_its_call_and_the_log_says_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    @tool(preview=lambda _: given("x"))
    async def write() -> None:
        """Write."""

    result = await Agent(ScriptedProvider(call("write"), "Done."), tools=[write]).run("Go.")
    assert results(result.messages) == ["write failed with UsageError."]
    assert "return a `Preview`" in caplog.text


@pytest.mark.rules("A4.59")
async def test_a_tool_may_end_the_run_without_words() -> None:
    @tool
    async def stop() -> None:
        """Stop."""
        raise AbortTurn

    with pytest.raises(AbortTurn, match="A tool ended the turn"):
        await Agent(ScriptedProvider(call("stop")), tools=[stop]).run("Go.")


async def test_who_is_asked_of_a_plain_function_is_not_told_that_it_changes_files() -> None:
    reasons: list[str | None] = []

    def plain() -> None:
        """Do something."""

    @tool(effect="write")
    def writes() -> None:
        """Write."""

    async def answer(request: PermissionRequested) -> str:
        reasons.append(request.reason)
        return "deny"

    provider = ScriptedProvider(call("plain"), call("writes"), "Done.")
    await Agent(provider, tools=[plain, writes], mode="ask", answer=answer).run("Go.")
    assert reasons == ["It may change something.", "It changes files."]


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    "providers", [[ScriptedProvider()], ScriptedProvider(), None, {"k": "openai"}]
)
def test_what_is_no_ring_of_keys_is_refused(providers: Any) -> None:
    with pytest.raises(UsageError, match=r"dict of keys|give providers"):
        KeyRing(providers)


@pytest.mark.rules("A4.45")
@pytest.mark.parametrize(
    ("run", "agents"), [(None, None), ({}, None), (look, ["a"]), (look, {3: 4})]
)
def test_what_can_run_no_other_agent_is_refused(run: Any, agents: Any) -> None:
    with pytest.raises(UsageError, match=r"function must run|dict of names"):
        make_spawn_agent(run, agents)


async def test_a_bad_value_is_not_repeated_whole() -> None:
    with pytest.raises(UsageError) as caught:
        await Agent(ScriptedProvider()).run("Hi", messages=given(["x" * 10_000]))
    assert len(caught.value.message) < 500


@pytest.mark.rules("A5.47")
def test_a_rule_that_names_no_tool_is_told_of(caplog: pytest.LogCaptureFixture) -> None:
    rules = [parse_rule(text) for text in ("deny lok", "allow look", "ask *", "ask spawn_agent")]
    Agent(ScriptedProvider(), tools=[look], rules=rules, agents=[EXPLORE])
    (told,) = caplog.messages
    assert told == (
        "The rule 'deny lok' does nothing: there is no tool 'lok' (did you mean 'look'?)."
    )


@pytest.mark.rules("A4.45", "A4.42")
@pytest.mark.parametrize("make", [OpenAIChat, OpenAIResponses, Anthropic, Gemini])
@pytest.mark.parametrize(
    ("facts", "words"),
    [
        ({"model": ""}, "'model'"),
        ({"model": None}, "'model'"),
        ({"base_url": None}, "'base_url'"),
        ({"api_key": 5}, "'int'"),
        ({"api_key": b"secret"}, "'bytes'"),
        ({"extra_headers": ["x"]}, "'extra_headers'"),
        ({"facts": {"window": 3}}, "Model(...)"),
        ({"facts": Model(provider="p", id="m", window=0)}, "window"),
    ],
)
def test_what_no_provider_can_be_made_with_is_refused(make: Any, facts: _Json, words: str) -> None:
    asked: _Json = {"model": "m", "base_url": "https://llm.example", **facts}
    with pytest.raises(UsageError) as caught:
        make(asked.pop("model"), **asked)
    assert words in caught.value.message
    assert "secret" not in caught.value.message


def test_an_agent_shows_what_it_is() -> None:
    agent = Agent(OpenAIChat("m", api_key="secret", base_url="https://llm.example"), tools=[look])
    assert repr(agent) == "Agent('openai/m', tools=['look'])"
    assert repr(Agent("groq")) == "Agent('groq', tools=[])"


@pytest.mark.rules("A4.58", "A2.25")
async def test_half_a_character_in_a_result_of_json_does_not_lose_it() -> None:
    def odd() -> object:
        """Give odd texts."""
        return {"k\ud800": ["\udfff", "\ud83d\ude00", 1, None, cast("Any", Odd)("x")]}

    class Odd:
        def __init__(self, text: str) -> None:
            self.text = text

        def model_dump(self, mode: str) -> _Json:
            return {mode: self.text}

    result = await Agent(ScriptedProvider(call("odd"), "Ok."), tools=[odd]).run("Go.")
    assert results(result.messages) == ['{"k\ufffd":["\ufffd","😀",1,null,{"json":"x"}]}']
