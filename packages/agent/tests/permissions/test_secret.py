"""Which files ask in every mode."""

import os
from pathlib import Path

import pytest

from towline_agent.permissions.rules import parse_rule
from towline_agent.permissions.secret import (
    is_control,
    is_hook,
    is_secret,
    may_be_secret,
    path_part,
)
from towline_agent.testing import ScriptedHost, ScriptedProvider, call, scripted_plan
from towline_agent.tools.builtin import builtin_tools
from towline_agent.workspaces.local import LocalWorkspace
from towline_protocol import PermissionRequested, ToolEnded, block_text

SECRET = [
    ".env", ".env.local", ".env.production", "app/.env", "prod.env", ".ENV", ".Env", "\uff0eenv",
    ".envrc", "server.pem", "SERVER.PEM", "tls.key", "a.p12", "a.pfx", "a.jks", "id_rsa",
    "id_ed25519", "deploy_rsa", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials",
    ".git/config", "sub/.git/config", "credentials", "credentials.json", "secrets.yaml",
    "client_secret_1.json", "service-account.json", "terraform.tfstate", "prod.tfvars",
    "kubeconfig", "auth.json", "token", "/home/ann/.ssh/config", "/home/ann/.ssh/known_hosts",
    "/home/ann/.aws/credentials", "/home/ann/.kube/config", "/home/ann/.docker/config.json",
    "/home/ann/.gnupg/trustdb.gpg", "/home/ann/.config/gh/hosts.yml", "/etc/shadow",
    "/proc/self/environ", "/proc/1/mem", "/proc/1234/cwd/x", "/dev/mem", "/dev/sda1",
    "./.env", "a//.env", "a/./.env", ".env/", "/home/ann/.bash_history", "master.key",
]  # fmt: skip
OPEN = [
    ".env.example", ".env.sample", "env.py", "environment.py", "src/token.py", "secrets.py",
    "credentials.ts", "id_rsa.pub", "/home/ann/.ssh/id_ed25519.pub", "README.md", "key.py",
    "keys.md", "Makefile", ".gitignore", "tests/test_secret.py", "monkey.txt", "tokens.py",
]  # fmt: skip


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize("path", SECRET)
def test_a_secret_is_known_by_its_name_however_it_is_written(path: str) -> None:
    assert is_secret(path)
    assert path_part(path, effect="read").caution is not None


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize("path", OPEN)
def test_what_only_looks_like_a_secret_is_none(path: str) -> None:
    assert not is_secret(path)


@pytest.mark.rules("A5.67")
def test_a_link_to_a_secret_or_of_a_secret_name_is_one() -> None:
    assert path_part(".env", effect="read", also=("notes.txt",)).caution is not None
    assert path_part("notes.txt", effect="read", also=(".env",)).caution is not None
    assert path_part("notes.txt", effect="read", also=("other.txt",)).caution is None


@pytest.mark.rules("A5.54")
@pytest.mark.parametrize(
    "path",
    [
        ".towline", ".towline/permissions.toml", ".TOWLINE/x", "sub/.towline/commands/a.md",
        ".mcp.json", "/home/ann/.config/towline/permissions.toml",
        "/home/ann/.config/towline/config.toml",
        "/home/ann/.local/share/towline/projects/a/user-b.json",
    ],
)  # fmt: skip
def test_what_decides_on_permissions_is_written_only_when_a_person_says_so(path: str) -> None:
    assert is_control(path)
    part = path_part(path, effect="write")
    assert part.firm
    assert "decides what is allowed" in (part.caution or "")
    assert not path_part(path, effect="read").firm


def test_what_git_runs_calls_for_caution_when_it_is_written() -> None:
    for path in (".git/hooks/pre-commit", ".git/info/attributes", ".gitmodules", ".husky/x"):
        assert is_hook(path)
        assert path_part(path, effect="write").caution is not None
    assert path_part(".git/HEAD", effect="read").caution is None
    assert not is_hook(".github/workflows/a.yml")


@pytest.mark.parametrize(
    ("pattern", "may"),
    [(".e*", True), (".en?", True), ("*.pem", True), (".[e]nv", True), ("id_*", True),
     ("*", False), ("*.py", False), ("src/*", False), ("?", False), (".gitig*", False)],
)  # fmt: skip
def test_a_pattern_that_may_name_a_secret_is_known(pattern: str, *, may: bool) -> None:
    assert may_be_secret(pattern) is may


# through the tools


async def use(
    folder: Path, name: str, *, mode: str = "auto", rules: tuple[str, ...] = (), **arguments: str
) -> tuple[list[PermissionRequested], str, str]:
    """What a call of a tool asked, how it ended and what it told; nobody is there to answer."""
    provider = ScriptedProvider(call(name, **arguments), "Done.")
    made = [parse_rule(rule) for rule in rules]
    workspace = LocalWorkspace(str(folder))
    plan = scripted_plan(provider, *builtin_tools(), workspace=workspace, mode=mode, rules=made)
    host = ScriptedHost()
    await host.run(plan)
    asked = [event for event in host.events if isinstance(event, PermissionRequested)]
    (end,) = [event for event in host.events if isinstance(event, ToolEnded)]
    return asked, end.status, block_text(end.content)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    (root / "src").mkdir(parents=True)
    (root / "src" / "a.txt").write_text("words\n")
    (root / ".env").write_text("KEY=hidden\n")
    (root / "link.txt").symlink_to(".env")
    (tmp_path / "outside.txt").write_text("far\n")
    (root / "out.txt").symlink_to(tmp_path / "outside.txt")
    return root


