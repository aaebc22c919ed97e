"""Where a vendor is asked, out of the environment and what a person has named."""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from towline_agent.providers.address import is_loopback
from towline_agent.providers.vendors import Vendor
from towline_protocol import UsageError

__all__ = ["named_url", "vertex_url"]

_PROJECT_SETTINGS: Final = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT")
_LOCATION_SETTINGS: Final = ("GOOGLE_CLOUD_LOCATION", "GOOGLE_VERTEX_LOCATION")
_ANYWHERE: Final = "global"


def named_url(vendor: Vendor, env: Mapping[str, str], given: str | None = None) -> str | None:
    """The address that a person names instead of the vendor's own; `None` for none.

    One without a scheme is asked with TLS, or without on this machine. Ollama's setting is often a
    bare `0.0.0.0:11434`, the address where it listens. An Azure resource is asked at its
    `/openai/v1`, whichever of its addresses is named.

    Args:
        vendor: The vendor.
        env: Where its setting is looked up.
        given: An address that goes before the setting.
    """
    value = (given or env.get(vendor.url_setting or "", "")).strip()
    if not value:
        return None
    if "://" not in value:
        plain = vendor.local or is_loopback(_host(value))
        value = f"http://{value}" if plain else f"https://{value}"
    if vendor.local:
        return value.replace("://0.0.0.0", "://127.0.0.1", 1)
    return _azure(value) if vendor.name == "azure" else value


def vertex_url(env: Mapping[str, str], project: str | None) -> str:
    """Where a project's models of Vertex AI lie.

    Args:
        env: Names the location, else `global`, and the project when the credential does not.
        project: The project of a pasted `token|project` (A2.72).

    Raises:
        UsageError: Nobody names the project.
    """
    project = project or _first(env, _PROJECT_SETTINGS)
    if not project:
        raise UsageError(
            f"Vertex AI needs a project; set {_PROJECT_SETTINGS[0]}, or give the token as "
            "TOKEN|PROJECT."
        )
    location = _first(env, _LOCATION_SETTINGS) or _ANYWHERE
    region = "" if location == _ANYWHERE else f"{location}-"
    return f"https://{region}aiplatform.googleapis.com/v1/projects/{project}/locations/{location}"


def _host(address: str) -> str:
    try:
        return urlsplit(f"//{address}").hostname or ""
    except ValueError:  # no address at all: the first step says so
        return ""


def _azure(url: str) -> str:
    try:
        parts = urlsplit(url)
    except ValueError:  # no address at all: the first step says so
        return url
    path = parts.path.rstrip("/")
    if path in ("", "/openai") or path.startswith("/openai/deployments"):
        path = "/openai/v1"
    return f"{parts.scheme}://{parts.netloc}{path}"


def _first(env: Mapping[str, str], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if (value := env.get(name, "").strip())), None)
