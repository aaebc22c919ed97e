"""What the tests of the tools for files share."""

import pytest

from towline_agent.tools.builtin import after_edit


@pytest.fixture(autouse=True)
def _no_findings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The tools are looked at alone: what checkers say of made-up files is tested elsewhere."""
    monkeypatch.setattr(after_edit, "AFTER_EDIT", [])
