"""The settings that people turn (D3): a TOML file, then the environment, then flags.

Everything else is a constant. Where the file and the data folder lie is the program's business;
here they are arguments.
"""

import difflib
import ipaddress
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, cast

import msgspec

from towline_protocol import UsageError

__all__ = ["CONFIG_KEYS", "ENVIRONMENT_PREFIX", "Config", "load_config"]

ENVIRONMENT_PREFIX: Final = "TOWLINE_"
"""`TOWLINE_PORT` sets `port`, and so on. Other variables with this prefix are not ours to judge."""

_MOST_SESSIONS: Final = 10_000  # each has its place in memory
_LONGEST_WINDOW_S: Final = 7 * 24 * 3600  # a week: a longer wait is a mistyped number


class Config(msgspec.Struct, frozen=True, kw_only=True):
    """The settings of one server; checked, so that nobody has to check them again."""

    commands: Path | None = None
    """The folder of the user's own commands, beside `config.toml`; not a key."""
    rules_file: Path | None = None
    """The user's own permission rules, beside `config.toml`; not a key."""
    data_dir: Path
    """The folder that holds the store; made when missing."""
    host: str = "127.0.0.1"
    """The address to listen at."""
    port: int = 4747
    """The port to listen at; 0 for any free one."""
    roots: tuple[Path, ...] = ()
    """The folders an agent may work in; absolute (D2)."""
    model: str | None = None
    """`provider/model` of new sessions; `None` to choose by what is there."""
    fallbacks: tuple[str, ...] = ()
    """`provider/model` of those that are asked when a session's own cannot serve (A3.35)."""
    mode: str = "ask"
    """The mode of new sessions where the project has none: `ask`, `accept_edits`, `auto` or
    `plan`."""
    permission_window_s: float = 120.0
    """Seconds until a permission nobody answers is denied (C5.9)."""
    permission_window_away_s: float = 1800.0
    """The same, and for questions too, once somebody was called from elsewhere (C5.9)."""
    orphan_turn: str = "continue"
    """What becomes of a turn that nobody watches: `continue` or `interrupt` (C5.13)."""
    orphan_turn_s: float = 60.0
    """Seconds without a reader after which `interrupt` does so."""
    live_sessions: int = 8
    """Sessions of a user that may run, wait for a person or be read at once (C6)."""
    daily_cost: float | None = None
    """US dollars that each user's day (UTC) may cost, as far as prices are known; `None` for no
    bound."""
    sandbox: str = "auto"
    """Where agents' programs run (A5.21): `auto` in a sandbox if there is one, `off` in none,
    `required` in one or not at all."""
    server_name: str = "towline"
    """What the server calls itself on screens."""
    hosts: tuple[str, ...] = ()
    """Names beside its own that the server is reached by, such as one that a proxy serves."""
    url: str | None = None
    """The address that links name, such as `https://desk.example.org`, when it is another one than
    is listened at; its name counts as one of `hosts`."""
    proxies: tuple[str, ...] = ("127.0.0.1", "::1")
    """Addresses of reverse proxies, whose word counts on where a request comes from."""
    origins: tuple[str, ...] = ()
    """Pages of other sites that may call this server: `scheme://host[:port]` each (C2.8), or `*`
    for any that comes with a token of its own."""
    push_subject: str | None = None
    """Whom push services may write to about this server: `mailto:` or `https:`; `None` for the
    address of the page that a device subscribes on (C7.1)."""
    push_text: bool = False
    """Whether notifications hold the agent's own words: a request's title, a question, the first
    sentence of an answer. They pass through the browser's push service, encrypted (C7.1)."""
    trusts_client_effects: bool = False
    """Whether the effect counts that a client declares of a tool of its own; else each is `write`
    (C5.12)."""
    tools: tuple[str, ...] = ()
    """Tools beside the ones that are there: `pkg.module:name` adds what stands there, `-NAME`
    switches a set off (A4.63, A4.64)."""


class _Key(msgspec.Struct, frozen=True):
    check: Callable[[Any], object]  # gives the value to keep; ValueError when it is not allowed
    allowed: str  # ends the sentence "allowed: …"
    from_text: Callable[[str], object] = str  # how the environment and flags write it


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value.strip()


