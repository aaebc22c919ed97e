"""What a package index says of one project: the Simple API, as JSON or as HTML (PEP 503, 691)."""

import base64
import re
from collections.abc import Iterable
from html.parser import HTMLParser
from typing import Any, Final, NamedTuple
from urllib.parse import unquote, urljoin, urlsplit

import msgspec

from towline_agent.errors import ToolError, ToolInputInvalid
from towline_agent.providers.transport import HttpAnswer, HttpCall, Transport, TransportFailed
from towline_agent.tools.code.needed import import_needed

__all__ = ["PackageIndex", "Project", "Release", "check_package_name", "normalize", "read_project"]

_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_ACCEPT: Final = (
    "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, "
    "text/html;q=0.1"
)
_IDLE_S: Final = 20.0
_REDIRECTS: Final = 3
_SUMMARY_CHARS: Final = 300
_SDIST_ENDS: Final = (".tar.gz", ".zip", ".tar.bz2", ".tgz")


class Release(NamedTuple):
    """One version."""

    version: str
    """As it is written."""
    requires_python: str
    """The Pythons that it is for, such as `>=3.9`; empty when it does not say."""
    yanked: bool
    """Whether all its files were taken back."""
    uploaded: str
    """The day of its first file, `2026-01-31`; empty when the index does not say."""
    metadata_url: str
    """Where its metadata can be read; empty when it can't."""


class Project(NamedTuple):
    """What the index has."""

    name: str
    """As the index writes it."""
    releases: tuple[Release, ...]
    """Newest first, pre-releases in their order."""


def normalize(name: str) -> str:
    """A name as indexes compare it."""
    return re.sub(r"[-_.]+", "-", name).lower()


def check_package_name(name: str) -> str:
    """The name itself.

    Raises:
        ToolInputInvalid: It is no name of a package.
    """
    if _NAME.fullmatch(name) is None:
        raise ToolInputInvalid(
            f"{name[:100]!r} is no name of a package; give the name alone, without a version or an "
            "address."
        )
    return name


class PackageIndex:
    """One index.

    Args:
        url: Its address, without an end slash; a user and password in it are sent as a header.
        transport: Sends the requests.
    """

    def __init__(self, url: str, transport: Transport) -> None:
        parts = urlsplit(url)
        login, _, netloc = parts.netloc.rpartition("@")
        self.host = parts.hostname or ""
        """Its host, for people and rules."""
        self._url = parts._replace(netloc=netloc).geturl()
        self._headers = {"accept": _ACCEPT}
        if login:
            token = base64.b64encode(unquote(login).encode()).decode()
            self._headers["authorization"] = f"Basic {token}"
        self._transport = transport

    async def project(self, name: str) -> Project:
        """What it has under a name.

        Raises:
            ToolError: Nothing, or the index can't be asked; the message says what to do.
        """
        url = f"{self._url}/{normalize(name)}/"
        answer, url = await self._get(url)
        if answer.status == 404:
            raise ToolError(
                f"There is no package {name!r} on {self.host}. Check how it is written in the "
                "documentation that names it; do not guess, and do not take one that only sounds "
                "alike."
            )
        if answer.status != 200:
            raise ToolError(
                f"The package index {self.host} answered {answer.status} for {name!r}; "
                "try again later, or ask the person."
            )
        try:
            return read_project(name, answer, url)
        except ValueError as error:
            raise ToolError(
                f"What {self.host} answered for {name!r} can't be read; it may be no package index."
            ) from error

    async def summary(self, release: Release) -> str:
        """The line that says what a release is; empty when the index does not tell."""
        if not release.metadata_url or not self._is_trusted(release.metadata_url):
            return ""
        try:
            answer, _ = await self._get(release.metadata_url)
        except ToolError:
            return ""
        head = answer.body.decode("utf-8", "replace").partition("\n\n")[0]
        found = re.search(r"^Summary:[ \t]*(.+)$", head, re.MULTILINE) if _is_ok(answer) else None
        return found[1].strip()[:_SUMMARY_CHARS] if found else ""

    async def _get(self, url: str) -> tuple[HttpAnswer, str]:
        """An answer and where it came from; moves within the same host are followed."""
        answer = await self._send(url)
        for _ in range(_REDIRECTS):
            target = urljoin(url, answer.headers.get("location", ""))
            if answer.status not in (301, 302, 307, 308) or not self._is_own(target):
                break
            url, answer = target, await self._send(target)
        return answer, url

    async def _send(self, url: str) -> HttpAnswer:
        own = self._is_own(url)  # a password is for this host alone
        headers = self._headers if own else {"accept": "*/*"}
        call = HttpCall(url=url, method="GET", headers=dict(headers), idle_s=_IDLE_S)
        try:
            return await self._transport.json(call)
        except TransportFailed as error:
            raise ToolError(
                f"The package index {self.host} can't be reached ({error.cause}); there may be no "
                "network here. Go on without it, or ask the person."
            ) from error

    def _is_own(self, url: str) -> bool:
        ours, theirs = urlsplit(self._url), urlsplit(url)
        return (ours.scheme, ours.netloc) == (theirs.scheme, theirs.netloc)

    def _is_trusted(self, url: str) -> bool:
        """An index may keep its files elsewhere, but sends nobody to a plain address."""
        return self._is_own(url) or urlsplit(url).scheme == "https"


