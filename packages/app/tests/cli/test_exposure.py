"""What is said of a server that others on a network reach without encryption."""

from pathlib import Path

import pytest

from towline.cli.environment import check_environment
from towline.cli.exposure import describe_phone, warn_of_plain_http
from towline.paths import find_paths
from towline_server import Config


@pytest.mark.parametrize(
    ("host", "url", "warned"),
    [
        ("127.0.0.1", None, False),
        ("::1", None, False),
        ("0.0.0.0", None, True),
        ("192.168.1.5", "http://desk.example.org", True),
        ("0.0.0.0", "https://desk.example.org", False),
    ],
)
def test_plain_http_on_a_network_is_warned_of(
    tmp_path: Path, host: str, url: str | None, *, warned: bool
) -> None:
    config = Config(data_dir=tmp_path / "data", host=host, port=0, url=url)
    assert (warn_of_plain_http(config) is not None) is warned
    environ = {
        "TOWLINE_HOME": str(tmp_path),
        "PYTHON_KEYRING_BACKEND": "keyring.backends.fail.Keyring",
    }
    found = list(check_environment(find_paths(environ), config, environ))
    said = [one.message for one in found if one.check == "network"]
    assert said == ([warn_of_plain_http(config)] if warned else [])


@pytest.mark.rules("W20")
@pytest.mark.parametrize(
    ("url", "said", "unsaid"),
    [
        ("http://127.0.0.1:4747", ["tailscale serve --bg 4747", "--host 0.0.0.0"], ["scan"]),
        ("http://192.168.1.5:4747", ["scan the picture", "same network", "no notif"], ["tailsc"]),
        ("https://desk.example.org", ["scan the picture", "install"], ["plain HTTP", "tailscale"]),
    ],
)
def test_a_start_says_how_a_phone_comes_in_and_what_it_lacks_over_plain_http(
    url: str, said: list[str], unsaid: list[str]
) -> None:
    lines = describe_phone(url, 4747, drawn=True)
    text = "\n".join(lines)
    assert [part for part in said if part not in text] == []
    assert [part for part in unsaid if part in text] == []
    assert max(map(len, lines)) <= 108


def test_what_was_not_drawn_is_not_to_be_scanned() -> None:
    assert "scan" not in "".join(describe_phone("https://desk.example.org", 4747, drawn=False))