def _one_of(*words: str) -> Callable[[Any], str]:
    def check(value: Any) -> str:
        if value not in words:
            raise ValueError
        return cast("str", value)

    return check


def _model(value: Any) -> str:
    provider, slash, model = _text(value).partition("/")
    if not (provider and slash and model):
        raise ValueError
    return _text(value)


def _models(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - the caller makes one sentence of all of these
    return tuple(_model(item) for item in cast("list[Any]", value))


def _port(value: Any) -> int:
    if type(value) is not int or not 0 <= value <= 65535:  # `True` is no port
        raise ValueError
    return value


def _window(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError  # noqa: TRY004 - the caller makes one sentence of all of these
    if not 1 <= value <= _LONGEST_WINDOW_S:
        raise ValueError
    return float(value)


def _sessions(value: Any) -> int:
    if type(value) is not int or not 1 <= value <= _MOST_SESSIONS:
        raise ValueError
    return value


def _dollars(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < math.inf:
        raise ValueError
    return float(value)


def _switch(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError  # noqa: TRY004 - as above
    return value


def _folder(value: Any) -> Path:
    try:
        path = Path(_text(value)).expanduser()
    except RuntimeError as error:  # `~nobody`, or no home at all
        raise ValueError from error
    if not path.is_absolute():
        raise ValueError
    return path


def _folders(value: Any) -> tuple[Path, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - as above
    return tuple(_folder(item) for item in cast("list[Any]", value))


def _tools(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - as above
    entries = tuple(_text(item) for item in cast("list[Any]", value))
    if not all(map(_TOOL.fullmatch, entries)):
        raise ValueError
    return entries


def _origins(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - as above
    entries = tuple(_text(item).lower() for item in cast("list[Any]", value))
    if not all(map(_ORIGIN.fullmatch, entries)):
        raise ValueError
    return entries


def _hosts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - as above
    entries = tuple(_text(item).lower() for item in cast("list[Any]", value))
    if not all(map(_HOST.fullmatch, entries)):
        raise ValueError
    return entries


def _url(value: Any) -> str:
    text = _text(value).rstrip("/")
    if not _URL.fullmatch(text):
        raise ValueError
    return text


def _subject(value: Any) -> str:
    text = _text(value)
    if not _SUBJECT.fullmatch(text):
        raise ValueError
    return text


def _addresses(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError  # noqa: TRY004 - as above
    entries = tuple(_text(item) for item in cast("list[Any]", value))
    for entry in entries:
        ipaddress.ip_network(entry)  # an address is a network of one
    return entries


def _read_switch(text: str) -> object:
    return {"true": True, "false": False}.get(text.strip().lower(), text)


def _split_list(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _split_paths(text: str) -> list[str]:
    return [part for part in text.split(os.pathsep) if part]


_HOST: Final = re.compile(r"[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?|[0-9a-f:]*:[0-9a-f:.]*")
_URL: Final = re.compile(r"https?://(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?")
_SUBJECT: Final = re.compile(
    r"mailto:[^\s@<>]+@[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+"
    r"|https://[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+(?:[:/]\S*)?"
)
_ORIGIN: Final = re.compile(r"\*|[a-z][a-z0-9+.-]*://[^\s/,*]+")
_TOOL: Final = re.compile(r"-\S+|[\w.]+:[\w.]+")
_SECONDS: Final = f"a number of seconds from 1 to {_LONGEST_WINDOW_S}"

_MODES: Final = ("ask", "accept_edits", "auto", "plan")
"""Those of the agent, which is slow to import for whoever only reads settings."""

_KEYS: Final[dict[str, _Key]] = {
    "data_dir": _Key(_folder, "an absolute folder, or one that starts with ~"),
    "host": _Key(_text, "an address or host name, such as '127.0.0.1' or '0.0.0.0'"),
    "port": _Key(_port, "a whole number from 0 (any free port) to 65535", int),
    "roots": _Key(_folders, "a list of absolute folders, or ones that start with ~", _split_paths),
    "model": _Key(_model, "'provider/model', such as 'openai/gpt-5'"),
    "fallbacks": _Key(_models, "a list of 'provider/model'", _split_list),
    "mode": _Key(_one_of(*_MODES), ", ".join(map(repr, _MODES))),
    "permission_window_s": _Key(_window, _SECONDS, float),
    "permission_window_away_s": _Key(_window, _SECONDS, float),
    "orphan_turn": _Key(_one_of("continue", "interrupt"), "'continue' or 'interrupt'"),
    "orphan_turn_s": _Key(_window, _SECONDS, float),
    "live_sessions": _Key(_sessions, f"a whole number from 1 to {_MOST_SESSIONS}", int),
    "daily_cost": _Key(_dollars, "a number of US dollars above 0", float),
    "sandbox": _Key(_one_of("auto", "off", "required"), "'auto', 'off' or 'required'"),
    "server_name": _Key(_text, "some text"),
    "hosts": _Key(_hosts, "a list of names without ports, such as 'desk.example.org'", _split_list),
    "url": _Key(_url, "an address without a path, such as 'https://desk.example.org'"),
    "proxies": _Key(
        _addresses,
        "a list of addresses or networks, such as '10.0.0.2' or '10.0.0.0/8'",
        _split_list,
    ),
    "origins": _Key(
        _origins, "a list of origins such as 'https://app.example.org', or ['*']", _split_list
    ),
    "push_subject": _Key(
        _subject, "'mailto:' and an address, or an https address, such as 'mailto:you@example.org'"
    ),
    "push_text": _Key(_switch, "true or false", _read_switch),
    "trusts_client_effects": _Key(_switch, "true or false", _read_switch),
    "tools": _Key(
        _tools,
        "a list of 'pkg.module:name', which adds tools, and '-NAME', which switches a set off",
        _split_list,
    ),
}

CONFIG_KEYS: Final = tuple(sorted(_KEYS))
"""The names of all keys: fields of `Config`, keys of the file, and behind `TOWLINE_`."""


def load_config(
    file: Path,
    environ: Mapping[str, str],
    *,
    data_dir: Path,
    flags: Mapping[str, str] | None = None,
) -> Config:
    """The settings out of all sources; a flag beats the environment, which beats the file.

    Args:
        file: The `config.toml`; it need not exist.
        environ: The environment.
        data_dir: The data folder when no source names one.
        flags: Key to text, as given on a command line.

    Raises:
        UsageError: A source holds an unknown key or a value that is not allowed, or the file is
            no TOML. The message names the source, the key, the value and what is allowed.
    """
    values: dict[str, object] = {
        "data_dir": data_dir,
        "commands": file.parent / "commands",
        "rules_file": file.parent / "permissions.toml",
    }
    for key, value in _read_file(file).items():
        values[key] = _checked(key, value, f"{key!r} in {str(file)!r}")
    for key in CONFIG_KEYS:
        name = f"{ENVIRONMENT_PREFIX}{key.upper()}"
        text = environ.get(name, "")
        if text:  # an empty variable counts as unset, as in a shell
            values[key] = _checked(key, _typed(key, text), f"the environment variable {name!r}")
    for key, text in (flags or {}).items():
        values[key] = _checked(key, _typed(key, text), f"the option --{key.replace('_', '-')}")
    return Config(**cast("dict[str, Any]", values))


def _read_file(file: Path) -> dict[str, Any]:
    try:
        found = tomllib.loads(file.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(
            f"{str(file)!r} is not TOML: {error}. Correct that place, or move the file away."
        ) from error
    except OSError as error:
        raise UsageError(
            f"{str(file)!r} cannot be read ({error.strerror}): make it a readable file, or move it "
            "away."
        ) from error
    for key in found:
        if key not in _KEYS:
            raise UsageError(_unknown_key(key, file))
    return found


def _unknown_key(key: str, file: Path) -> str:
    near = difflib.get_close_matches(key, CONFIG_KEYS, n=1)
    hint = f"Did you mean {near[0]!r}? " if near else ""
    return f"Unknown key {key!r} in {str(file)!r}. {hint}Known keys: {', '.join(CONFIG_KEYS)}."


def _typed(key: str, text: str) -> object:
    """The text as the file would have it; as it stands when it cannot be read so."""
    try:
        return _KEYS[key].from_text(text)
    except ValueError:
        return text


def _checked(key: str, value: object, where: str) -> object:
    row = _KEYS[key]
    try:
        return row.check(value)
    except ValueError as error:
        raise UsageError(
            f"{where[0].upper()}{where[1:]} is {value!r}; allowed: {row.allowed}."
        ) from error
