"""Takes the two pictures of the manifest: of `npm run fixtures`, in a Chromium on the path.

Run it with the Python of the workspace, `.venv/bin/python web/scripts/screenshots.py`, when the
page looks different; what a store shows of an app need not be the same to the pixel.
"""

import contextlib
import functools
import shutil
import sys
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from playwright.sync_api import sync_playwright

WEB: Final = Path(__file__).parents[1]
"""The folder of the page's sources."""
SHOTS: Final = {
    "narrow": ("asking", 390, 844, 1.5),
    "wide": ("chat", 1280, 800, 1),
}
"""Name to state, width, height and pixels of a point."""
_FONTS_MS: Final = 2_500  # all that is loaded later is there, and nothing moves any more


class _Quiet(SimpleHTTPRequestHandler):
    def log_request(self, code: object = "-", size: object = "-") -> None:
        del code, size


@contextlib.contextmanager
def _served(folder: Path) -> Iterator[str]:
    handler = functools.partial(_Quiet, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def main() -> None:
    """Take them."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    fixtures = WEB / "dist-fixtures"
    if chromium is None or not fixtures.is_dir():
        sys.exit("This needs a Chromium on the path, and `npm run fixtures` before it.")
    target = WEB / "public" / "screenshots"
    target.mkdir(exist_ok=True)
    with _served(fixtures) as address, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (state, width, height, scale) in SHOTS.items():
            page = browser.new_page(
                viewport={"width": width, "height": height}, device_scale_factor=scale
            )
            page.goto(f"{address}/?fixture={state}")
            page.wait_for_timeout(_FONTS_MS)
            page.screenshot(path=target / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
