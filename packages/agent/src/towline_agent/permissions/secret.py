"""Files that ask in every mode: secrets, and what decides on permissions (A5.54, A5.67)."""

import functools
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from towline_agent.permissions.part import Part

__all__ = ["SECRET_GLOBS", "is_control", "is_hook", "is_secret", "may_be_secret", "path_part"]

_SECRET_NAMES: Final = (
    ".env*", "*.env", "*.pem", "*.key", "*.p12", "*.pfx", "*.p8", "*.jks", "*.keystore", "*.kdbx",
    "*.ppk", "*.gpg", "*.age", "id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*_rsa", "*_dsa",
    "*_ecdsa", "*_ed25519", ".netrc", "_netrc", ".npmrc", ".yarnrc.yml", ".pypirc", ".pgpass",
    ".my.cnf", ".htpasswd", ".dockercfg", ".git-credentials", ".vault-token", ".boto", ".s3cfg",
    "credentials", "credentials.*", "credential.*", "secrets", "secrets.*", "secret.*",
    "*secret*.json", "*secret*.yml", "*secret*.yaml", "*secret*.toml", "service-account*.json",
    "*.tfstate", "*.tfstate.*", "*.tfvars", "kubeconfig", "*.kubeconfig", "auth.json", "auth.toml",
    "token", "token.json", "tokens.json", "*.token", "master.key", "*.ovpn", "shadow", "gshadow",
    ".bash_history", ".zsh_history", ".python_history", "cookies.sqlite", "login data",
)  # fmt: skip
"""Names whose files mostly hold keys, passwords or tokens; `*` as in a shell."""
_SAMPLES: Final = (
    ".env", ".env.local", ".netrc", ".npmrc", ".pypirc", ".pgpass", ".git-credentials", "id_rsa",
    "id_ecdsa", "id_ed25519", "credentials", "secrets",
)  # fmt: skip
_ENDINGS: Final = (".pem", ".key", ".p12", ".pfx", ".env", ".tfstate", ".tfvars", ".kdbx", ".gpg")
"""Names and endings that a pattern of a shell is held against."""
_SECRET_FOLDERS: Final = frozenset(
    {".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store"}
)
"""All in these counts as secret."""
SECRET_GLOBS: Final = (*_SECRET_NAMES, *(f"{name}/**" for name in sorted(_SECRET_FOLDERS)))
"""All of them as patterns, for a look that somebody else takes."""
_PATTERN_FOLDERS: Final = (*sorted(_SECRET_FOLDERS), ".git")
"""Folders that no pattern may look into: git's holds a file with passwords too."""
_SECRET_PLACE: Final = re.compile(
    r"(.*/)?(\.git/(config|credentials)|\.config/(gh|gcloud)(/.*)?|(self|[0-9]+|thread-self)/"
    r"(environ|mem|maps|auxv|root|cwd|fd|task)(/.*)?|dev/(mem|kmem|port|sd.*|nvme.*|disk/.*))"
)
"""Whole paths, as the end of one: git's and others' own, other processes, raw disks."""
_HARMLESS: Final = re.compile(
    r"(.*[._-])?(example|sample|template|dist)([._-].*)?|.*\.pub|(token|secrets?|credentials?)\."
    r"(py|pyi|ts|tsx|js|mjs|go|rs|java|rb|c|h|cpp|md|rst|html|css)"
)
"""Names of this shape show what a secret would look like, or are code about secrets."""
_CONTROL: Final = re.compile(
    r"(.*/)?(\.towline(/.*)?|\.mcp\.json|towline/(permissions\.toml|config\.toml|projects(/.*)?))"
)
"""Files that say what is allowed, or that start programs once their folder is trusted."""
_HOOKS: Final = re.compile(r"(.*/)?(\.git(/.*)?|\.gitmodules|\.husky(/.*)?)")
"""What git runs, or takes the names of programs from."""


