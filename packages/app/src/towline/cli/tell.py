"""Telling the server of this user that keys have changed."""

import os
import urllib.request
from collections.abc import Mapping

from towline.cli.attach import find_server
from towline.paths import find_paths
from towline_protocol import OPERATIONS

__all__ = ["tell_server"]

_LIMIT_S = 30.0


def tell_server(
    provider: str, environ: Mapping[str, str] = os.environ, *, removed: bool = False
) -> str:
    """Let a server that runs look anew at what is kept for a provider.

    Args:
        provider: The provider.
        environ: Says where the server is.
        removed: Whether something was taken away, not kept.

    Returns:
        What a person should know, in one sentence; empty when no server of theirs runs.
    """
    server = find_server(find_paths(environ).run_file)
    if server is None:
        return ""
    row = OPERATIONS["change_provider"]
    headers = {"authorization": f"Bearer {server.token}", "content-type": "application/json"}
    url = f"{server.url}{row.path.replace('{provider}', provider)}"
    asked = urllib.request.Request(url, b"{}", headers, method=row.method)  # noqa: S310 - our own
    try:
        with urllib.request.urlopen(asked, timeout=_LIMIT_S):  # noqa: S310 - as above
            what = "no longer uses it" if removed else "uses it"
            return f"The server that runs {what} from its next request on."
    except OSError:  # an answer that refuses is one too
        return "The server that runs sees this at its next start."
