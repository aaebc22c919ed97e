"""What a program is told of our environment: an allow-list, so that no key gets out (A5.23)."""

import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Final

__all__ = ["child_environment", "is_secret"]

_PASSED: Final = frozenset(
    {
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "TZ", "CI"),
        *("LANG", "LANGUAGE", "OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "OMP_NUM_THREADS"),
        *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
        *("CARGO_HOME", "RUSTUP_HOME", "GOPATH", "GOROOT", "GOTOOLCHAIN", "JAVA_HOME"),
        *("NVM_DIR", "PYENV_ROOT", "CONDA_PREFIX", "PNPM_HOME", "UV_PYTHON_INSTALL_DIR"),
    }
)
"""Where things lie and how words are written. `LC_*` is passed too."""

_CACHES: Final = frozenset(
    {"XDG_CACHE_HOME", "UV_CACHE_DIR", "PIP_CACHE_DIR", "npm_config_cache", "GOCACHE", "GOMODCACHE"}
)
"""Where package managers keep what they have fetched; in a sandbox they get places of their own."""

_NETWORK: Final = frozenset(
    {
        *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
        *("http_proxy", "https_proxy", "all_proxy", "no_proxy"),
        *("PIP_INDEX_URL", "UV_INDEX_URL", "UV_DEFAULT_INDEX", "npm_config_registry", "GOPROXY"),
    }
)
"""How the network is reached; passed where it may be, and where no password stands in it."""

_SECRET: Final = re.compile(
    r"(?i)TOWLINE_.*|.*(?:_|^)(?:KEYS?|TOKENS?|SECRETS?|PASS(?:WORD|WD|PHRASE)?|CREDENTIALS?|AUTH)"
    r"(?:_.*|$)|.*(?:APIKEY|AUTH_SOCK|DATABASE_URL|DSN)"
)
"""Names that bear secrets, ours and others'. None is in the lists; this wall stands behind them."""

_FIXED: Final = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PYTHONUNBUFFERED": "1",
    # Nobody is there to turn pages,
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    # to write in an editor,
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    # or to answer.
    "GIT_TERMINAL_PROMPT": "0",
    # A folder that only looks like a repository may name programs in its settings, and so may those
    # of a folder that somebody has sent us: reading must not start them.
    "GIT_CONFIG_COUNT": "2",
    "GIT_CONFIG_KEY_0": "safe.bareRepository",
    "GIT_CONFIG_VALUE_0": "explicit",
    "GIT_CONFIG_KEY_1": "core.fsmonitor",
    "GIT_CONFIG_VALUE_1": "false",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PIP_DISABLE_PIP_VERSION_CHECK": "1",
}


def is_secret(name: str) -> bool:
    """Whether a variable of this name is never passed on, whatever list it stands in."""
    return _SECRET.fullmatch(name) is not None


def child_environment(
    environment: Mapping[str, str],
    *,
    root: str = "/",
    network: bool = False,
    scratch: str | None = None,
) -> dict[str, str]:
    """What of our environment a program gets (A5.23).

    Args:
        environment: Ours.
        root: The folder that it works in. The virtual environment that we run from ourselves is
            not passed on, unless it is the folder's own.
        network: Whether it may reach the network.
        scratch: The folder for its temporary files and caches; `None` where it may use the usual
            ones.
    """
    passed = _PASSED if scratch is not None else _PASSED | _CACHES
    found = {
        name: value
        for name, value in environment.items()
        if (name in passed or name.startswith("LC_")) and not is_secret(name)
    }
    if network:
        names = _NETWORK & environment.keys()
        found.update((n, environment[n]) for n in names if "@" not in environment[n])
    own = environment.get("VIRTUAL_ENV", "")
    if own and (Path(own) != Path(sys.prefix) or Path(own).is_relative_to(root)):
        found["VIRTUAL_ENV"] = own
    found.update(_FIXED)
    if scratch is not None:
        cache = f"{scratch}/.cache"
        found.update(TMPDIR=scratch, XDG_CACHE_HOME=cache, npm_config_cache=f"{cache}/npm")
    return found
