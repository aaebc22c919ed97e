"""A fake authorization server, and a browser to visit it with, both over real HTTP.

```python
async with FakeAuthorization() as server:
    async with OAuthSignIn(server.service(), server.client) as sign_in:
        page = await server.browse(sign_in.url)
        tokens = await sign_in.tokens()
```
"""

import asyncio
import base64
import hashlib
import itertools
from contextlib import suppress
from typing import Any, Final
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import msgspec

from towline_agent.listener import Listener
from towline_agent.providers.oauth import OAuthClient, OAuthService

__all__ = ["BrowserPage", "FakeAuthorization", "fetch_page"]

_SCOPE: Final = "https://scopes.example/models"
_MAX_HOPS: Final = 5
_BROWSE_S: Final = 10.0
"""Seconds for a page of this machine; a test that hangs says where."""


class BrowserPage(msgspec.Struct, frozen=True, kw_only=True):
    """What a browser shows at the end of its redirects."""

    status: int
    """The HTTP status."""
    headers: dict[str, str]
    """Names in lower case."""
    text: str
    """The body."""
    url: str
    """Where it ended: what a person would copy from the address bar."""


class FakeAuthorization(Listener):
    """An authorization server on this machine that holds clients to RFC 6749 and 7636.

    Its consent page sends the browser back at once. A code works once, with the verifier, client
    and redirect address that it was made for. An async context manager.
    """

    client: Final = OAuthClient(id="client-of-the-user", secret="client-secret")  # noqa: S106
    """The one client that it knows."""

    def __init__(self) -> None:
        super().__init__(self._answer_caller)
        self.denies = False
        """Whether the person says no."""
        self.refuses: str | None = None
        """The error code with which the token endpoint refuses everything."""
        self.held: asyncio.Event | None = None
        """What the token endpoint waits for before it answers."""
        self.lifetime_s = 3600
        """Seconds that its access tokens hold."""
        self.scope: str | None = None
        """The scopes that it says were granted; `None` says nothing of them."""
        self.rotates = False
        """Whether each refresh brings another refresh token."""
        self.forms: list[dict[str, str]] = []
        """What the token endpoint was sent, in order."""
        self.refresh_token = "1//refresh-1"  # noqa: S105 - of a fake
        """The refresh token that it accepts just now."""
        self._numbers = itertools.count(1)
        self._codes: dict[str, dict[str, str]] = {}

    @property
    def url(self) -> str:
        """Where it listens."""
        return f"http://127.0.0.1:{self.port}"

    def service(self, provider: str = "gemini", *, needs_project: bool = False) -> OAuthService:
        """This server as a provider's."""
        return OAuthService(
            provider=provider,
            title="Example",
            authorize_url=f"{self.url}/authorize",
            token_url=f"{self.url}/token",
            scopes=(_SCOPE,),
            refresh_prefixes=("1//",),
            needs_project=needs_project,
        )

    async def browse(self, url: str) -> BrowserPage:
        """Open a page as a browser does, through all redirects."""
        page = await fetch_page(url)
        for _ in range(_MAX_HOPS):
            if "location" not in page.headers:
                break
            page = await fetch_page(page.headers["location"])
        return page

    async def _answer_caller(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        method, target, _ = head.split("\r\n")[0].split(" ")
        if method == "GET":
            answer = self._authorize(urlsplit(target).query)
        else:
            body = await reader.readexactly(_length(head))
            if self.held is not None:
                await self.held.wait()
            answer = self._token(dict(parse_qsl(body.decode())))
        writer.write(answer)
        await writer.drain()

    def _authorize(self, query: str) -> bytes:
        asked = {name: values[0] for name, values in parse_qs(query).items()}
        if asked.get("response_type") != "code" or asked.get("client_id") != self.client.id:
            return _answer(400, {"error": "invalid_request"})
        back = {"state": asked["state"]}
        if self.denies:
            back["error"] = "access_denied"
        else:
            back["code"] = f"code-{next(self._numbers)}"
            self._codes[back["code"]] = asked
        location = f"{asked['redirect_uri']}?{urlencode(back)}"
        return _answer(302, {}, f"Location: {location}\r\n")

    def _token(self, form: dict[str, str]) -> bytes:
        self.forms.append(form)
        if self.refuses is not None:
            return _answer(400, {"error": self.refuses, "error_description": f"{form}"})
        known = form.get("client_id"), form.get("client_secret")
        if known != (self.client.id, self.client.secret):
            return _answer(401, {"error": "invalid_client"})
        if not (self._knows_code(form) or self._knows_refresh_token(form)):
            return _answer(400, {"error": "invalid_grant"})
        number = next(self._numbers)
        told: dict[str, Any] = {
            "access_token": f"ya29.access-{number}",
            "expires_in": self.lifetime_s,
            "token_type": "Bearer",
        }
        if form["grant_type"] == "authorization_code" or self.rotates:
            self.refresh_token = f"1//refresh-{number}"
            told["refresh_token"] = self.refresh_token
        if self.scope is not None:
            told["scope"] = self.scope
        return _answer(200, told)

    def _knows_code(self, form: dict[str, str]) -> bool:
        asked = self._codes.pop(form.get("code", ""), None)
        if asked is None or form.get("grant_type") != "authorization_code":
            return False
        digest = hashlib.sha256(form.get("code_verifier", "").encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return (
            asked.get("code_challenge_method") == "S256"
            and asked.get("code_challenge") == challenge
            and asked.get("redirect_uri") == form.get("redirect_uri")
        )

    def _knows_refresh_token(self, form: dict[str, str]) -> bool:
        named = form.get("grant_type"), form.get("refresh_token")
        return named == ("refresh_token", self.refresh_token)


async def fetch_page(
    url: str, *, method: str = "GET", host: str | None = None, head: bytes | None = None
) -> BrowserPage:
    """One request to a server on this machine, without redirects.

    Args:
        url: Where to.
        method: The HTTP method.
        host: Another host name than the address's.
        head: Bytes to send in place of a request.

    Raises:
        OSError: Nothing listens there.
        EOFError: It hung up without an answer.
    """
    parts = urlsplit(url)
    async with asyncio.timeout(_BROWSE_S):
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port)
        try:
            target = f"{parts.path or '/'}?{parts.query}"
            line = f"{method} {target} HTTP/1.1\r\nHost: {host or parts.netloc}\r\n\r\n"
            writer.write(head or line.encode())
            await writer.drain()
            start = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            text = (await reader.read()).decode()
        finally:
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()
    pairs = (line.partition(":") for line in start[1:] if line)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    return BrowserPage(status=int(start[0].split(" ")[1]), headers=headers, text=text, url=url)


def _length(head: str) -> int:
    lines = (line.partition(":") for line in head.split("\r\n"))
    return next(int(value) for name, _, value in lines if name.lower() == "content-length")


def _answer(status: int, value: dict[str, Any], headers: str = "") -> bytes:
    body = msgspec.json.encode(value)
    head = f"HTTP/1.1 {status} Answer\r\nContent-Type: application/json\r\n{headers}"
    return f"{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body