def _is_ok(answer: HttpAnswer) -> bool:
    return answer.status == 200


class _File(NamedTuple):
    name: str
    url: str
    requires_python: str
    yanked: bool
    uploaded: str
    has_metadata: bool


def read_project(name: str, answer: HttpAnswer, url: str) -> Project:
    """An index's answer about one project.

    Raises:
        ValueError: It is neither of the two forms.
    """
    kind = answer.headers.get("content-type", "")
    if "json" in kind:
        found = msgspec.json.decode(answer.body, type=_JsonProject)
        files = [_json_file(row, url) for row in found.files]
        return Project(found.name or name, _releases(name, files))
    if "html" in kind:
        page = _Page(url)
        page.feed(answer.body.decode("utf-8", "replace"))
        return Project(name, _releases(name, page.files))
    raise ValueError(kind)


class _JsonFile(msgspec.Struct, rename="kebab"):
    filename: str
    url: str
    requires_python: str | None = None
    yanked: bool | str = False
    upload_time: str | None = None
    core_metadata: bool | dict[str, str] = False


class _JsonProject(msgspec.Struct):
    files: list[_JsonFile]
    name: str = ""


def _json_file(row: _JsonFile, url: str) -> _File:
    return _File(
        name=row.filename,
        url=urljoin(url, row.url),
        requires_python=row.requires_python or "",
        yanked=row.yanked is not False,  # or why, which may be nothing
        uploaded=(row.upload_time or "")[:10],
        has_metadata=bool(row.core_metadata),
    )


class _Page(HTMLParser):
    """The links of a page of the Simple API."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.files: list[_File] = []
        self._url = url

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag != "a" or not found.get("href"):
            return
        url = urljoin(self._url, found["href"]).partition("#")[0]
        self.files.append(
            _File(
                name=unquote(urlsplit(url).path.rpartition("/")[2]),
                url=url,
                requires_python=found.get("data-requires-python") or "",
                yanked="data-yanked" in found,
                uploaded="",
                has_metadata=bool(
                    found.get("data-core-metadata") or found.get("data-dist-info-metadata")
                ),
            )
        )


def _releases(name: str, files: Iterable[_File]) -> tuple[Release, ...]:
    versions = import_needed("packaging.version")
    found: dict[Any, list[_File]] = {}
    for file in files:
        text = _version_of(name, file.name)
        try:
            version = versions.Version(text)
        except versions.InvalidVersion:
            continue
        found.setdefault(version, []).append(file)
    return tuple(_release(str(version), found[version]) for version in sorted(found, reverse=True))


def _release(version: str, files: list[_File]) -> Release:
    days = sorted(file.uploaded for file in files if file.uploaded)
    with_metadata = [file for file in files if file.has_metadata]
    return Release(
        version=version,
        requires_python=next((f.requires_python for f in files if f.requires_python), ""),
        yanked=all(file.yanked for file in files),
        uploaded=days[0] if days else "",
        metadata_url=f"{with_metadata[0].url}.metadata" if with_metadata else "",
    )


def _version_of(name: str, file: str) -> str:
    """The version in a file's name; empty when it is none of the project's."""
    stem = next(
        (file.removesuffix(end) for end in (".whl", *_SDIST_ENDS) if file.endswith(end)), ""
    )
    if file.endswith(".whl"):
        head, _, rest = stem.partition("-")
        return rest.partition("-")[0] if normalize(head) == normalize(name) else ""
    for found in re.finditer("-", stem):
        if normalize(stem[: found.start()]) == normalize(name):
            return stem[found.end() :]
    return ""
