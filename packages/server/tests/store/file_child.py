"""Uploads a file and kills itself at one commit: `file_child.py FOLDER PHASE NUMBER`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from towline_server.sessions.files import Files
from towline_server.store.attachments import PIECE_BYTES
from towline_server.store.records import Append
from towline_server.store.sqlite_store import open_store


async def main(folder: Path, phase: str, number: int) -> None:
    commits = 0

    def hook(now: str, _: tuple[Append, ...]) -> None:
        nonlocal commits
        commits += now == "before"
        if now == phase and commits == number:
            os.kill(os.getpid(), signal.SIGKILL)

    store = await open_store(folder, mint=lambda prefix: f"{prefix}_1", on_commit=hook)
    row = await Files(store, lambda: 0).add("me", b"x" * (2 * PIECE_BYTES + 5))
    sys.stdout.write(f"{row.file}\n{commits}\n")


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
