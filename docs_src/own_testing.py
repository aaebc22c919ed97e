from towline_client import Client
from towline_client.testing import ScriptedServer, ScriptedTransport, ScriptedTurn
from towline_protocol import block_text


async def answer(turn: ScriptedTurn, prompt: str) -> None:
    await turn.say("You said: ", prompt)


async def test_an_answer_is_shown() -> None:
    async with ScriptedServer(answer) as server:
        transport = ScriptedTransport(server)
        async with Client("http://test", "a token", transport=transport) as client:
            session = await client.open()
            assert await session.ask("Hi.") == "You said: Hi."


async def test_a_line_that_is_cut_loses_nothing() -> None:
    async with ScriptedServer(answer) as server:
        server.cuts.append(4)  # in the middle of the answer
        transport = ScriptedTransport(server)
        async with Client("http://test", "a token", transport=transport) as client:
            session = await client.open()
            await session.ask("Hi.")
            shown = [block_text(entry.content) for entry in session.view.messages]
            assert shown == ["Hi.", "You said: Hi."]
