"""The browser of this machine."""

import contextlib
import os
import sys
import threading
import webbrowser
from collections.abc import Mapping

__all__ = ["open_browser"]


def open_browser(url: str, environ: Mapping[str, str] = os.environ) -> None:
    """Open a page in the browser of this machine, if somebody sits at a screen of it.

    Where nobody does, `webbrowser` would start a browser in the terminal, over our own words.
    """
    screens = ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    if sys.platform == "darwin" or any(environ.get(name) for name in screens):
        # some browsers keep the one who opened them waiting
        threading.Thread(target=_open, args=(url,), daemon=True).start()


def _open(url: str) -> None:
    with contextlib.suppress(webbrowser.Error, OSError):  # the page is printed too
        webbrowser.open(url)
