"""The last picks of a person."""

import json
from pathlib import Path

import pytest

from towline.picks import Picks


@pytest.mark.rules("A2.87")
def test_the_last_model_of_each_provider_is_remembered(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    picks = Picks(folder)
    assert picks.last("openai") is None
    picks.remember("openai/gpt-5")
    picks.remember("openrouter/anthropic/claude-opus-5.5")
    picks.remember("openai+chat/gpt-4o")
    again = Picks(folder)
    assert again.last("openai") == "openai+chat/gpt-4o"
    assert again.last("openrouter") == "openrouter/anthropic/claude-opus-5.5"
    assert [path.name for path in folder.iterdir()] == ["picks.json"]


def test_the_model_of_all_new_sessions_is_kept_beside_the_last_picks(tmp_path: Path) -> None:
    picks = Picks(tmp_path)
    picks.remember("openai/gpt-5")
    picks.choose("groq/llama")
    assert Picks(tmp_path).chosen == "groq/llama"
    picks.choose(None)
    assert Picks(tmp_path).chosen is None
    assert Picks(tmp_path).last("openai") == "openai/gpt-5"


@pytest.mark.parametrize("content", [b"", b"{", b"[1]", b'{"openai": 1}', b"\xff"])
def test_a_damaged_file_is_as_good_as_none_and_is_written_anew(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "picks.json"
    path.write_bytes(content)
    picks = Picks(tmp_path)
    assert picks.last("openai") is None
    picks.remember("openai/gpt-5")
    assert json.loads(path.read_bytes()) == {"openai": "openai/gpt-5"}


def test_a_folder_that_cannot_be_written_does_no_harm(tmp_path: Path) -> None:
    taken = tmp_path / "data"
    taken.write_text("a file where the folder would be")
    picks = Picks(taken)
    picks.remember("openai/gpt-5")
    assert picks.last("openai") is None
    assert taken.read_text().startswith("a file")


def test_what_is_no_model_is_not_remembered(tmp_path: Path) -> None:
    Picks(tmp_path).remember("/model")
    assert list(tmp_path.iterdir()) == []
