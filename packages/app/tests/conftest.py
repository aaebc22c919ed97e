"""Environments of a test's own: a home where nothing is, with a keyring of its own or none."""

import os
from pathlib import Path

import pytest

_FAKE = Path(__file__).parent / "secrets" / "fake_keyring"


@pytest.fixture
def keyring_environ(tmp_path: Path) -> dict[str, str]:
    """An environment whose keyring is `fake_keyring`; its folder is that of the home."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "LANG": "C.UTF-8",
        "COLUMNS": "400",
        "TOWLINE_HOME": str(tmp_path / "towline"),
        "PYTHONPATH": str(_FAKE),
        "PYTHON_KEYRING_BACKEND": "fake_keyring.FakeKeyring",
        "FAKE_KEYRING": str(tmp_path),
    }


@pytest.fixture
def headless_environ(keyring_environ: dict[str, str]) -> dict[str, str]:
    """An environment without a keyring."""
    return {**keyring_environ, "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring"}
