"""What a program is told of our environment."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from towline_agent.workspaces.environment import child_environment, is_secret

SECRETS = (
    *("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "OPENROUTER_API_KEY", "XAI_API_KEY"),
    *("AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_ACCESS_KEY_ID", "AZURE_CLIENT_SECRET"),
    *("GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "NPM_TOKEN", "HF_TOKEN", "PYPI_TOKEN"),
    *("TOWLINE_TOKEN", "TOWLINE_PASSWORD", "TOWLINE_PORT", "towline_token", "DB_PASSWORD"),
    *("PGPASSWORD", "MYSQL_PWD", "DATABASE_URL", "SENTRY_DSN", "GOOGLE_APPLICATION_CREDENTIALS"),
    *("SSH_AUTH_SOCK", "VAULT_TOKEN", "ANSIBLE_VAULT_PASSPHRASE", "NETRC_AUTH", "MyApiKey"),
)
"""Names of keys as programs have them."""


@pytest.mark.rules("A5.23")
@pytest.mark.parametrize("name", SECRETS)
@pytest.mark.parametrize("network", [False, True])
@pytest.mark.parametrize("scratch", [None, "/tmp"])
def test_no_secret_is_passed_on(name: str, network: bool, scratch: str | None) -> None:
    told = child_environment({name: "sk-1", "PATH": "/bin"}, network=network, scratch=scratch)
    assert name not in told
    assert "sk-1" not in told.values()
    assert told["PATH"] == "/bin"


@pytest.mark.rules("A5.23")
def test_what_no_list_names_is_not_passed_on() -> None:
    ours = {"FOO": "1", "PYTHONPATH": "/x", "LD_PRELOAD": "/x.so", "BASH_ENV": "/x", "LCX": "1"}
    assert ours.keys().isdisjoint(child_environment(ours))


@pytest.mark.rules("A5.23")
@pytest.mark.parametrize("name", ["LC_API_KEY", "LC_TOKEN"])
def test_a_secret_that_a_list_lets_through_stops_at_the_second_wall(name: str) -> None:
    assert is_secret(name)
    assert name not in child_environment({name: "x", "LC_TIME": "C"})
    assert child_environment({"LC_TIME": "C"})["LC_TIME"] == "C"


@pytest.mark.parametrize("name", ["PATH", "HOME", "LC_ALL", "MONKEY", "KEYBOARD", "AUTHOR", "CI"])
def test_an_ordinary_name_is_no_secret(name: str) -> None:
    assert not is_secret(name)


@pytest.mark.rules("A5.23")
def test_nobody_is_asked_and_no_page_is_turned() -> None:
    told = child_environment({"PAGER": "less", "TERM": "xterm-256color", "GIT_EDITOR": "vim"})
    assert told["TERM"] == "dumb"
    assert {told[name] for name in ("PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER")} == {"cat"}
    assert told["GIT_TERMINAL_PROMPT"] == "0"
    assert told["DEBIAN_FRONTEND"] == "noninteractive"
    assert told["PIP_NO_INPUT"] == told["PYTHONUNBUFFERED"] == "1"
    assert {told[name] for name in ("EDITOR", "VISUAL", "GIT_EDITOR")} == {"true"}


def test_the_way_into_the_network_is_told_where_there_is_one_and_without_passwords() -> None:
    ours = {"HTTPS_PROXY": "http://proxy:3128", "PIP_INDEX_URL": "https://me:pw@index/simple"}
    assert "HTTPS_PROXY" not in child_environment(ours)
    told = child_environment(ours, network=True)
    assert told["HTTPS_PROXY"] == "http://proxy:3128"
    assert "PIP_INDEX_URL" not in told


def test_in_a_sandbox_temporary_files_and_caches_have_places_of_their_own() -> None:
    ours = {"TMPDIR": "/var/tmp", "UV_CACHE_DIR": "/c", "XDG_CACHE_HOME": "/c"}
    assert child_environment(ours).items() >= ours.items()
    told = child_environment(ours, scratch="/s")
    assert (told["TMPDIR"], told["XDG_CACHE_HOME"]) == ("/s", "/s/.cache")
    assert told["npm_config_cache"] == "/s/.cache/npm"
    assert "UV_CACHE_DIR" not in told


def test_the_virtual_environment_that_we_run_from_is_not_the_programs() -> None:
    assert child_environment({"VIRTUAL_ENV": "/v"})["VIRTUAL_ENV"] == "/v"
    ours = {"VIRTUAL_ENV": sys.prefix}
    assert "VIRTUAL_ENV" not in child_environment(ours, root="/elsewhere")
    assert child_environment(ours, root=sys.prefix)["VIRTUAL_ENV"] == sys.prefix


@pytest.mark.rules("A5.44")
@pytest.mark.parametrize("kind", ["bare", "monitored"])
def test_reading_a_repository_starts_no_program_that_it_names(kind: str, tmp_path: Path) -> None:
    git = shutil.which("git")
    if git is None:
        pytest.skip("GIT is not on the path; it is what a folder could mislead.")
    folder = tmp_path / "folder" if kind == "bare" else tmp_path / "folder" / ".git"
    (folder / "objects").mkdir(parents=True)
    (folder / "refs").mkdir()
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    monitor = (
        '[core]\n\tbare = false\n\trepositoryformatversion = 0\n\tfsmonitor = "touch ran; false"\n'
    )
    where = '\tworktree = "."\n' if kind == "bare" else ""
    (folder / "config").write_text(monitor + where)
    told = child_environment({"PATH": os.environ["PATH"]})
    argv = (git, "status")
    subprocess.run(argv, cwd=tmp_path / "folder", env=told, check=False, capture_output=True)
    assert list(tmp_path.rglob("ran")) == []
