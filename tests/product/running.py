"""The product as a person runs it: `towline up` with an empty home and the real local model."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
import unittest
from collections.abc import Generator
from dataclasses import dataclass
from pathlib import Path

from towline.local.testing import require_model

START_S = 60.0
"""A start takes two seconds; this allows for a busy machine."""
MODEL_S = 300.0
"""Loading and warming the model takes about 15 s on two idle cores."""

LONG_S = 240.0
"""A turn of the local model: some 20 s on two idle cores."""

NOTES = "The secret word is lighthouse.\n"
POEM = """\
Slowly the rope goes out to the sea,
quietly holding what used to be free.
Waves may be many and weather be rough,
one little line will be holding enough.
Morning will find it and evening will too,
steady and patient between me and you.
"""


@dataclass
class Product:
    """A running `towline up`."""

    process: subprocess.Popen[bytes]
    home: Path
    root: Path
    url: str
    link: str
    token: str
    environ: dict[str, str]
    said: list[str]

    def wait_for(self, text: str, timeout_s: float) -> None:
        """Read what it prints until a line holds the text."""
        until = time.monotonic() + timeout_s
        while not any(text in line for line in self.said):
            line = _read_line(self.process, until)
            assert line, f"`towline up` ended or fell silent; it said: {self.said!r}"
            self.said.append(line)


def _read_line(process: subprocess.Popen[bytes], until: float) -> str:
    """One line, or nothing when none comes in time. Unbuffered: `select` sees what is there."""
    assert process.stdout is not None
    line = b""
    while not line.endswith(b"\n"):
        left_s = until - time.monotonic()
        ready, _, _ = select.select([process.stdout], [], [], max(0.0, left_s))
        byte = process.stdout.read(1) if ready else b""
        if not byte:
            break
        line += byte
    return line.decode(errors="replace")


def require_chromium() -> str:
    """The path of the system's Chromium; without it the test is skipped, or fails where it must be.

    Raises:
        unittest.SkipTest: There is none, and `TOWLINE_REQUIRE` does not name it.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is not None:
        return found
    sentence = "NO CHROMIUM on the path: apt-get install chromium"
    if "chromium" in os.environ.get("TOWLINE_REQUIRE", "").split(","):
        raise AssertionError(sentence)
    raise unittest.SkipTest(sentence)


@contextlib.contextmanager
def start_product(home: Path, root: Path, *arguments: str) -> Generator[Product]:
    """Run `towline up` until the block ends."""
    environ = {
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        "TOWLINE_HOME": str(home / "towline"),
        "TOWLINE_MODEL_DIR": str(require_model().parent),
        **{name: os.environ[name] for name in os.environ if name.startswith("SSL_")},
    }
    process = subprocess.Popen(
        [sys.executable, "-m", "towline", "up", "--port", "0", *arguments],
        cwd=root,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        bufsize=0,
    )
    product = Product(process, home, root, "", "", "", environ, [])
    try:
        product.wait_for("#code=", START_S)
        product.link = next(line for line in product.said if "#code=" in line).split()[-1]
        found = json.loads((home / "towline" / "run.json").read_text())
        product.url, product.token = found["url"], found["token"]
        product.wait_for("small and can be wrong", MODEL_S)
        yield product
    finally:
        process.send_signal(signal.SIGINT)
        try:
            process.wait(timeout=60)
        finally:
            process.kill()
            assert process.stdout is not None
            process.stdout.close()
