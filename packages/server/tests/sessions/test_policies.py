"""Rules, modes and trust of folders: read whole or not at all, kept for one user and one folder."""

import os
import stat
from collections.abc import Generator
from pathlib import Path

import pytest

from towline_agent import MODES
from towline_server.config import load_config
from towline_server.errors import StoreError, TrustRefused
from towline_server.sessions.control import parse_rules, read_control
from towline_server.sessions.policies import Policies


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    (made / ".towline").mkdir(parents=True)
    return made


@pytest.fixture
def policies(tmp_path: Path) -> Generator[Policies]:
    made = Policies(tmp_path / "data", tmp_path / "config" / "permissions.toml")
    yield made
    made.close()


def write_rules(folder: Path, *rules: str) -> Path:
    path = folder / ".towline" / "permissions.toml"
    path.write_text(f"rules = {list(rules)!r}")
    return path


def list_all(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*"))


def trust(policies: Policies, folder: Path) -> None:
    policies.set_trust_now(str(folder), policies.trust_now(str(folder)).digest)


@pytest.mark.rules("A5.57", "A5.58")
async def test_an_always_rule_is_the_users_in_that_folder_and_never_in_the_project(
    policies: Policies, folder: Path, tmp_path: Path
) -> None:
    before = list_all(folder)
    await policies.keep_rule("ann", str(folder), "allow shell(=make)")
    await policies.keep_rule("ann", str(folder), "allow shell(=make)")
    assert list_all(folder) == before
    found = await policies.read("ann", str(folder))
    assert [rule.text for rule in found.user] == ["allow shell(=make)"]
    assert (await policies.read("bob", str(folder))).user == ()
    assert (await policies.read("ann", str(tmp_path))).user == ()
    files = [path for path in list_all(tmp_path / "data") if path.suffix == ".json"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in files] == [0o600]


@pytest.mark.rules("A5.48")
async def test_the_users_own_file_stands_before_the_always_rules(
    policies: Policies, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "permissions.toml").write_text('rules = ["deny shell(rm)"]')
    await policies.keep_rule("ann", str(folder), "allow shell(=rm x)")
    found = await policies.read("ann", str(folder))
    assert [rule.text for rule in found.user] == ["deny shell(rm)", "allow shell(=rm x)"]
    assert found.stores


@pytest.mark.rules("A5.45", "A5.46")
async def test_the_mode_that_was_chosen_last_is_kept_for_user_and_folder(
    policies: Policies, folder: Path, tmp_path: Path
) -> None:
    assert await policies.mode("ann", str(folder)) is None
    await policies.keep_mode("ann", str(folder), "plan")
    await policies.keep_rule("ann", str(folder), "allow shell(=make)")
    again = Policies(tmp_path / "data")
    assert await again.mode("ann", str(folder)) == "plan"
    assert await again.mode("bob", str(folder)) is None
    again.close()


def test_the_modes_of_the_settings_are_those_of_the_agent(tmp_path: Path) -> None:
    for mode in MODES:
        made = load_config(
            tmp_path / "config.toml", {"TOWLINE_MODE": mode}, data_dir=tmp_path / "data"
        )
        assert made.mode == mode
        assert made.rules_file == tmp_path / "permissions.toml"


@pytest.mark.rules("A5.49", "A5.51", "A5.52")
async def test_a_folder_is_trusted_with_the_files_that_were_seen_and_no_others(
    policies: Policies, folder: Path
) -> None:
    path = write_rules(folder, "allow shell(make)")
    found = await policies.read("ann", str(folder))
    assert ([rule.text for rule in found.project], found.trusted) == (["allow shell(make)"], False)
    trust(policies, folder)
    assert (await policies.read("ann", str(folder))).trusted
    for change in (
        lambda: path.write_text('rules = ["allow shell"]'),
        lambda: (folder / ".towline" / "commands").mkdir(),
        lambda: (folder / ".towline" / "commands" / "a.md").write_text("Do it."),
        lambda: (folder / ".towline" / "commands" / "a.md").rename(folder / ".towline" / "b.md"),
        lambda: (folder / ".mcp.json").write_text("{}"),
    ):
        before = policies.trust_now(str(folder))
        change()
        after = policies.trust_now(str(folder))
        assert after.trusted is (after.digest == before.digest)
        assert after.changed is not after.trusted
        trust(policies, folder)
    policies.set_trust_now(str(folder), None)
    assert not policies.trust_now(str(folder)).trusted


@pytest.mark.rules("A5.51")
def test_trust_is_bound_to_the_folder(policies: Policies, folder: Path, tmp_path: Path) -> None:
    write_rules(folder, "allow shell(make)")
    trust(policies, folder)
    other = tmp_path / "other"
    folder.rename(other)
    assert not policies.trust_now(str(other)).trusted


@pytest.mark.rules("A5.51", "A5.60")
def test_files_that_change_before_the_answer_are_not_trusted(
    policies: Policies, folder: Path
) -> None:
    write_rules(folder, "ask shell")
    seen = policies.trust_now(str(folder)).digest
    write_rules(folder, "allow shell")
    with pytest.raises(TrustRefused, match="changed since you looked"):
        policies.set_trust_now(str(folder), seen)
    assert not policies.trust_now(str(folder)).trusted


@pytest.mark.rules("A5.51")
@pytest.mark.parametrize(
    "what", ["pipe", "link", "loop", "folder_link", "large", "many", "no_folder"]
)
def test_what_cannot_be_looked_through_is_never_trusted(
    policies: Policies, folder: Path, tmp_path: Path, what: str
) -> None:
    own = folder / ".towline"
    if what == "pipe":
        os.mkfifo(own / "pipe")
    elif what == "link":
        (own / "link").symlink_to(tmp_path / "nowhere")
    elif what == "loop":
        (own / "loop").symlink_to(own / "loop")
    elif what == "folder_link":
        (own / "commands").symlink_to(tmp_path)
    elif what == "large":
        (own / "large").write_bytes(b"x" * (9 * 2**20))
    elif what == "many":
        for number in range(600):
            (own / str(number)).touch()
    else:
        own.rmdir()
        own.symlink_to(tmp_path)
    found = policies.trust_now(str(folder))
    assert found.problems
    with pytest.raises(TrustRefused):
        policies.set_trust_now(str(folder), found.digest)
    assert not policies.trust_now(str(folder)).trusted


def test_a_link_to_a_file_counts_by_what_it_leads_to(policies: Policies, folder: Path) -> None:
    shared = folder / "shared.toml"
    shared.write_text('rules = ["ask shell"]')
    (folder / ".towline" / "permissions.toml").symlink_to(shared)
    trust(policies, folder)
    shared.write_text('rules = ["allow shell"]')
    assert not policies.trust_now(str(folder)).trusted


@pytest.mark.rules("A5.2", "A5.51", "A5.53")
@pytest.mark.parametrize("name", ["permissions.toml", "commands/leak.md", "../.mcp.json"])
def test_a_folder_whose_own_files_lead_outside_is_not_trusted_and_says_which(
    policies: Policies, folder: Path, tmp_path: Path, name: str
) -> None:
    (tmp_path / "far").write_text('rules = ["allow shell"]')
    link = folder / ".towline" / name
    link.parent.mkdir(exist_ok=True)
    link.symlink_to(tmp_path / "far")
    found = policies.trust_now(str(folder))
    assert "leads out of the folder" in found.problems[0]
    assert link.name in found.problems[0]
    assert found.rules == ()
    with pytest.raises(TrustRefused, match="leads out"):
        policies.set_trust_now(str(folder), found.digest)


@pytest.mark.rules("A5.47", "A5.48")
@pytest.mark.parametrize(
    ("raw", "told"),
    [
        (b"rules = [", "can't be read"),
        (b"\xff", "can't be read"),
        (b"rules = 3", "no list"),
        (b"rule = []", "'rule', which means nothing"),
        (b'rules = ["permit shell"]', "'permit'"),
        (b'rules = ["allow"]', "is not a permission rule"),
        (b"rules = [3]", "'3'"),
        (b'rules = ["deny shell(rm"]', "is not a permission rule"),
    ],
)
async def test_a_rule_that_cannot_be_read_is_told_and_makes_everything_ask(
    policies: Policies, folder: Path, raw: bytes, told: str
) -> None:
    (folder / ".towline" / "permissions.toml").write_bytes(raw)
    found = await policies.read("ann", str(folder))
    assert told in found.broken[0]
    assert told in policies.trust_now(str(folder)).problems[0]


def test_the_rules_that_can_be_read_still_count() -> None:
    found = parse_rules(b'rules = ["deny shell(rm)", "permit x", "ask shell"]', "it")
    assert [rule.text for rule in found.rules] == ["deny shell(rm)", "ask shell"]
    assert len(found.problems) == 1


@pytest.mark.rules("A5.57")
async def test_a_broken_file_of_ours_is_told_and_never_written_over(
    policies: Policies, folder: Path, tmp_path: Path
) -> None:
    await policies.keep_rule("ann", str(folder), "deny shell(=rm x)")
    (path,) = (tmp_path / "data" / "projects").rglob("user-*.json")
    for broken in (b"{", b'{"folder": 3}', b'{"folder": "x", "extra": 1}', b""):
        path.write_bytes(broken)
        found = await policies.read("ann", str(folder))
        assert "is broken" in found.broken[0]
        with pytest.raises(StoreError, match="is broken"):
            await policies.keep_rule("ann", str(folder), "allow shell(=make)")
        assert path.read_bytes() == broken


async def test_a_broken_trust_is_no_trust(policies: Policies, folder: Path, tmp_path: Path) -> None:
    write_rules(folder, "allow shell")
    trust(policies, folder)
    (path,) = (tmp_path / "data" / "projects").rglob("trust.json")
    path.write_bytes(b"{")
    found = await policies.read("ann", str(folder))
    assert not found.trusted
    assert "is broken" in found.broken[0]


async def test_a_disk_that_takes_nothing_is_told(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "data").write_text("no folder")
    policies = Policies(tmp_path / "data")
    with pytest.raises(StoreError, match="can't be read"):
        await policies.keep_mode("ann", str(folder), "auto")
    policies.close()


def test_a_folder_without_files_has_none(tmp_path: Path) -> None:
    found = read_control(tmp_path / "missing")
    assert (found.files, found.problems) == ({}, ())
