"""A program where the client alone is installed; see `test_alone.py`.

It fails when anything of a server can be imported or any module of the client cannot, then says
something to a server and prints the answer.
"""

import asyncio
import importlib
import importlib.abc
import importlib.machinery
import pkgutil
import sys
from collections.abc import Sequence
from types import ModuleType
from typing import Final

SERVER: Final = ("starlette", "uvicorn", "towline_server", "towline_agent", "towline")
"""What an app that only talks to a server must not need."""


class Fence(importlib.abc.MetaPathFinder):
    """Makes an environment with everything look like one with a few distributions."""

    def __init__(self, allowed: set[str]) -> None:
        self._allowed = allowed | sys.stdlib_module_names
        self._finders = [*sys.meta_path]

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """What the finders of before find, of what is allowed; the rest is not there."""
        if fullname.partition(".")[0] not in self._allowed:
            return None
        found = (finder.find_spec(fullname, path, target) for finder in self._finders)
        return next((spec for spec in found if spec is not None), None)


async def talk(url: str, code: str) -> str:
    """Pair, open a session, say something; gives the answer as the view shows it."""
    # Not before the fence stands.
    from towline_client import Client
    from towline_protocol import block_text

    async with Client(url) as client:
        await client.claim(code, name="alone")
        session = await client.open(None)
        answer = await session.ask("Is anybody there?")
        shown = block_text(session.view.messages[-1].content)
        await session.close()
    assert shown == answer, shown
    return answer


def import_all() -> int:
    """Import each module of the client; gives how many."""
    package = importlib.import_module("towline_client")
    names = [module.name for module in pkgutil.walk_packages(package.__path__, "towline_client.")]
    for name in names:
        importlib.import_module(name)
    return len(names)


def main() -> None:
    """Run with the server's address, a one-time code, and what may be imported: all, when none."""
    url, code, *allowed = sys.argv[1:]
    if allowed:
        sys.meta_path[:] = [Fence(set(allowed))]
    for name in SERVER:
        try:
            importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        raise SystemExit(f"{name} can be imported, so the client is not alone here")
    answer = asyncio.run(talk(url, code))
    assert import_all() > 1
    loaded = {name.partition(".")[0] for name in sys.modules}
    assert loaded.isdisjoint(SERVER), loaded
    sys.stdout.write(answer)


if __name__ == "__main__":
    main()
