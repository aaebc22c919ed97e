"""Owns a store until its standard input ends: `lock_child.py FOLDER`."""

import asyncio
import sys
from pathlib import Path

from towline_server.store.sqlite_store import open_store


async def main(folder: Path) -> None:
    store = await open_store(folder, mint=lambda prefix: f"{prefix}_1")
    store.announce("http://127.0.0.1:4747")
    sys.stdout.write("mine\n")
    sys.stdout.flush()
    sys.stdin.read()
    await store.close()


asyncio.run(main(Path(sys.argv[1])))
