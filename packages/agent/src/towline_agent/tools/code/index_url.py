"""Which package index is meant: what the machine's pip and uv are set up with.

No address stands here. Whoever set an index for pip or uv, such as a company's own, has it asked
here too; else it is the one that these clients themselves use by default.
"""

import configparser
import re
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from towline_agent.errors import ToolError
from towline_agent.tools.code.child import run_child
from towline_agent.workspaces.threads import FILES

__all__ = ["find_index_url", "read_client_default", "read_pip_config"]

_SETTINGS: Final = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
_DEFAULT: Final = re.compile(r"\(\s*(?:by\s+)?default:?\s+<?(https?://[^\s<>)]+)")
_HELP_S: Final = 20.0
_UNKNOWN: Final = (
    "No package index is known here: neither pip nor uv is installed, nor is one set. Set "
    "PIP_INDEX_URL or UV_DEFAULT_INDEX for the program that runs this, or look the package up with "
    "web_fetch."
)


async def find_index_url(environment: Mapping[str, str]) -> str:
    """The address of the index, without an end slash.

    Asked in this order: the environment, pip's files, what uv and pip say is their default.

    Raises:
        ToolError: There is none, or it is no address.
    """
    for name in _SETTINGS:
        if environment.get(name):
            return _checked(environment[name].rpartition("=")[2], name)
    files = _pip_files(environment)
    set_by_file = await FILES.run(lambda: _read_files(files))
    if set_by_file is not None:
        return _checked(set_by_file, "pip's configuration")
    for argv in await FILES.run(_clients):
        try:
            end = await run_child(argv, timeout_s=_HELP_S)
        except OSError:
            continue
        found = read_client_default(end.output.decode("utf-8", "replace"))
        if found is not None:
            return _checked(found, argv[0])
    raise ToolError(_UNKNOWN)


def read_client_default(words: str) -> str | None:
    """The index that a client names as its default in its help."""
    found = _DEFAULT.search(words)
    return found[1] if found else None


def read_pip_config(text: str) -> str | None:
    """The index that a configuration file of pip sets; the one for `install` comes first."""
    parser = configparser.RawConfigParser(strict=False)
    try:
        parser.read_string(text)
    except configparser.Error:
        return None
    for section in ("install", "global"):
        for option in ("index-url", "index_url"):
            if parser.has_option(section, option):
                return parser.get(section, option).strip() or None
    return None


def _pip_files(environment: Mapping[str, str]) -> list[Path]:
    """Where pip looks, the strongest first."""
    home = Path(environment.get("HOME") or "/")
    config = Path(environment.get("XDG_CONFIG_HOME") or home / ".config")
    named = environment.get("PIP_CONFIG_FILE")
    return [
        *([Path(named)] if named else []),
        Path(sys.prefix) / "pip.conf",
        config / "pip" / "pip.conf",
        home / ".pip" / "pip.conf",
        home / "Library" / "Application Support" / "pip" / "pip.conf",
        Path("/etc/xdg/pip/pip.conf"),
        Path("/etc/pip.conf"),
    ]


def _read_files(files: list[Path]) -> str | None:
    for file in files:
        try:
            found = read_pip_config(file.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError):
            continue
        if found is not None:
            return found
    return None


def _clients() -> list[tuple[str, ...]]:
    """What prints the help of each client, this Python's own pip first."""
    found: list[tuple[str, ...]] = [(sys.executable, "-I", "-m", "pip", "install", "--help")]
    for name, command in (
        ("pip3", ("install",)),
        ("pip", ("install",)),
        ("uv", ("pip", "install")),
    ):
        program = shutil.which(name)
        if program is not None:
            found.append((program, *command, "--help"))
    return found


def _checked(url: str, source: str) -> str:
    """The address itself; what it may hold of a password is never shown."""
    try:
        parts = urlsplit(url.strip())
        usable = parts.scheme in ("http", "https") and bool(parts.hostname)
    except ValueError:
        usable = False
    if not usable:
        raise ToolError(f"{source} sets a package index that is no http(s) address; mend it there.")
    return url.strip().rstrip("/")
