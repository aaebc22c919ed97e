"""The proxy: takes connections, and does to all of them at once what is asked for by hand."""

import asyncio
import itertools
import random
import socket
from collections import Counter
from collections.abc import Coroutine
from types import TracebackType
from typing import Any, Final, Self
from urllib.parse import urlsplit

from towline_client.testing.chaos.exchange import Exchange
from towline_client.testing.chaos.plan import Faults
from towline_client.testing.chaos.weather import Weather
from towline_client.testing.chaos.wire import PORTAL, bad_gateway, unauthorized

__all__ = ["MAX_EXCHANGES", "ChaosProxy"]

MAX_EXCHANGES: Final = 512
"""Exchanges at once; further connections are closed at once."""
_BACKLOG: Final = 128


class ChaosProxy:
    """Stands in front of a server and does harm; use it as an async context.

    Each client's connection carries one exchange and a connection to the server of its own. Heads
    are read and the rest is passed as it is, a socket after its handshake too; frames of an event
    stream are told apart. Nothing that waits is larger than a few MiB.
    """

    def __init__(
        self,
        target: str,
        *,
        seed: int = 0,
        faults: Faults | None = None,
        host: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        """Make a proxy; it listens inside of its context.

        Args:
            target: The server's address, such as `http://127.0.0.1:4747`.
            seed: What the plan is drawn from.
            faults: How likely each fault is; `None` for a good line.
            host: Where to listen.
            port: The port to listen at; 0 for any.

        Raises:
            ValueError: The target is no address.
        """
        self._target = urlsplit(target)
        if self._target.scheme not in ("http", "https") or not self._target.hostname:
            raise ValueError(
                f"{target!r} is no server address; give one such as 'http://127.0.0.1:4747'."
            )
        self._seed = seed
        self._address = (host, port)
        self._weather = Weather(faults or Faults(), self._refuse_a_while)
        self._numbers = itertools.count(1)
        self._group = asyncio.TaskGroup()
        self._tasks: set[asyncio.Task[None]] = set()
        self._open: set[Exchange] = set()
        self._listener: socket.socket | None = None
        self._refusing = False  # by hand

    @property
    def url(self) -> str:
        """Where clients find it."""
        host, port = self._address
        return f"http://{host}:{port}"

    @property
    def counts(self) -> Counter[str]:
        """What was done so far.

        Names are those of `Faults` (`cut` counts exchanges), `exchange` for all that came, `denied`
        for streams that were answered with 401, `unreached` for those that found no server.
        """
        return self._weather.counts

    @property
    def faults(self) -> Faults:
        """The plan in force; another one counts for exchanges that begin later."""
        return self._weather.faults

    @faults.setter
    def faults(self, faults: Faults) -> None:
        """Put another plan in force."""
        self._weather.faults = faults

    async def __aenter__(self) -> Self:
        await self._group.__aenter__()
        self._listen()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._deafen()
        for task in self._tasks:
            task.cancel()
        await self._group.__aexit__(None, None, None)  # a bug in an exchange comes out here

    def cut(self, *, reset: bool = True) -> int:
        """Cut all connections that are open now; gives how many.

        Args:
            reset: Whether by RST; by FIN, when not.
        """
        return self._cut(list(self._open), reset=reset)

    def unauthorized(self, times: int = 1, *, contract: bool = True) -> None:
        """Cut all streams, and answer the next ones with 401.

        Args:
            times: How many.
            contract: Whether the server seems to say so; a proxy, when not.
        """
        self.counts["unauthorized"] += times
        self._weather.denials.extend([unauthorized(contract=contract)] * times)
        self._cut([exchange for exchange in self._open if exchange.stream], reset=True)

    def black_hole(self) -> None:
        """From now on nothing comes through and nothing says so; new connections are taken.

        What is under way goes on after `heal`, as on a line that was silent.
        """
        self.counts["black_hole"] += 1
        self._weather.passing.clear()

    def refuse(self) -> None:
        """From now on connections are refused; those that are open stay so."""
        self.counts["refuse"] += 1
        self._refusing = True
        self._deafen()

    def portal(self) -> None:
        """From now on each request is answered by a sign-in page, with status 200."""
        self.counts["portal"] += 1
        self._weather.page = PORTAL

    def bad_gateway(self) -> None:
        """From now on each request is answered by a proxy's page, with status 502."""
        self.counts["bad_gateway"] += 1
        self._weather.page = bad_gateway()

    def heal(self) -> None:
        """End what was begun by hand; the plan stays in force.

        Raises:
            OSError: Somebody has taken the port while connections were refused.
        """
        self._refusing = False
        self._listen()
        self._weather.page = None
        self._weather.denials.clear()
        self._weather.passing.set()

    def _cut(self, exchanges: list[Exchange], *, reset: bool) -> int:
        self.counts["cut"] += len(exchanges)
        for exchange in exchanges:
            exchange.cut(reset=reset)
        return len(exchanges)

    def _start(self, exchange: Exchange) -> None:
        def done(_: asyncio.Task[None]) -> None:
            exchange.let_go()
            self._open.discard(exchange)

        self._open.add(exchange)
        self._own(exchange.run()).add_done_callback(done)

    def _own(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = self._group.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    def _listen(self) -> None:
        if self._listener is not None:
            return
        host, _ = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.socket(family, socket.SOCK_STREAM)
        try:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(self._address)
            listener.listen(_BACKLOG)
            listener.setblocking(False)
        except OSError:
            listener.close()
            raise
        self._address = (host, listener.getsockname()[1])
        self._listener = listener
        asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _deafen(self) -> None:
        """Refuse connections."""
        if self._listener is not None:
            asyncio.get_running_loop().remove_reader(self._listener)
            self._listener.close()
            self._listener = None

    def _accept(self, listener: socket.socket) -> None:
        try:
            sock, _ = listener.accept()
        except (BlockingIOError, ConnectionAbortedError):
            return  # it has left already
        if len(self._open) >= MAX_EXCHANGES:
            self.counts["overflow"] += 1
            sock.close()
            return
        sock.setblocking(False)
        self.counts["exchange"] += 1
        seed = f"{self._seed} {next(self._numbers)}"
        chance = random.Random(seed)  # noqa: S311 - nothing secret is drawn
        self._start(Exchange(sock, self._target, self._weather, chance))

    def _refuse_a_while(self) -> None:
        """Refuse connections for as long as the plan says."""
        if self._listener is None:
            return
        self._deafen()
        self._own(self._listen_again(self._weather.faults.refuse_s))

    async def _listen_again(self, after_s: float) -> None:
        await asyncio.sleep(after_s)
        if not self._refusing:
            self._listen()
