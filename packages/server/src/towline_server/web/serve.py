"""Serves the built page out of memory, under headers that let it do nothing else.

Everything is read, hashed and compressed once, at the start: a request is a dictionary look-up.
"""

import functools
import gzip
import hashlib
from collections.abc import Awaitable, Callable, MutableMapping
from pathlib import Path
from typing import Any, Final

import msgspec

__all__ = ["DIST", "SECURITY_HEADERS", "WebApp", "load_web_app"]

DIST: Final = Path(__file__).parent / "dist"
"""Where the build puts the page."""

SECURITY_HEADERS: Final[tuple[tuple[bytes, bytes], ...]] = (
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
        b"connect-src 'self'; manifest-src 'self'; media-src 'self' blob:; worker-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'; "
        b"require-trusted-types-for 'script'; trusted-types app",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
"""What every answer of the page carries, the ones that say 404 included."""

_BUILD_CHARS: Final = 12  # of the digest in build.json; as much as the page holds of it
_ASSETS: Final = "/assets/"
_TYPES: Final = {
    ".css": b"text/css; charset=utf-8",
    ".html": b"text/html; charset=utf-8",
    ".ico": b"image/x-icon",
    ".js": b"text/javascript; charset=utf-8",
    ".json": b"application/json",
    ".png": b"image/png",
    ".svg": b"image/svg+xml",
    ".txt": b"text/plain; charset=utf-8",
    ".webmanifest": b"application/manifest+json",
    ".webp": b"image/webp",
    ".woff2": b"font/woff2",
}
_PACKED: Final = frozenset({".ico", ".png", ".webp", ".woff2"})  # these do not shrink

_SHARED: Final = ("POST", "/share")
"""What another app hands over goes to the page's worker; it comes here where there is none yet."""
_REFUSAL: Final = ((b"content-type", _TYPES[".txt"]), (b"cache-control", b"no-store"))
_UNBUILT: Final = ((b"content-type", _TYPES[".html"]), (b"cache-control", b"no-store"))
_HOW_TO_BUILD: Final = b"""<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width">
<title>towline: the page is not built</title>
<h1>The page is not built</h1>
<p>This server works, but it was installed without its web page.</p>
<p>In a clone, run <code>make web</code> and start the server again. Elsewhere, install
<code>towline-server</code> again: its wheel holds the page. Meanwhile,
<code>towline chat --plain</code> talks to this server.</p>
</html>
"""

_Scope = MutableMapping[str, Any]
_Message = MutableMapping[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]
_Headers = list[tuple[bytes, bytes]]


class _Build(msgspec.Struct, frozen=True):
    sources: str


class _File(msgspec.Struct, frozen=True):
    body: bytes
    packable: bool
    headers: tuple[tuple[bytes, bytes], ...]
    etag: bytes


class WebApp:
    """An ASGI app that serves the page: `/` is its document, all else is a file or a 404.

    What is missing is never answered with HTML: a worker would keep that as a script. Where no
    page was built, `/` says how to build it.
    """

    def __init__(self, files: dict[str, _File], build: str | None) -> None:
        self._files = files
        self.build = build
        """The stamp of the page, as its document holds it; `None` when none was built."""

    async def __call__(self, scope: _Scope, receive: _Receive, send: _Send) -> None:
        """Serve one request."""
        status, headers, body = self._find(scope)
        if body:
            headers.append((b"content-length", b"%d" % len(body)))
        headers.extend(SECURITY_HEADERS)
        await send({"type": "http.response.start", "status": status, "headers": headers})
        head = scope["method"] == "HEAD"
        await send({"type": "http.response.body", "body": b"" if head else body})

    def _find(self, scope: _Scope) -> tuple[int, _Headers, bytes]:
        if (scope["method"], scope["path"]) == _SHARED:
            return 303, [*_REFUSAL, (b"location", b"/")], b"The page opens; share it once more.\n"
        if scope["method"] not in ("GET", "HEAD"):
            return 405, [*_REFUSAL, (b"allow", b"GET, HEAD")], b"Use GET or HEAD here.\n"
        path = "/index.html" if scope["path"] == "/" else str(scope["path"])
        file = self._files.get(path)
        if file is not None:
            return _pick(file, dict(scope["headers"]))
        if path == "/index.html":
            return 503, [*_UNBUILT, (b"retry-after", b"60")], _HOW_TO_BUILD
        return 404, [*_REFUSAL], b"There is no such file.\n"


def load_web_app(dist: Path = DIST) -> WebApp:
    """Read the built page into memory; blocks for some milliseconds."""
    files: dict[str, _File] = {}
    for entry in sorted(dist.rglob("*")) if dist.is_dir() else ():
        if entry.is_file() and not entry.name.startswith("."):
            path = f"/{entry.relative_to(dist).as_posix()}"
            files[path] = _load(path, entry.suffix, entry.read_bytes())
    stamp = files.pop("/build.json", None)
    return WebApp(files, None if stamp is None else _read_stamp(stamp.body))


def _load(path: str, suffix: str, body: bytes) -> _File:
    etag = b'W/"%s"' % hashlib.sha256(body).hexdigest()[:32].encode()
    # The names under /assets/ hold a hash of what is in them, so they never change.
    caching = b"public, max-age=31536000, immutable" if path.startswith(_ASSETS) else b"no-cache"
    headers = (
        (b"content-type", _TYPES.get(suffix, b"application/octet-stream")),
        (b"cache-control", caching),
        (b"etag", etag),
        (b"vary", b"accept-encoding"),
    )
    return _File(body, suffix not in _PACKED, headers, etag)


def _read_stamp(body: bytes) -> str | None:
    try:
        return msgspec.json.decode(body, type=_Build).sources[:_BUILD_CHARS]
    except msgspec.DecodeError:
        return None  # a page without a stamp works; it only never says that it is old


def _pick(file: _File, asked: dict[bytes, bytes]) -> tuple[int, _Headers, bytes]:
    """The answer to a request for a file: not again, packed, or as it is."""
    if file.etag in asked.get(b"if-none-match", b""):
        return 304, list(file.headers[1:]), b""
    if file.packable and _takes_gzip(asked.get(b"accept-encoding", b"")):
        packed = _pack(file.body)
        if len(packed) < len(file.body):
            return 200, [*file.headers, (b"content-encoding", b"gzip")], packed
    return 200, list(file.headers), file.body


@functools.lru_cache(maxsize=128)
def _pack(body: bytes) -> bytes:
    """A file's bytes, packed at the first request for them: most starts serve no page."""
    return gzip.compress(body, 9, mtime=0)


def _takes_gzip(accepted: bytes) -> bool:
    for item in accepted.lower().split(b","):
        coding, _, weight = item.partition(b";")
        if coding.strip() in (b"gzip", b"*"):
            return weight.replace(b" ", b"") not in (b"q=0", b"q=0.0", b"q=0.00", b"q=0.000")
    return False
