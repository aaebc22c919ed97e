"""Settings out of the file, the environment and flags, and sentences for what is wrong."""

import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from towline_protocol import UsageError
from towline_server.config import CONFIG_KEYS, Config, load_config


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def _load(file: Path, **environ: str) -> Config:
    return load_config(file, environ, data_dir=Path("/data"))


def _beside(file: Path) -> dict[str, Any]:
    """What stands beside the file, which no key names."""
    return {"commands": file.parent / "commands", "rules_file": file.parent / "permissions.toml"}


def test_without_any_source_the_defaults_stand(file: Path) -> None:
    config = _load(file)
    assert config == Config(data_dir=Path("/data"), **_beside(file))
    assert (config.host, config.port, config.mode) == ("127.0.0.1", 4747, "ask")
    assert config.permission_window_s == 120


def test_every_key_can_be_set_in_the_file(file: Path) -> None:
    file.write_text("""
        data_dir = "/srv/towline"
        host = "::1"
        port = 0
        roots = ["/code", "/notes"]
        model = "openai/gpt-5"
        mode = "auto"
        permission_window_s = 30
        permission_window_away_s = 600
        orphan_turn = "interrupt"
        orphan_turn_s = 20
        sandbox = "required"
        server_name = "desk"
        tools = ["my_tools.weather:all", "-coding"]
        trusts_client_effects = true
        live_sessions = 3
        daily_cost = 2
        fallbacks = ["openai/gpt-5", "local/x"]
        hosts = ["Desk.Example.org", "fd00::1"]
        url = "https://desk.example.org/"
        proxies = ["10.0.0.2", "fd00::/8"]
        origins = ["https://App.example.org", "capacitor://localhost", "*"]
    """)
    assert _load(file) == Config(
        **_beside(file),
        data_dir=Path("/srv/towline"),
        host="::1",
        port=0,
        roots=(Path("/code"), Path("/notes")),
        model="openai/gpt-5",
        mode="auto",
        permission_window_s=30,
        permission_window_away_s=600,
        orphan_turn="interrupt",
        orphan_turn_s=20,
        sandbox="required",
        server_name="desk",
        tools=("my_tools.weather:all", "-coding"),
        trusts_client_effects=True,
        live_sessions=3,
        daily_cost=2.0,
        fallbacks=("openai/gpt-5", "local/x"),
        hosts=("desk.example.org", "fd00::1"),
        url="https://desk.example.org",
        proxies=("10.0.0.2", "fd00::/8"),
        origins=("https://app.example.org", "capacitor://localhost", "*"),
    )
    assert {*CONFIG_KEYS, *_beside(file)} == set(Config.__struct_fields__)


def test_the_environment_beats_the_file_and_a_flag_beats_both(file: Path) -> None:
    file.write_text('port = 1\nhost = "a"\nmode = "ask"\n')
    environ = {"TOWLINE_PORT": "2", "TOWLINE_HOST": "b", "TOWLINE_MODE": ""}
    config = load_config(file, environ, data_dir=Path("/data"), flags={"port": "3"})
    assert (config.port, config.host, config.mode) == (3, "b", "ask")


def test_the_environment_writes_numbers_and_lists_as_text(file: Path) -> None:
    config = _load(
        file,
        TOWLINE_ROOTS=os.pathsep.join(("/a", "/b")),
        TOWLINE_PERMISSION_WINDOW_S="2.5",
        TOWLINE_DATA_DIR="/elsewhere",
        TOWLINE_TOOLS="mine.tools:all, -coding,",
        TOWLINE_FALLBACKS="a/b, c/d",
        TOWLINE_TRUSTS_CLIENT_EFFECTS="True",
        TOWLINE_REQUIRE="not ours",
    )
    assert config.roots == (Path("/a"), Path("/b"))
    assert config.permission_window_s == 2.5
    assert config.data_dir == Path("/elsewhere")
    assert config.tools == ("mine.tools:all", "-coding")
    assert config.fallbacks == ("a/b", "c/d")
    assert config.trusts_client_effects is True


