"""Where towline keeps its files."""

import warnings
from pathlib import Path

import pytest

from towline.paths import find_paths


def test_one_variable_puts_everything_in_one_folder(tmp_path: Path) -> None:
    paths = find_paths({"TOWLINE_HOME": str(tmp_path)})
    assert paths.config_file == tmp_path / "config.toml"
    assert paths.data_dir == tmp_path / "data"
    assert paths.run_file == tmp_path / "run.json"


def test_without_a_runtime_folder_the_address_stands_with_the_data(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        paths = find_paths({})
    assert tmp_path in paths.run_file.parents
