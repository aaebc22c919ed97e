"""The model of new sessions, chosen while the server runs."""

from pathlib import Path

import pytest

from towline.default_choice import DefaultChoice
from towline.models import Choice, Models
from towline.picks import Picks
from towline.providers.reach import Reach
from towline_server import Rejected, StoreError


def _models() -> Models:
    return Models(Choice(model="openai/gpt-5", why="A key is set."))


async def test_a_choice_counts_at_once_and_is_there_at_the_next_start(tmp_path: Path) -> None:
    models, reach = _models(), Reach({"OPENAI_API_KEY": "sk-none"})
    choose = DefaultChoice(models, Picks(tmp_path), reach)
    await choose("groq/llama")
    assert models.choice.model == Picks(tmp_path).chosen == "groq/llama"
    await choose(None)
    assert Picks(tmp_path).chosen is None
    assert models.choice.model.startswith("openai/")


@pytest.mark.rules("A2.87")
async def test_a_new_key_does_not_change_what_somebody_has_chosen(tmp_path: Path) -> None:
    models = Models(Choice(model="local/qwen2.5-coder-1.5b", why="It was chosen."))
    before = models.choice
    picks = Picks(tmp_path)
    picks.choose(before.model)
    await models.take_up("openai", picks=picks)
    assert models.choice is before


async def test_settings_that_name_a_model_are_changed_where_they_stand(tmp_path: Path) -> None:
    models = _models()
    choose = DefaultChoice(models, Picks(tmp_path), Reach({}), "openai/gpt-5")
    with pytest.raises(Rejected, match=r"config\.toml"):
        await choose("groq/llama")
    assert models.choice.model == "openai/gpt-5"


async def test_a_choice_that_cannot_be_kept_is_told_and_not_taken(tmp_path: Path) -> None:
    taken = tmp_path / "data"
    taken.write_text("a file where the folder would be")
    models = _models()
    with pytest.raises(StoreError, match="data folder"):
        await DefaultChoice(models, Picks(taken), Reach({}))("groq/llama")
    assert models.choice.model == "openai/gpt-5"
