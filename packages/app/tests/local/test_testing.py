import unittest
from pathlib import Path

import pytest

from towline.local import testing
from towline.local.facts import QWEN_CODER
from towline.local.testing import require_model


def test_a_model_that_is_not_there_skips_with_one_line_that_says_how_to_get_it(
    tmp_path: Path,
) -> None:
    with pytest.raises(unittest.SkipTest, match=r"NO LOCAL MODEL in .*TOWLINE_FETCH_MODEL=1"):
        require_model({"TOWLINE_MODEL_DIR": str(tmp_path), "TOWLINE_REQUIRE": "chromium,models"})


@pytest.mark.parametrize(
    "environ", [{"TOWLINE_REQUIRE": "chromium,model"}, {"TOWLINE_FETCH_MODEL": "1"}]
)
def test_a_model_that_is_wanted_is_fetched(
    tmp_path: Path, environ: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[object, object]] = []

    async def fetch(facts: object, *, folder: Path, **_told: object) -> Path:
        asked.append((facts, folder))
        return folder / "fetched"

    monkeypatch.setattr(testing, "ensure_model", fetch)
    found = require_model({"TOWLINE_MODEL_DIR": str(tmp_path), **environ})
    assert found == tmp_path / "fetched"
    assert asked == [(QWEN_CODER, tmp_path)]
