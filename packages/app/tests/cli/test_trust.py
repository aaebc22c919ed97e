"""`towline trust`: a person lets a project's own files count."""

from collections.abc import Callable
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from towline.cli.trust import list_trusted, trust_folder
from towline_protocol import UsageError
from towline_server import Policies, TrustRefused


class Desk:
    """A project with rules of its own, and a person at a terminal."""

    def __init__(self, tmp_path: Path) -> None:
        self.environ = {"TOWLINE_HOME": str(tmp_path / "home")}
        self.folder = tmp_path / "project"
        self.rules = self.folder / ".towline" / "permissions.toml"
        self.rules.parent.mkdir(parents=True)
        self.rules.write_text('rules = ["allow shell(make)"]')
        self.policies = Policies(tmp_path / "home" / "data")

    @property
    def trusted(self) -> bool:
        return self.policies.trust_now(str(self.folder)).trusted

    def trust(self, **facts: bool) -> tuple[int, str]:
        shown = StringIO()
        console = Console(file=shown, width=200)
        code = trust_folder(self.folder, console, environ=self.environ, **facts)
        return code, shown.getvalue()

    def list(self) -> str:
        shown = StringIO()
        list_trusted(Console(file=shown, width=200), self.environ)
        return shown.getvalue()


def _saying(word: str) -> Callable[..., str]:
    def answer(*_: object, **__: object) -> str:
        return word

    return answer


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    return Desk(tmp_path)


@pytest.mark.rules("A5.51")
def test_a_person_sees_the_files_and_the_rules_before_they_trust_them(desk: Desk) -> None:
    code, shown = desk.trust(yes=True)
    assert code == 0
    assert ".towline/permissions.toml" in shown
    assert "rule: allow shell(make)" in shown
    assert desk.trusted
    assert desk.list().strip() == str(desk.folder)


@pytest.mark.rules("A5.51")
def test_only_a_yes_is_a_yes(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for said, trusted in (("", False), ("n", False), ("yes", True)):
        monkeypatch.setattr(Console, "input", _saying(said))
        code, _ = desk.trust()
        assert (code, desk.trusted) == (0 if trusted else 1, trusted)


def test_where_nobody_can_be_asked_nothing_is_trusted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: False, raising=False)
    with pytest.raises(UsageError, match="--yes"):
        desk.trust()
    assert not desk.trusted


@pytest.mark.rules("A5.52")
def test_a_changed_file_ends_the_trust_and_is_told(desk: Desk) -> None:
    desk.trust(yes=True)
    desk.rules.write_text('rules = ["allow shell"]')
    assert not desk.trusted
    assert "changed since" in desk.list()
    _, shown = desk.trust(yes=True)
    assert "They have changed since they were trusted." in shown
    assert desk.trusted


@pytest.mark.rules("A5.51")
def test_trust_is_forgotten(desk: Desk) -> None:
    desk.trust(yes=True)
    code, _ = desk.trust(forget=True)
    assert code == 0
    assert not desk.trusted
    assert desk.list() == "No folder is trusted.\n"


def test_what_cannot_be_read_whole_is_not_trusted(desk: Desk) -> None:
    (desk.rules.parent / "link").symlink_to("nowhere")
    with pytest.raises(TrustRefused, match="leads nowhere"):
        desk.trust(yes=True)
    assert not desk.trusted


def test_a_folder_without_files_has_nothing_to_trust(desk: Desk) -> None:
    desk.rules.unlink()
    code, shown = desk.trust()
    assert code == 0
    assert "nothing to trust" in shown


def test_what_is_no_folder_is_refused(desk: Desk) -> None:
    desk.folder = desk.rules
    with pytest.raises(UsageError, match="is no folder"):
        desk.trust()
