"""A flood of output from a real program: few pieces, little memory."""

import asyncio
import sys
import tracemalloc
from pathlib import Path

import pytest

from towline_agent.workspaces.output import OUTPUT_MAX_CHARS
from towline_agent.workspaces.program import run_program
from towline_protocol import Process

LIMIT_S = 60


async def _start(process: Process) -> None: ...


@pytest.mark.rules("R49", "A5.18")
async def test_long_output_keeps_its_end(tmp_path: Path) -> None:
    script = "echo first; yes xxxxxxxxx | head -c 3000000; echo error: build failed >&2; exit 1"
    shown: list[str] = []
    async with asyncio.timeout(LIMIT_S):
        result = await run_program(
            ("sh", "-c", script),
            root=str(tmp_path),
            timeout_s=LIMIT_S,
            on_start=_start,
            on_output=shown.append,
        )
    assert result.truncated
    assert result.exit_code == 1
    assert result.output.startswith("first\nxxx")
    assert result.output.endswith("\nerror: build failed\n")
    assert len(result.output) <= OUTPUT_MAX_CHARS
    assert sum(map(len, shown)) > 3_000_000, "who watches bounds it"


@pytest.mark.rules("A5.18", "R49")
async def test_output_byte_by_byte_comes_in_few_pieces(tmp_path: Path) -> None:
    pieces: list[str] = []
    code = "import os\nfor n in range(40000): os.write(1, b'x')\nos.write(1, b'\\nend\\n')"

    async with asyncio.timeout(LIMIT_S):
        result = await run_program(
            (sys.executable, "-c", code),
            root=str(tmp_path),
            timeout_s=LIMIT_S,
            on_start=_start,
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

    script = f"yes 'a line that is neither short nor long, of a build' | head -c {size}; echo end"
    tracemalloc.start()
    try:
        async with asyncio.timeout(LIMIT_S):
            result = await run_program(
                ("sh", "-c", script),
                root=str(tmp_path),
                timeout_s=LIMIT_S,
                on_start=_start,
                on_output=count,
            )
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert seen == size + 4
    assert result.output.endswith("end\n")
    assert peak < 8_000_000
