"""The built page out of memory: types, caching, headers, and what is missing."""

import gzip
import json
import re
from collections.abc import Iterable, MutableMapping
from pathlib import Path
from typing import Any

import pytest

from towline_server.web.serve import DIST, SECURITY_HEADERS, WebApp, load_web_app

SCRIPT = b"console.log('towline');\n" * 40
ICON = bytes(range(256))
PAGE = b"<!doctype html><title>towline</title>" + b"<p>text</p>" * 30


@pytest.fixture
def dist(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_bytes(PAGE)
    (tmp_path / "sw.js").write_bytes(SCRIPT)
    (tmp_path / "manifest.webmanifest").write_bytes(b"{}")
    (tmp_path / "icon.png").write_bytes(ICON)
    (tmp_path / "assets" / "main-abc123.js").write_bytes(SCRIPT)
    (tmp_path / "assets" / "style-abc123.css").write_bytes(b"p{}")
    (tmp_path / ".hidden").write_bytes(b"x")
    (tmp_path / "build.json").write_bytes(b'{"sources": "0123456789abcdef0123"}')
    return tmp_path


class _Answer:
    def __init__(self, messages: list[MutableMapping[str, Any]]) -> None:
        head, *bodies = messages
        self.status: int = head["status"]
        self.headers: dict[str, str] = {
            name.decode(): value.decode() for name, value in head["headers"]
        }
        assert len(self.headers) == len(head["headers"]), "a header stands twice"
        self.body = b"".join(message.get("body", b"") for message in bodies)


async def _get(
    app: WebApp,
    path: str,
    headers: Iterable[tuple[bytes, bytes]] = (),
    method: str = "GET",
) -> _Answer:
    sent: list[MutableMapping[str, Any]] = []

    async def receive() -> MutableMapping[str, Any]:
        return {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "method": method, "path": path, "headers": list(headers)}
    await app(scope, receive, send)
    return _Answer(sent)


@pytest.mark.parametrize(
    ("path", "kind", "caching"),
    [
        ("/", "text/html; charset=utf-8", "no-cache"),
        ("/index.html", "text/html; charset=utf-8", "no-cache"),
        ("/sw.js", "text/javascript; charset=utf-8", "no-cache"),
        ("/manifest.webmanifest", "application/manifest+json", "no-cache"),
        ("/icon.png", "image/png", "no-cache"),
        (
            "/assets/main-abc123.js",
            "text/javascript; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
        (
            "/assets/style-abc123.css",
            "text/css; charset=utf-8",
            "public, max-age=31536000, immutable",
        ),
    ],
)
async def test_each_file_has_its_type_and_only_named_by_hash_is_kept_for_ever(
    dist: Path, path: str, kind: str, caching: str
) -> None:
    answer = await _get(load_web_app(dist), path)
    assert answer.status == 200
    assert answer.headers["content-type"] == kind
    assert answer.headers["cache-control"] == caching
    assert answer.headers["content-length"] == str(len(answer.body))


@pytest.mark.parametrize("path", ["/", "/assets/none.js", "/index.html", "/nothing"])
async def test_every_answer_lets_the_page_do_nothing_but_its_own(dist: Path, path: str) -> None:
    answer = await _get(load_web_app(dist), path)
    for name, value in SECURITY_HEADERS:
        assert answer.headers[name.decode()] == value.decode()
    policy = dict(
        part.strip().split(" ", 1) for part in answer.headers["content-security-policy"].split(";")
    )
    assert policy == {
        "default-src": "'none'",
        "script-src": "'self'",
        "style-src": "'self'",
        "img-src": "'self' data: blob:",
        "connect-src": "'self'",
        "manifest-src": "'self'",
        "media-src": "'self' blob:",
        "worker-src": "'self'",
        "form-action": "'self'",
        "base-uri": "'none'",
        "frame-ancestors": "'none'",
        "require-trusted-types-for": "'script'",
        "trusted-types": "app",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/assets/main-old.js",
        "/none",
        "/build.json",
        "/.hidden",
        "/assets/../index.html",
        "/assets/",
        "/../serve.py",
    ],
)
async def test_what_is_missing_is_404_and_never_html(dist: Path, path: str) -> None:
    answer = await _get(load_web_app(dist), path)
    assert (answer.status, answer.headers["cache-control"]) == (404, "no-store")
    assert answer.headers["content-type"] == "text/plain; charset=utf-8"
    assert b"<" not in answer.body


async def test_gzip_is_the_file_itself_and_goes_to_those_who_take_it(dist: Path) -> None:
    app = load_web_app(dist)
    packed = await _get(app, "/sw.js", [(b"accept-encoding", b"br, gzip;q=0.8")])
    assert packed.headers["content-encoding"] == "gzip"
    assert packed.headers["vary"] == "accept-encoding"
    assert gzip.decompress(packed.body) == SCRIPT
    assert len(packed.body) < len(SCRIPT)
    for accepted in (b"", b"br", b"gzip;q=0", b"identity"):
        plain = await _get(app, "/sw.js", [(b"accept-encoding", accepted)])
        assert "content-encoding" not in plain.headers
        assert plain.headers["vary"] == "accept-encoding"
        assert plain.body == SCRIPT


@pytest.mark.parametrize("path", ["/icon.png", "/assets/style-abc123.css"])
async def test_what_does_not_shrink_goes_as_it_is(dist: Path, path: str) -> None:
    answer = await _get(load_web_app(dist), path, [(b"accept-encoding", b"gzip")])
    assert "content-encoding" not in answer.headers


async def test_what_the_browser_has_is_not_sent_again(dist: Path) -> None:
    app = load_web_app(dist)
    first = await _get(app, "/")
    etag = first.headers["etag"].encode()
    again = await _get(app, "/", [(b"if-none-match", b'"other", ' + etag)])
    assert (again.status, again.body) == (304, b"")
    assert again.headers["etag"] == first.headers["etag"]
    assert "content-length" not in again.headers
    assert "content-security-policy" in again.headers
    changed = await _get(app, "/", [(b"if-none-match", b'W/"other"')])
    assert changed.status == 200


async def test_head_says_what_get_would(dist: Path) -> None:
    app = load_web_app(dist)
    head, get = await _get(app, "/", method="HEAD"), await _get(app, "/")
    assert (head.status, head.headers, head.body) == (200, get.headers, b"")


async def test_other_methods_are_refused(dist: Path) -> None:
    answer = await _get(load_web_app(dist), "/", method="POST")
    assert (answer.status, answer.headers["allow"]) == (405, "GET, HEAD")


async def test_what_is_shared_before_there_is_a_worker_opens_the_page(dist: Path) -> None:
    answer = await _get(load_web_app(dist), "/share", method="POST")
    assert (answer.status, answer.headers["location"]) == (303, "/")
    assert (await _get(load_web_app(dist), "/share")).status == 404


async def test_a_page_that_was_not_built_says_how_to_build_it(tmp_path: Path) -> None:
    app = load_web_app(tmp_path / "dist")
    answer = await _get(app, "/")
    assert answer.status == 503
    assert int(answer.headers["retry-after"]) >= 1
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert b"make web" in answer.body
    assert "content-security-policy" in answer.headers
    assert app.build is None
    assert (await _get(app, "/assets/x.js")).status == 404


def test_the_stamp_is_as_much_of_the_digest_as_the_document_holds(dist: Path) -> None:
    assert load_web_app(dist).build == "0123456789ab"


def test_a_page_with_a_broken_stamp_still_works(dist: Path) -> None:
    (dist / "build.json").write_bytes(b"[]")
    assert load_web_app(dist).build is None


SHIPPED = sorted(
    f"/{path.relative_to(DIST).as_posix()}"
    for path in DIST.rglob("*")
    if path.is_file() and path.name != "build.json"
)


async def test_each_file_that_is_shipped_has_a_type_of_its_own() -> None:
    app = load_web_app()
    kinds = {path: (await _get(app, path)).headers["content-type"] for path in SHIPPED}
    assert [path for path, kind in kinds.items() if kind == "application/octet-stream"] == []
    assert kinds["/manifest.webmanifest"] == "application/manifest+json"


@pytest.mark.rules("W18")
async def test_the_worker_is_never_kept_and_names_what_is_there() -> None:
    app = load_web_app()
    worker = await _get(app, "/sw.js")
    assert worker.headers["cache-control"] == "no-cache"
    assert worker.headers["content-type"] == "text/javascript; charset=utf-8"
    text = worker.body.decode()
    assert re.search(r"\bimport\b|\bexport\b", text) is None, "it is one script"
    assert app.build is not None
    assert f'"build":"{app.build}"' in text
    named = re.search(r'"files":(\[[^\]]*\])', text)
    assert named is not None
    files = json.loads(named[1])
    assert [path for path in files if path not in SHIPPED] == []
    assets = {path for path in SHIPPED if path.startswith("/assets/")}
    assert assets <= set(files), "a window that is open may still need any of them"


async def test_the_document_names_the_manifest_and_all_pictures_are_there() -> None:
    app = load_web_app()
    document = (await _get(app, "/")).body.decode()
    assert '<link rel="manifest" href="/manifest.webmanifest"' in document
    named = re.findall(r'(?:href|src)="(/[^"]+)"', document)
    told = json.loads((await _get(app, "/manifest.webmanifest")).body)
    icons = [*told["icons"], *told["screenshots"], *told["shortcuts"][0]["icons"]]
    for path in [*named, *(icon["src"] for icon in icons)]:
        assert (await _get(app, path)).status == 200, path
    for icon in icons:
        assert (await _get(app, icon["src"])).headers["content-type"] == icon["type"]
