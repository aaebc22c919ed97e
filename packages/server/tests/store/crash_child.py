"""Appends to a store until it kills itself at one commit: `crash_child.py FOLDER PHASE NUMBER`."""

import asyncio
import os
import signal
import sys
from pathlib import Path

from towline_protocol import SessionId
from towline_server.store.event_store import append_and_wait
from towline_server.store.records import Append, SessionRow, StoredRow
from towline_server.store.sqlite_store import open_store

SESSION = SessionId("ses_1")


async def main(folder: Path, phase: str, number: int) -> None:
    commits = 0

    def hook(now: str, _: tuple[Append, ...]) -> None:
        nonlocal commits
        commits += now == "before"
        if now == phase and commits == number:
            os.kill(os.getpid(), signal.SIGKILL)

    store = await open_store(folder, mint=lambda prefix: f"{prefix}_1", on_commit=hook)
    for first in range(1, 100, 2):
        rows = tuple(StoredRow(first + n, None, 0, b"{}") for n in (0, 1))
        row = SessionRow(
            id=SESSION,
            user="me",
            agent="a",
            model="a/b",
            mode="ask",
            created_ms=0,
            updated_ms=first,
        )
        batch = Append(session=SESSION, first_seq=first, rows=rows, summary=row)
        await append_and_wait(store, batch)
        sys.stdout.write(f"{rows[-1].seq}\n")
        sys.stdout.flush()


asyncio.run(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
