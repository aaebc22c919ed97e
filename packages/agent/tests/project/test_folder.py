"""A project's own commands: only what lies in it."""

import os
from pathlib import Path

import pytest

from towline_agent.project.folder import find_commands


@pytest.fixture
def project(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    (root / ".towline" / "commands").mkdir(parents=True)
    (root / ".env").write_text("KEY=hidden")
    (root / "shared.md").write_text("Look it over.")
    (tmp_path / "far.md").write_text("Words of elsewhere.")
    return root


@pytest.mark.rules("A5.2", "A5.67", "A5.78")
@pytest.mark.parametrize(
    ("target", "told"), [("../../../far.md", "leads outside"), ("../../.env", "may hold secrets")]
)
async def test_a_command_that_leads_outside_or_to_a_secret_is_left_out_and_told(
    project: Path, target: str, told: str
) -> None:
    folder = project / ".towline" / "commands"
    (folder / "leak.md").symlink_to(target)
    (folder / "look.md").symlink_to("../../shared.md")
    found, notices = await find_commands(folder, "project", within=project)
    assert [command.name for command in found] == ["look"]
    assert len(notices) == 1
    assert "leak.md" in notices[0]
    assert told in notices[0]


@pytest.mark.rules("A5.67", "A5.78")
async def test_a_second_name_of_a_secret_is_no_command(project: Path) -> None:
    folder = project / ".towline" / "commands"
    os.link(project / ".env", folder / "leak.md")
    found, notices = await find_commands(folder, "project", within=project)
    assert (found, len(notices)) == ((), 1)
    assert "may hold secrets" in notices[0]


@pytest.mark.rules("A5.78")
async def test_a_persons_own_commands_may_be_links(project: Path, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    (own / "far.md").symlink_to(tmp_path / "far.md")
    found, notices = await find_commands(own, "user")
    assert ([command.body for command in found], notices) == (["Words of elsewhere."], ())
