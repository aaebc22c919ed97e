"""How far commands read: recursion, patterns, and all that git keeps, on a real disk."""

import os
import subprocess
from pathlib import Path

import pytest

from towline_agent.permissions.shell.split import split_shell
from towline_agent.tools.builtin.ground import DiskGround
from towline_agent.workspaces import sweep


def asks(folder: Path, command: str) -> list[str]:
    """Why a command asks in every mode; none for one that passes as a read."""
    parts = split_shell(command, root=str(folder), ground=DiskGround(str(folder)))
    return [
        part.caution or f"It does more than read: {part.subject}"
        for part in parts
        if part.caution is not None or part.effect not in (None, "read")
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "root"
    for name in ("src/deep", "app", "docs"):
        (root / name).mkdir(parents=True)
    (root / "src" / "deep" / "a.py").write_text("KEY")
    (root / "app" / ".env").write_text("KEY=hidden")
    (root / "docs" / "b.md").write_text("KEY")
    (root / "top.md").write_text("KEY")
    return root


@pytest.mark.rules("A5.67", "A5.69")
@pytest.mark.parametrize(
    "command",
    [
        "grep -r KEY .", "grep -rn KEY", "grep KEY -R app", "grep --recursive KEY app/",
        "grep --rec KEY .", "grep -d recurse KEY .", "grep --directories=recurse KEY .",
        "egrep -ir KEY *", "grep -r KEY */", "grep -r -e KEY", "grep -r -A 3 KEY",
        "grep -r --include=.env KEY", "grep -r --include='*' --exclude=*.py KEY .",
        "grep -r --exclude-dir=src KEY", "rg --hidden KEY", "rg -. KEY app", "rg -uu KEY",
        "rg -uuu KEY src app", "rg -g '.env' KEY", "rg --glob '.env' KEY", "rg -n -uu KEY .",
        "diff -r app docs", "diff -ru app docs", "cd app && grep -r KEY", "cd app; rg -. KEY",
        "ls && (grep -r KEY . | head)", "x=$(grep -r KEY .)", "timeout 9 grep -r KEY .",
        "sh -c 'grep -r KEY .'", "shopt -s dotglob; cat app/*", "shopt -s globstar; cat **/.e*",
        "cat app/.*", "rg -g '*.md' -g '.e*' KEY", "rg --iglob '*' KEY",
    ],
)  # fmt: skip
def test_a_command_that_would_read_a_secret_below_asks(folder: Path, command: str) -> None:
    assert any("secret" in reason for reason in asks(folder, command))


@pytest.mark.rules("A5.44", "A5.67")
@pytest.mark.parametrize(
    "command",
    [
        "grep -r KEY src", "grep -r KEY src docs", "grep -rn KEY src/", "grep KEY top.md",
        "grep -r --include=*.py KEY .", "grep -r --exclude=.env KEY .", "grep KEY *",
        "grep -r --exclude-dir=app KEY", "rg KEY", "rg -n KEY app", "rg --hidden KEY src",
        "rg -g '*.md' KEY", "rg -uu -g '*.py' KEY", "diff -r src docs", "cat *", "cat app/*",
        "cat src/*/*", "head docs/*.md", "find . -name '*.py'", "ls -R",
        "rg --files --hidden", "tree", "grep -r KEY s[rt]c",
    ],
)  # fmt: skip
def test_a_command_that_would_read_none_passes_as_a_read(folder: Path, command: str) -> None:
    assert asks(folder, command) == []


@pytest.mark.rules("A5.67", "A5.69")
def test_the_request_names_the_secret_that_would_be_read(folder: Path) -> None:
    assert asks(folder, "grep -r KEY .") == ["'app/.env' may hold secrets."]


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize("command", ["cat *", "grep KEY *.txt", "wc -l ?.txt", "sed -n 1,2p *"])
def test_a_pattern_asks_where_it_stands_for_a_secret_or_a_link_to_one(
    folder: Path, command: str
) -> None:
    assert asks(folder, command) == []
    (folder / "a.txt").symlink_to("app/.env")
    assert "may hold secrets" in asks(folder, command)[0]


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize("command", ["grep -r KEY docs", "rg KEY docs", "cat docs/*"])
def test_a_second_name_of_a_secret_counts_below_a_folder_too(folder: Path, command: str) -> None:
    os.link(folder / "app" / ".env", folder / "docs" / "c.md")
    assert "'app/.env'" in asks(folder, command)[0]


@pytest.mark.rules("A5.67")
def test_only_what_follows_links_reads_behind_them(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "id_rsa").write_text("x")
    (folder / "docs" / "far").symlink_to(tmp_path / "far")
    assert asks(folder, "grep -r KEY docs") == []
    assert asks(folder, "rg KEY docs") == []
    assert "id_rsa" in asks(folder, "grep -R KEY docs")[0]
    assert "id_rsa" in asks(folder, "rg -L KEY docs")[0]


@pytest.mark.rules("A5.67")
def test_links_in_a_circle_end(folder: Path) -> None:
    (folder / "docs" / "round").symlink_to("..")
    assert "app/.env" in asks(folder, "grep -R KEY docs")[0]


@pytest.mark.rules("A5.4", "A5.67")
def test_what_is_ignored_counts_for_programs_that_read_it(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("prod.key\n")
    (folder / "src" / "prod.key").write_text("x")
    assert asks(folder, "rg KEY src") == []
    assert "prod.key" in asks(folder, "rg -u KEY src")[0]
    assert "prod.key" in asks(folder, "grep -r KEY src")[0]
    (folder / "src" / ".ignore").write_text("!prod.key\n")
    assert "prod.key" in asks(folder, "rg KEY src")[0]


@pytest.mark.rules("A5.67")
def test_what_is_ignored_counts_where_no_repository_is(folder: Path) -> None:
    (folder / ".gitignore").write_text("prod.key\n")
    (folder / "src" / "prod.key").write_text("x")
    assert "prod.key" in asks(folder, "rg KEY src")[0]


@pytest.mark.rules("A5.67")
def test_settings_of_git_count_only_with_a_password(folder: Path) -> None:
    (folder / "src" / ".git").mkdir()
    config = folder / "src" / ".git" / "config"
    config.write_text("[core]\n\tbare = false\n")
    assert asks(folder, "grep -r KEY src") == []
    config.write_text('[remote "o"]\n\turl = https://me:word@host/x\n')
    assert ".git/config" in asks(folder, "grep -r KEY src")[0]


@pytest.mark.rules("A5.67")
def test_what_is_too_large_to_look_through_asks(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweep.find_below, "__kwdefaults__", {"most": 2})
    assert asks(folder, "grep -r KEY src") != []
    monkeypatch.setattr(sweep, "EXPANDED_MAX", 1)
    assert "too many" in asks(folder, "cat *")[0]


# what git keeps, and what it starts


def git(folder: Path, *words: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"}
    identity = ("-c", "user.name=n", "-c", "user.email=e@x", "-c", "protocol.file.allow=always")
    subprocess.run(
        ["git", *identity, *words], cwd=folder, env=environment, check=True, capture_output=True
    )


@pytest.fixture
def repository(folder: Path) -> Path:
    git(folder, "init", "-q")
    git(folder, "add", "src", "docs", "top.md")
    git(folder, "commit", "-qm", "first")
    return folder


PRINTING = [
    "git log -p", "git log --patch -3", "git log -u src/..", "git show", "git show HEAD",
    "git show HEAD~0 --stat -p", "git diff HEAD", "git diff", "git diff --cached", "git grep KEY",
    "git grep -n KEY HEAD", "git log -L1,2:top.md", "git --no-pager log -p", "git diff -U9",
    "git cat-file -p HEAD", "git whatchanged -p", "git log --cc", "git diff-tree -p HEAD",
]  # fmt: skip
QUIET = [
    "git status", "git log", "git log --oneline -5", "git diff --stat", "git show --stat HEAD",
    "git show --name-only", "git branch -a", "git log --graph --all --pretty=oneline",
    "git ls-files", "git log -p -- docs", "git show HEAD -- src/deep", "git diff src",
    "git grep KEY -- docs", "git cat-file -t HEAD", "git blame top.md", "git diff -- top.md",
]  # fmt: skip


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize("command", PRINTING)
def test_git_asks_before_it_prints_a_tracked_secret(repository: Path, command: str) -> None:
    assert asks(repository, command) == []
    git(repository, "add", "-f", "app/.env")
    git(repository, "commit", "-qm", "second")
    assert asks(repository, command) == ["'app/.env' may hold secrets."]


@pytest.mark.rules("A5.44")
@pytest.mark.parametrize("command", QUIET)
def test_git_passes_where_it_prints_no_secret(repository: Path, command: str) -> None:
    git(repository, "add", "-f", "app/.env")
    git(repository, "commit", "-qm", "second")
    assert asks(repository, command) == []


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize(
    "command",
    [
        "git diff --no-index app docs", "git diff --no-in . /dev/null", "git diff app docs",
        "git grep --untracked KEY", "git grep --no-index KEY", "git grep --no-index KEY app",
        "git grep --no-exclude-standard --untracked KEY -- app",
    ],
)  # fmt: skip
def test_git_asks_before_it_prints_a_secret_that_it_does_not_track(
    repository: Path, command: str
) -> None:
    assert "'app/.env' may hold secrets." in asks(repository, command)


@pytest.mark.rules("A5.67")
def test_git_asks_before_it_prints_a_secret_of_the_past(repository: Path) -> None:
    git(repository, "add", "-f", "app/.env")
    git(repository, "commit", "-qm", "second")
    git(repository, "rm", "-q", "--cached", "app/.env")
    git(repository, "commit", "-qm", "third")
    assert asks(repository, "git diff") == []
    for command in ("git log -p", "git show HEAD~1", "git diff HEAD~1", "git grep KEY HEAD~1"):
        assert asks(repository, command) == ["'app/.env' may hold secrets."]


@pytest.mark.rules("A5.67")
@pytest.mark.parametrize("version", ["2", "3", "4"])
def test_every_form_of_the_index_is_read(repository: Path, version: str) -> None:
    git(repository, "add", "-f", "app/.env")
    git(repository, "update-index", "--index-version", version)
    assert asks(repository, "git diff") == ["'app/.env' may hold secrets."]


@pytest.mark.rules("A5.66", "A5.67")
def test_an_index_that_cannot_be_read_asks(repository: Path) -> None:
    (repository / ".git" / "index").write_bytes(b"DIRC" + b"\0\0\0\x09" * 8)
    assert "can't be read" in asks(repository, "git diff")[0]


STARTS = [
    ("diff.external", "run"), ("core.fsmonitor", "./run"), ("core.pager", "run"),
    ("core.hooksPath", "hooks"), ("core.sshCommand", "run"), ("gpg.program", "run"),
    ("gpg.ssh.program", "run"), ("log.showSignature", "true"), ("diff.mine.textconv", "run"),
    ("diff.mine.command", "run"), ("filter.mine.clean", "run"), ("filter.mine.smudge", "run"),
    ("filter.mine.process", "run"), ("include.path", "other"), ("pager.log", "run"),
    ("includeIf.gitdir:/.path", "other"), ("core.worktree", "/"), ("alias.diff", "!run"),
    ("merge.mine.driver", "run"), ("remote.origin.uploadpack", "run"),
    ("protocol.ext.allow", "always"), ("interactive.diffFilter", "run"),
]  # fmt: skip


@pytest.mark.rules("A5.44", "A5.64", "A5.69")
@pytest.mark.parametrize(("key", "value"), STARTS)
def test_git_that_would_start_a_program_asks_and_names_the_key(
    repository: Path, key: str, value: str
) -> None:
    git(repository, "config", key, value)
    for command in ("git diff", "git log", "git status", "git show"):
        reasons = asks(repository, command)
        assert any(key.lower() in reason.lower() for reason in reasons), reasons
    assert asks(repository, "ls") == []


@pytest.mark.rules("A5.44")
def test_usual_settings_of_a_repository_start_nothing(repository: Path) -> None:
    for key, value in (
        ("user.name", "n"), ("remote.origin.url", "https://me:word@host/x"),
        ("branch.main.remote", "origin"), ("core.autocrlf", "input"), ("core.fsmonitor", "false"),
        ("pager.log", "false"), ("color.ui", "always"), ("pull.rebase", "true"),
        ("alias.st", "status"), ("diff.mine.xfuncname", "^x"),
    ):  # fmt: skip
        git(repository, "config", key, value)
    assert asks(repository, "git diff") == []


@pytest.mark.rules("A5.64")
def test_a_hook_that_reading_runs_asks(repository: Path) -> None:
    hook = repository / ".git" / "hooks" / "post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert "post-index-change" in asks(repository, "git status")[0]


@pytest.mark.rules("A5.64")
def test_a_repository_in_a_repository_counts_too(repository: Path) -> None:
    inner = repository / "inner"
    inner.mkdir()
    git(inner, "init", "-q")
    git(inner, "commit", "-q", "--allow-empty", "-m", "x")
    git(repository, "add", "inner")
    assert asks(repository, "git status") == []
    git(inner, "config", "core.fsmonitor", "./run")
    assert "core.fsmonitor" in asks(repository, "git status")[0]
    assert "core.fsmonitor" in asks(repository, "cd inner && git log")[0]


@pytest.mark.rules("A5.64")
def test_a_folder_that_is_a_repository_without_a_work_tree_counts(repository: Path) -> None:
    bare = repository / "docs" / "bare"
    git(repository, "init", "-q", "--bare", str(bare))
    git(bare, "config", "core.fsmonitor", "./run")
    assert asks(repository, "git status") == []
    assert "core.fsmonitor" in asks(repository, "cd docs/bare && git status")[0]


@pytest.mark.rules("A5.64")
def test_another_work_tree_counts_by_what_it_shares(repository: Path) -> None:
    git(repository, "worktree", "add", "-q", "../tree")
    tree = repository.parent / "tree"
    assert asks(tree, "git status") == []
    git(repository, "config", "diff.external", "run")
    assert "diff.external" in asks(tree, "git diff")[0]


@pytest.mark.rules("A5.64", "A5.66")
@pytest.mark.parametrize("kind", ["broken", "pipe", "large"])
def test_settings_that_cannot_be_read_ask(repository: Path, kind: str) -> None:
    config = repository / ".git" / "config"
    config.unlink()
    if kind == "pipe":
        os.mkfifo(config)
    else:
        config.write_text("[core\n" if kind == "broken" else "# " + "x" * 2**20)
    assert "can't be read" in asks(repository, "git status")[0]


@pytest.mark.rules("A5.44", "A5.64")
def test_our_own_look_starts_nothing_of_the_repository(repository: Path) -> None:
    mark = repository / "ran"
    run = repository / "run"
    run.write_text(f"#!/bin/sh\ntouch {mark}\n")
    run.chmod(0o755)
    (repository / ".gitattributes").write_text("* diff=mine filter=mine\n")
    git(repository, "add", "-f", "app/.env")
    git(repository, "commit", "-qm", "second")
    for key in ("core.fsmonitor", "diff.external", "diff.mine.textconv", "filter.mine.clean"):
        git(repository, "config", key, str(run))
    git(repository, "config", "log.showSignature", "true")
    for command in (*PRINTING, *QUIET):
        assert asks(repository, command) != []
    assert not mark.exists()