def test_a_tilde_is_the_home(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/somebody")
    file.write_text('roots = ["~/code"]\n')
    assert _load(file).roots == (Path("/somebody/code"),)


@pytest.mark.parametrize(
    ("line", "value", "allowed"),
    [
        ("port = 70000", "70000", "0 (any free port) to 65535"),
        ("port = true", "True", "0 (any free port) to 65535"),
        ('port = "80"', "'80'", "0 (any free port) to 65535"),
        ('roots = ["code"]', "['code']", "absolute folders"),
        ('roots = "/code"', "'/code'", "a list of absolute folders"),
        ('roots = ["~nobody-at-all/x"]', "['~nobody-at-all/x']", "absolute folders"),
        ('model = "gpt"', "'gpt'", "'provider/model'"),
        ('model = "/gpt"', "'/gpt'", "'provider/model'"),
        ('mode = "yolo"', "'yolo'", "'ask', 'accept_edits', 'auto', 'plan'"),
        ('orphan_turn = "stop"', "'stop'", "'continue' or 'interrupt'"),
        ("orphan_turn_s = 0", "0", "a number of seconds from 1 to"),
        ('origins = ["app.example.org"]', "['app.example.org']", "a list of origins such as"),
        ('origins = ["https://a/b"]', "['https://a/b']", "a list of origins such as"),
        ('origins = "*"', "'*'", "a list of origins such as"),
        ("permission_window_s = 0", "0", "a number of seconds from 1 to"),
        ("permission_window_s = nan", "nan", "a number of seconds from 1 to"),
        ("permission_window_s = true", "True", "a number of seconds from 1 to"),
        ('host = " "', "' '", "an address or host name"),
        ('fallbacks = ["gpt"]', "['gpt']", "a list of 'provider/model'"),
        ('hosts = "desk"', "'desk'", "a list of names without ports"),
        ('hosts = ["desk:4747"]', "['desk:4747']", "a list of names without ports"),
        ('hosts = ["*"]', "['*']", "a list of names without ports"),
        ('url = "desk.example.org"', "'desk.example.org'", "an address without a path"),
        ('url = "https://desk/x"', "'https://desk/x'", "an address without a path"),
        ('proxies = ["desk"]', "['desk']", "a list of addresses or networks"),
        ('proxies = "::1"', "'::1'", "a list of addresses or networks"),
        ("trusts_client_effects = 1", "1", "true or false"),
        ('tools = "a:b"', "'a:b'", "a list of 'pkg.module:name'"),
        ('tools = ["weather"]', "['weather']", "'-NAME', which switches a set off"),
    ],
)
def test_a_value_that_is_not_allowed_is_named_with_what_is(
    file: Path, line: str, value: str, allowed: str
) -> None:
    file.write_text(line)
    with pytest.raises(UsageError) as caught:
        _load(file)
    key = line.partition(" ")[0]
    assert caught.value.message.startswith(f"{key!r} in {str(file)!r} is {value}; allowed: ")
    assert allowed in caught.value.message


def test_a_bad_variable_and_a_bad_flag_are_named(file: Path) -> None:
    with pytest.raises(UsageError, match=r"^The environment variable 'TOWLINE_PORT' is 'x'; all"):
        _load(file, TOWLINE_PORT="x")
    with pytest.raises(
        UsageError, match=r"'TOWLINE_TRUSTS_CLIENT_EFFECTS' is 'yes'; allowed: true"
    ):
        _load(file, TOWLINE_TRUSTS_CLIENT_EFFECTS="yes")
    with pytest.raises(UsageError, match=r"^The option --permission-window-s is 0\.0; all"):
        load_config(file, {}, data_dir=Path("/data"), flags={"permission_window_s": "0"})


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("prot = 1", "Did you mean 'port'? "),
        ("[push]\nkey = 1", "data_dir, fallbacks, host, hosts, "),
    ],
)
def test_an_unknown_key_is_named_with_the_known_ones(file: Path, line: str, hint: str) -> None:
    file.write_text(line)
    with pytest.raises(UsageError, match=rf"^Unknown key '\w+' in {re.escape(repr(str(file)))}"):
        _load(file)
    with pytest.raises(UsageError, match=re.escape(hint)):
        _load(file)


@pytest.mark.parametrize("content", [b"port = \n", b"\xff\xfe", b"port"])
def test_a_file_that_is_no_toml_is_named(file: Path, content: bytes) -> None:
    file.write_bytes(content)
    with pytest.raises(UsageError, match=re.escape(f"{str(file)!r} is not TOML")):
        _load(file)


def test_a_file_that_cannot_be_read_is_named(file: Path) -> None:
    file.mkdir()
    with pytest.raises(UsageError, match="cannot be read"):
        _load(file)


def test_settings_cannot_be_changed_once_they_are_checked() -> None:
    config = Config(data_dir=Path("/data"))
    with pytest.raises(AttributeError):
        config.port = 1  # pyright: ignore[reportAttributeAccessIssue]
    assert msgspec.structs.replace(config, port=1).port == 1