def _fold(path: str) -> str:
    """A path as any file system may see it: no case, one form of each letter, no empty segment."""
    text = path.lower()
    if not path.isascii():
        shown = "".join(sign for sign in path if unicodedata.category(sign) != "Cf")  # as on HFS+
        text = unicodedata.normalize("NFKC", shown).casefold()
    return re.sub(r"/(\.?/)+", "/", text).removeprefix("./").rstrip("/")


@functools.cache
def _secret_name() -> re.Pattern[str]:
    """All secret names as one pattern, made when a path is first judged."""
    shapes = (re.escape(name).replace(r"\*", ".*") for name in _SECRET_NAMES)
    return re.compile("|".join(shapes), re.DOTALL)


def is_secret(path: str) -> bool:
    """Whether a file most likely holds a secret, by its name or its place (A5.67)."""
    folded = _fold(path)
    *folders, name = folded.split("/")
    if _SECRET_PLACE.fullmatch(folded) is not None:
        return True
    if _HARMLESS.fullmatch(name) is not None:
        return False
    if name in _SECRET_FOLDERS or not _SECRET_FOLDERS.isdisjoint(folders):
        return True
    return _is_secret_name(name)


@functools.lru_cache(maxsize=4096)  # folders are full of the same names
def _is_secret_name(name: str) -> bool:
    return _secret_name().fullmatch(name) is not None


def may_be_secret(pattern: str) -> bool:
    """Whether a pattern of a shell may name a secret file, and is no mere `*`."""
    *folders, name = pattern.split("/")
    if is_secret(pattern) or any(_may_be(folder, _PATTERN_FOLDERS) for folder in folders):
        return True
    return _may_be(name, _SAMPLES) or _may_be(f"*{_ending(name)}", _ENDINGS)


def _ending(name: str) -> str:
    """What follows a name's last dot, with it; nothing that no letter of it is certain of."""
    dot, ending = name.rpartition(".")[1:]
    return f"{dot}{ending}" if dot and ending.strip("*?") else ""


def _may_be(pattern: str, names: Sequence[str]) -> bool:
    """Whether a pattern that is no mere `*` fits one of the names; `[…]` may be any letters."""
    if not pattern.strip("*?"):
        return False
    wide = re.sub(r"\[.*\]", "*", pattern, flags=re.DOTALL)
    shape = re.escape(wide).replace(r"\*", ".*").replace(r"\?", ".")
    return any(re.fullmatch(shape, name, re.DOTALL | re.IGNORECASE) for name in names)


def is_control(path: str) -> bool:
    """Whether a file decides what is allowed or what is started (A5.54)."""
    return _CONTROL.fullmatch(_fold(path)) is not None


def is_hook(path: str) -> bool:
    """Whether git runs what stands in a file, or programs that it names."""
    return _HOOKS.fullmatch(_fold(path)) is not None


def path_part(
    subject: str,
    *,
    effect: str,
    also: tuple[str, ...] = (),
    grants: tuple[str, ...] = (),
    caution: str | None = None,
) -> Part:
    """The part of a call that touches a path, with what calls for caution about it.

    Args:
        subject: The real path, links followed: relative to the root, absolute when it lies outside.
        effect: `read` or `write`.
        also: Its other names: the path as it was written, a secret file that is the same one.
        grants: Real, absolute paths outside the root that it reaches once it is allowed.
        caution: A caution of the caller's own, told when there is no graver one.
    """
    names = (subject, *also)
    firm = effect != "read" and any(is_control(name) for name in names)
    found = caution
    if firm:
        found = f"{subject!r} decides what is allowed in this project, or what is started."
    elif any(is_secret(name) for name in names):
        found = _tell_secret(subject, next(name for name in names if is_secret(name)))
    elif effect != "read" and any(is_hook(name) for name in names):
        found = f"git runs what stands in {subject!r}."
    elif subject.startswith("/"):
        found = f"{subject!r} lies outside the folder."
    return Part(
        subject=subject,
        kind="path",
        effect=effect,
        caution=found,
        firm=firm,
        also=also,
        grants=grants,
    )


def _tell_secret(subject: str, name: str) -> str:
    known = "" if name == subject else f": it is also called {name!r}"
    return f"{subject!r} may hold secrets{known}."
