"""What the local model reads before the first prompt."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from towline.assistant import FEW_TOOLS
from towline.local import LocalModel, Speed
from towline.local.server import serve_model
from towline.local.testing import small_model
from towline.warm import warm_local_model

BOUND_S = 20.0


@pytest.fixture
def model(tmp_path: Path, fake_engine: None) -> Path:
    path = tmp_path / "small.gguf"
    path.write_bytes(b"GGUF")
    return path


@pytest.mark.rules("A2.92")
async def test_it_reads_the_few_tools_that_requests_hold(
    model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    async def warm(_: LocalModel, system: str, tools: Sequence[Mapping[str, Any]] = ()) -> Speed:
        assert not system
        read.extend(tool["function"]["name"] for tool in tools)
        return Speed(read_tokens=1, read_per_s=1.0, write_per_s=1.0, took_s=1.0)

    monkeypatch.setattr(LocalModel, "warm", warm)
    async with asyncio.timeout(BOUND_S), serve_model(model, small_model(b"GGUF")) as running:
        await warm_local_model(running)
    assert read == list(FEW_TOOLS)
