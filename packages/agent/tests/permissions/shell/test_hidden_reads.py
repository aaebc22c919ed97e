"""Commands that look like reads, and start programs or read secrets by another door."""

import pytest

from towline_agent.permissions.testing import judge_shell

ROOT = "/home/ann/shop"

pytestmark = pytest.mark.wide

STARTERS = [
    "RIPGREP_CONFIG_PATH=x rg y",
    "export RIPGREP_CONFIG_PATH=x; rg y",
    "TAR_OPTIONS=--to-command=x tar tf y",
    "nm --plugin=./x.so y",
    "nm @x",
    "size --plugin ./x.so y",
    "strings @x",
    "cargo --version",
    "rustc -V",
    "go version",
    "pytest --version",
]
READERS = [
    "find -L /etc -name x",
    "find -H ~/.ssh",
    "find -O3 /etc",
    "find -D tree /etc",
    "grep --regexp=. .env",
    "grep --reg=. /etc/shadow",
    "grep -ie. .env",
    "grep -h -ine. .env",
    "grep --file=x .env",
    "rg --regexp=. .env",
    "rg -ie. .env",
    "rg --files /etc",
    "rg --ignore-file .env x",
    "fd --search-path /etc",
    "fd -C /etc x",
    "sort --files0-from=x",
    "jq 'import \"credentials\" as $x; $x'",
    "cat .en[]v]",
    "cat .en[[:alpha:]]",
    "cat .[!a]nv",
    "cat server.k*",
    "cat *.pe?",
    "cat prod.tf[v]ars",
    "cat .git/c*",
    "cat .ss?/id*",
    "cat .[s]sh/*",
    "cat ID_R*",
]
PLAIN = [
    "cat *",
    "cat src/*.py",
    "cat package*.json",
    "ls *.md",
    "grep -n x src/a.py",
    "grep -rn /api/ src",
    "rg -C3 x src",
    "find . -name x",
    "find -L src -type f",
    "jq .imports x.json",
    "sort x",
    "python --version",
    "LC_ALL=C ls",
]


def decide(command: str, mode: str) -> str:
    return judge_shell(command, ROOT, mode=mode).action


@pytest.mark.rules("A5.44", "A5.64")
@pytest.mark.parametrize("command", STARTERS)
def test_what_may_start_a_program_is_no_read(command: str) -> None:
    assert decide(command, "ask") == "ask"
    assert decide(command, "plan") == "deny"


@pytest.mark.rules("A5.67", "A5.69")
@pytest.mark.parametrize("command", READERS)
def test_what_may_read_secrets_or_outside_asks(command: str) -> None:
    assert decide(command, "accept_edits") == "ask"


@pytest.mark.rules("A5.44")
@pytest.mark.parametrize("command", PLAIN)
def test_a_plain_read_stays_one(command: str) -> None:
    assert decide(command, "ask") == "allow"
