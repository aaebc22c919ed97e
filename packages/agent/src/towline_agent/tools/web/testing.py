"""A web server on this machine that says what a test wants, and names that lead to it.

```python
async with FakeSite() as site:
    site.pages["/"] = answer("Hello")
    (web_fetch, _) = make_web_tools(site.client())
```
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp.abc import AbstractResolver, ResolveResult

from towline_agent.listener import Listener
from towline_agent.tools.web.client import WebClient

__all__ = ["FakeSite", "Page", "Send", "answer"]

Send = Callable[[bytes], Awaitable[None]]
"""Sends bytes to whoever asked."""
Page = bytes | Callable[[Send], Awaitable[None]]
"""A whole answer, status line included, or what sends one piece by piece."""


def answer(body: bytes | str = b"", status: str = "200 OK", **headers: str) -> bytes:
    """A whole HTTP answer.

    Args:
        body: Its body.
        status: Number and words.
        headers: More headers, or others; `_` stands for `-`, an empty value leaves one out.
    """
    raw = body.encode() if isinstance(body, str) else body
    named = {"Content-Length": str(len(raw)), "Content-Type": "text/plain"} | {
        name.replace("_", "-"): value for name, value in headers.items()
    }
    lines = "".join(f"{name}: {value}\r\n" for name, value in named.items() if value)
    return f"HTTP/1.1 {status}\r\n{lines}\r\n".encode() + raw


class FakeSite(Listener):
    """Answers each path with what stands there. An async context manager."""

    def __init__(self) -> None:
        super().__init__(self._answer)
        self.pages: dict[str, Page] = {}
        """What stands at each path; 404 elsewhere."""
        self.asked: list[str] = []
        """Each request's head and body, in order."""
        self.names: dict[str, list[str]] = {"site.example": ["127.0.0.1"]}
        """The addresses of each name; a look-up takes the first away unless it is the last."""

    @property
    def url(self) -> str:
        """Its address by name."""
        return f"http://site.example:{self.port}"

    def client(self, **more: Any) -> WebClient:
        """A client that takes 127.0.0.1, and nothing else, for the public internet."""
        facts: dict[str, Any] = {
            "public": {"127.0.0.1"}.__contains__,
            "resolver": lambda: _Names(self.names),
            "environ_proxies": dict,
            **more,
        }
        return WebClient(**facts)

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lengths = [line[15:] for line in head.lower().split("\r\n") if line.startswith("content-l")]
        body = await reader.readexactly(int(lengths[0]) if lengths else 0)
        self.asked.append(head + body.decode())
        page = self.pages.get(head.split(" ")[1], answer("missing", "404 Not Found"))

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        if isinstance(page, bytes):
            await send(page)
        else:
            await page(send)


class _Names(AbstractResolver):
    """Knows the names of a test and no others."""

    def __init__(self, names: dict[str, list[str]]) -> None:
        self._names = names

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = self._names.get(host)
        if not found:
            raise OSError(f"{host} is not known")
        address = found.pop(0) if len(found) > 1 else found[0]
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        known = ResolveResult(
            hostname=host,
            host=address,
            port=port,
            family=family,
            proto=0,
            flags=socket.AI_NUMERICHOST,
        )
        return [known]

    async def close(self) -> None:
        pass
