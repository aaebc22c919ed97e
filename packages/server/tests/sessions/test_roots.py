"""Sessions whose folder a server may not work in any more."""

from pathlib import Path

import pytest

from towline_agent import mint_now
from towline_agent.testing import ScriptedProvider
from towline_protocol import CreateSession, Text
from towline_server.store.sqlite_store import open_memory_store
from towline_server.testing import AppClient, open_test_app, ran


@pytest.mark.rules("A5.1")
async def test_a_session_of_a_folder_that_is_no_root_any_more_does_not_work_there(
    tmp_path: Path,
) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    old.mkdir()
    new.mkdir()
    store = await open_memory_store(mint=mint_now)
    try:
        async with open_test_app(ScriptedProvider("Hi."), root=old, store=store) as built:
            client = AppClient(built)
            session = await client.create(CreateSession(prompt=(Text(text="Hello"),)))
            await client.until(session, ran(1))
        provider = ScriptedProvider("Still here.")
        async with open_test_app(provider, root=new, store=store) as built:
            client = AppClient(built)
            await client.prompt(session, "And now?")
            view = await client.until(session, ran(2))
    finally:
        await store.close()
    assert view.last_turn is not None
    assert view.last_turn.outcome == "failed"
    assert view.fault is not None
    assert "outside the folders this server may work in" in view.fault.message
    assert provider.requests == []
