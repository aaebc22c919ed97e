"""The whole way: client, HTTP, server, desk, and the command that tells it of a change."""

import asyncio
import os
from collections.abc import AsyncGenerator, Callable, Iterator
from functools import partial
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from towline.cli import keys as key_commands
from towline.cli.keys import remove_keys, set_key
from towline.cli.usage import show_usage
from towline.models import Choice, Models
from towline.paths import find_paths
from towline.providers.desk import Desk
from towline.providers.reach import open_reach
from towline_agent import Model
from towline_agent.testing import ScriptedProvider, say
from towline_client import Client, CommandRejected
from towline_protocol import Usage
from towline_server import BuiltApp, RunFile
from towline_server.testing import FakeProviders, open_test_server

KEY, NEXT = "sk-very-secret-1234", "sk-next-secret-5678"
PRICED = Model(provider="p", id="one", price_input=100_000.0, price_output=0.0)


def _reads(secrets: Iterator[str]) -> Callable[[str], str]:
    """Types one secret after the other."""

    def read(prompt: str) -> str:
        del prompt
        return next(secrets)

    return read


def leave_run_file(built: BuiltApp, environ: dict[str, str]) -> None:
    """As a server of this user leaves its address."""
    path = find_paths(environ).run_file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(
        msgspec.json.encode(RunFile(url=built.url, pid=os.getpid(), token=built.token))
    )


@pytest.fixture
async def environ(headless_environ: dict[str, str]) -> AsyncGenerator[dict[str, str]]:
    async with asyncio.timeout(60):
        yield headless_environ


async def test_a_client_sees_and_changes_providers_and_reads_what_was_used(
    tmp_path: Path,
) -> None:
    fake = FakeProviders("acme")
    provider = ScriptedProvider(say("Yes.", usage=Usage(input=10)), model=PRICED)
    async with (
        open_test_server(provider, root=tmp_path, providers=fake) as built,
        Client(built.url, built.token) as client,
    ):
        models = client.models
        assert (await models.list_models()).default == "acme/one"
        info = await models.change_provider("acme", api_key=KEY, backup_keys=[NEXT])
        assert (info.key, info.backup_keys) == ("…1234", ("…5678",))
        assert (await models.list_providers()).providers == (info,)
        assert (await models.test_provider("acme")).models == ("one",)
        await models.start_sign_in("acme", client_id="mine")
        await models.cancel_sign_in("acme")
        with pytest.raises(CommandRejected) as caught:
            await models.finish_sign_in("acme")
        assert caught.value.code == "conflict"
        assert (await models.remove_provider("acme")).key is None
        session = await client.open()
        await session.ask("Hi")
        report = await models.get_usage("session")
        assert [(row.name, row.cost) for row in report.rows] == [(session.id, 1.0)]
        empty = await models.get_usage(first="2020-01-01", last="2020-01-02")
        assert (empty.rows, empty.total.requests) == ((), 0)


@pytest.mark.rules("A2.75")
async def test_a_key_set_by_the_command_counts_in_the_server_that_runs(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    reach = open_reach(environ)
    folder = find_paths(environ).data_dir
    models = Models(Choice(model="openai/gpt-5", why=""), reach=reach)
    desk = Desk(reach, folder, lambda: "openai/gpt-5")
    secrets = iter([KEY, NEXT])
    monkeypatch.setattr(key_commands, "read_secret", _reads(secrets))
    screen = StringIO()
    console = Console(file=screen, width=200)
    loop = asyncio.get_running_loop()
    run = partial(loop.run_in_executor, None)

    await run(partial(set_key, "openai", console, add=False, environ=environ))
    assert "server" not in screen.getvalue().split("secrets.key")[1]  # none runs
    async with open_test_server(ScriptedProvider(), root=tmp_path, providers=desk) as built:
        leave_run_file(built, environ)
        before = await models.connect("openai/gpt-5")
        await run(partial(set_key, "openai", console, add=True, environ=environ))
        assert "runs uses it from its next request on" in screen.getvalue()
        assert reach.stored["openai"] == (KEY, NEXT)
        assert before.stale()
        await run(partial(remove_keys, "openai", console, last4=None, environ=environ))
        assert reach.stored == {}
        assert "runs no longer uses it from its next request on" in screen.getvalue()
    assert "secret-" not in screen.getvalue()
    await desk.aclose()


async def test_a_server_that_keeps_no_keys_is_told_apart(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_commands, "read_secret", _reads(iter([KEY])))
    screen = StringIO()
    console = Console(file=screen, width=200)
    run = partial(asyncio.get_running_loop().run_in_executor, None)
    fake = FakeProviders("acme")  # knows no such provider
    async with open_test_server(ScriptedProvider(), root=tmp_path, providers=fake) as built:
        leave_run_file(built, environ)
        await run(partial(set_key, "openai", console, add=False, environ=environ))
        assert "at its next start" in screen.getvalue()


async def test_usage_is_asked_of_the_server_that_runs(
    tmp_path: Path, environ: dict[str, str]
) -> None:
    provider = ScriptedProvider(say("Yes.", usage=Usage(input=10)), model=PRICED)
    screen = StringIO()
    async with open_test_server(provider, root=tmp_path) as built:
        leave_run_file(built, environ)
        async with Client(built.url, built.token) as client:
            await (await client.open()).ask("Hi")
        shown = partial(
            show_usage,
            Console(file=screen, width=100),
            by="model",
            first=None,
            last=None,
            as_json=False,
            environ=environ,
        )  # as a program of its own: it looks for the server and waits
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, lambda: asyncio.run(shown()))
    assert "p/one" in screen.getvalue()
    assert "$1.00" in screen.getvalue()
