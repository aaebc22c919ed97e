import hashlib
from pathlib import Path

import pytest

FAKE_ENGINE = Path(__file__).with_name("fake_engine")


@pytest.fixture
def content() -> bytes:
    """A small GGUF-like file that is not the same anywhere."""
    blocks = (hashlib.sha256(bytes([n % 251, n // 251])).digest() for n in range(8000))
    return b"GGUF" + b"".join(blocks)


@pytest.fixture
def fake_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Children find the fake engine in place of the real one."""
    monkeypatch.setenv("PYTHONPATH", str(FAKE_ENGINE))
