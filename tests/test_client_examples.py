"""The client's programs in `examples/`, each run against a real server with a scripted model."""

import asyncio
import os
import sys
from pathlib import Path

import pytest

from towline_agent.testing import ScriptedProvider, call
from towline_server.testing import open_test_server

EXAMPLES = Path(__file__).parents[1] / "examples"


async def _run(name: str, url: str, token: str, typed: str) -> tuple[str, str]:
    """What a program prints, and what it says of errors."""
    environ = {
        "PATH": os.environ["PATH"],
        "TOWLINE_URL": url,
        "TOWLINE_TOKEN": token,
        "PYTHONUTF8": "1",
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(EXAMPLES / name),
        env=environ,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(60):
            out, errors = await process.communicate(typed.encode())
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return out.decode(), errors.decode()


@pytest.mark.rules("C5.12", "C5.10")
@pytest.mark.parametrize(
    ("typed", "told"), [("y\n", '{"celsius":24.5}'), ("n\n", "denied")], ids=["allowed", "denied"]
)
async def test_a_program_lends_its_tool_and_is_asked_before_it_runs(
    typed: str, told: str, tmp_path: Path
) -> None:
    provider = ScriptedProvider(call("measure", room="kitchen"), "It is warm.")
    async with open_test_server(provider, root=tmp_path, mode="ask") as built:
        out, errors = await _run("client_tool.py", built.url, built.token, typed)
    assert errors == ""
    assert out == "measure: allow it? [y/N] It is warm.\n"
    assert told in str(provider.requests[1].messages[-1])
