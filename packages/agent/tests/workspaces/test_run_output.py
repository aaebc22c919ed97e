"""A flood of output from a real program: few pieces, little memory."""

import asyncio
import sys
import tracemalloc
from pathlib import Path

import pytest

from towline_agent.workspaces.program import run_program
from towline_protocol import Process

LIMIT_S = 60


@pytest.mark.rules("A5.18", "R49")
async def test_output_byte_by_byte_comes_in_few_pieces(tmp_path: Path) -> None:
    pieces: list[str] = []
    code = "import os\nfor n in range(40000): os.write(1, b'x')\nos.write(1, b'\\nend\\n')"

    async def start(process: Process) -> None: ...

    async with asyncio.timeout(LIMIT_S):
        result = await run_program(
            (sys.executable, "-c", code),
            root=str(tmp_path),
            timeout_s=LIMIT_S,
            on_start=start,
            on_output=pieces.append,
        )
    assert result.output == "x" * 40_000 + "\nend\n" == "".join(pieces)
    assert len(pieces) < 400


@pytest.mark.rules("A5.18", "R49")
async def test_much_output_takes_little_memory(tmp_path: Path) -> None:
    size, seen = 100_000_000, 0

    def count(text: str) -> None:
        nonlocal seen
        seen += len(text)

    async def start(process: Process) -> None: ...

    script = f"yes 'a line that is neither short nor long, of a build' | head -c {size}; echo end"
    tracemalloc.start()
    try:
        async with asyncio.timeout(LIMIT_S):
            result = await run_program(
                ("sh", "-c", script),
                root=str(tmp_path),
                timeout_s=LIMIT_S,
                on_start=start,
                on_output=count,
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == size + 4
    assert result.output.endswith("end\n")
    assert peak < 8_000_000