@pytest.mark.rules("A5.67", "A5.68", "A5.69")
@pytest.mark.parametrize("path", [".env", "link.txt", "src/../.env", "./.env"])
async def test_a_secret_is_not_read_without_a_person_even_in_auto(folder: Path, path: str) -> None:
    asked, status, told = await use(folder, "read_file", path=path)
    assert (len(asked), status) == (1, "denied")
    assert asked[0].reason is not None
    assert "may hold secrets" in asked[0].reason
    assert "hidden" not in told
    _, status, told = await use(folder, "read_file", path=path, rules=("allow read_file(.env)",))
    assert (status, "hidden" in told) == ("completed", True)


@pytest.mark.rules("A5.67", "A5.69")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("read_file", {"path": "plain.txt"}),
        ("search_text", {"path": "plain.txt", "pattern": "KEY"}),
        ("move_path", {"source": "plain.txt", "target": "b.txt"}),
        ("shell", {"command": "cat plain.txt"}),
        ("shell", {"command": "cat < plain.txt"}),
        ("run_program", {"command": "head plain.txt"}),
    ],
)
async def test_a_hard_link_to_a_secret_asks_under_its_plain_name_and_says_of_which(
    folder: Path, name: str, arguments: dict[str, str]
) -> None:
    os.link(folder / ".env", folder / "plain.txt")
    rule = f"allow {name}(*.txt)"
    for rules in ((), (rule,)):
        asked, status, told = await use(folder, name, rules=rules, **arguments)
        assert (len(asked), status) == (1, "denied")
        assert "'.env'" in (asked[0].reason or "")
        assert "hidden" not in told


@pytest.mark.rules("A5.48", "A5.67")
async def test_a_denial_of_a_secret_denies_its_second_name_too(folder: Path) -> None:
    os.link(folder / ".env", folder / "plain.txt")
    asked, status, _ = await use(folder, "read_file", path="plain.txt", rules=("deny *(.env)",))
    assert (asked, status) == ([], "denied")


@pytest.mark.rules("A5.67")
async def test_a_search_of_the_folder_leaves_out_second_names_of_secrets(folder: Path) -> None:
    os.link(folder / ".env", folder / "plain.txt")
    (folder / "open.txt").write_text("KEY=open\n")
    asked, status, told = await use(folder, "search_text", pattern="KEY")
    assert (asked, status) == ([], "completed")
    assert "open.txt" in told
    assert "hidden" not in told


@pytest.mark.rules("A5.3", "A5.69")
@pytest.mark.parametrize("path", ["out.txt", "../outside.txt"])
async def test_a_place_outside_is_read_only_if_a_rule_or_a_person_allows_it(
    folder: Path, path: str
) -> None:
    asked, status, told = await use(folder, "read_file", path=path)
    assert (len(asked), status) == (1, "denied")
    assert "lies outside" in (asked[0].reason or "")
    assert "far" not in told
    rule = f"allow read_file({folder.parent}/outside.txt)"
    _, status, told = await use(folder, "read_file", path=path, rules=(rule,))
    assert (status, "far" in told) == ("completed", True)


@pytest.mark.rules("A5.54")
@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("create_file", {"path": ".towline/permissions.toml", "content": "rules = []"}),
        ("write_file", {"path": ".towline/permissions.toml", "content": "rules = []"}),
        ("create_dir", {"path": ".towline"}),
        ("move_path", {"source": "src", "target": ".towline"}),
        ("shell", {"command": "mkdir .towline && echo 'rules = []' > .towline/permissions.toml"}),
        ("shell", {"command": "cp src/a.txt .mcp.json"}),
        ("run_program", {"command": "cp src/a.txt .mcp.json"}),
        ("run_program", {"command": 'python -c \'open(".towline/x", "w")\''}),
    ],
)
async def test_no_tool_writes_its_own_permissions(
    folder: Path, name: str, arguments: dict[str, str]
) -> None:
    before = sorted(path.name for path in _all(folder))
    asked, status, _ = await use(folder, name, rules=("allow *", f"allow {name}(**)"), **arguments)
    assert (len(asked), status) == (1, "denied")
    assert [option.id for option in asked[0].options] == ["allow_once", "deny"]
    assert sorted(path.name for path in _all(folder)) == before


def _all(folder: Path) -> list[Path]:
    return list(folder.rglob("*"))


@pytest.mark.rules("A5.44")
async def test_the_modes_hold_for_the_tools_that_are_there(folder: Path) -> None:
    for mode, status in (("ask", "denied"), ("accept_edits", "completed"), ("plan", "denied")):
        made = await use(folder, "create_file", mode=mode, path=f"{mode}.txt", content="x")
        assert made[1] == status
        assert (await use(folder, "shell", mode=mode, command="rm src/a.txt"))[1] == "denied"
        assert (await use(folder, "read_file", mode=mode, path="src/a.txt"))[1] == "completed"
        assert (await use(folder, "shell", mode=mode, command="cat src/a.txt"))[1] == "completed"
