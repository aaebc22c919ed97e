"""A package index on loopback that has one package, for the task that adds it."""

import contextlib
import json
import threading
from collections.abc import Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from typing_extensions import override

__all__ = ["open_index"]

_KIND: Final = "application/vnd.pypi.simple.v1+json"
_PAGES: Final[dict[str, dict[str, Any]]] = {
    "/simple/slugline/": {
        "meta": {"api-version": "1.0"},
        "name": "slugline",
        "files": [
            {
                "filename": f"slugline-{version}-py3-none-any.whl",
                "url": f"/files/slugline-{version}-py3-none-any.whl",
                "hashes": {},
                "requires-python": ">=3.9",
            }
            for version in ("1.4.2", "2.0.0", "2.1.0", "3.0.0rc1")
        ],
    }
}


class _Answer(BaseHTTPRequestHandler):
    @override
    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        page = _PAGES.get(self.path)
        body = json.dumps(page).encode()
        self.send_response(404 if page is None else 200)
        self.send_header("Content-Type", _KIND)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextlib.contextmanager
def open_index() -> Generator[str]:
    """Run the index; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answer) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple"
        finally:
            server.shutdown()
            thread.join()
