"""What is said of a server that others on a network reach without encryption."""

from pathlib import Path

import pytest

from towline.cli.environment import check_environment
from towline.cli.exposure import warn_of_plain_http
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
