"""Web addresses as models and redirects write them, checked before anything is sent (A5.31)."""

import re
from ipaddress import IPv6Address, ip_address
from typing import Final

import msgspec
from yarl import URL

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.web.address import looks_private, read_number

__all__ = ["MAX_URL", "WebUrl", "read_url"]

MAX_URL: Final = 4_096
"""Characters of an address; browsers and servers take hardly more."""

_SHOWN: Final = 200
_PORTS: Final = {"http": 80, "https": 443}
_SHAPE: Final = re.compile(r"(?i)(https?)://([^/?#]*)")
_SCHEME: Final = re.compile(r"(?i)([a-z][a-z0-9+.-]*):")
_NAME: Final = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)(?:\.(?!-)[a-z0-9_-]{1,63}(?<!-))*")
_BAD: Final = re.compile(r"[\x00-\x20\x7f\\\s]")


class WebUrl(msgspec.Struct, frozen=True, kw_only=True):
    """An address that may be asked for, in its one form."""

    url: URL
    """The very object that is asked for, so that nobody reads the text another way."""
    host: str
    """In lower case and ASCII, without brackets and without a dot at its end."""
    port: int
    """Given, or the usual one."""

    @property
    def text(self) -> str:
        """The address without its fragment."""
        return str(self.url)

    @property
    def place(self) -> str:
        """The host, with its port if that is not the usual one: what rules are matched against."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == _PORTS[self.url.scheme] else f"{host}:{self.port}"

    @property
    def private(self) -> bool:
        """Whether it leads into one's own network as far as its name says."""
        return looks_private(self.host)


def read_url(text: str, base: WebUrl | None = None) -> WebUrl:
    """An address out of its text.

    Forms of a host that people do not recognise are refused rather than read: what a person allows
    is what is asked for.

    Args:
        text: The address.
        base: Where it was found, for one that is not whole, such as a redirect's.

    Raises:
        ToolInputInvalid: It is none, or not one of http or https.
    """
    text = text.strip(" ")
    if len(text) > MAX_URL:
        raise ToolInputInvalid(
            f"The URL has {len(text)} characters, and {MAX_URL} is the most; leave out what the "
            "server does not need."
        )
    if _BAD.search(text):
        raise _bad(text, "holds a space, a backslash or a control character; percent-encode it")
    text = _whole(text, base)
    found = _SHAPE.match(text)
    if found is None:
        raise _bad(text, "is no web address; it must begin with http:// or https://")
    if "@" in found[2]:
        raise ToolInputInvalid(  # not shown: it may hold a password
            "The URL has a user or password before '@'; leave that out, or send a header."
        )
    if "%" in found[2]:
        raise _bad(text, "has a '%' in its host; write the host as it is")
    try:
        url = URL(text).with_fragment(None)
        host, port = (url.raw_host or "").lower().rstrip("."), url.port
    except (ValueError, UnicodeError) as error:
        raise _bad(text, "has a host or port that can't be read; correct it") from error
    if not port:
        raise _bad(text, "has the port 0, at which nobody listens; name another one")
    _check_host(text, host)
    return WebUrl(url=url.with_host(host), host=host, port=port)


def _whole(text: str, base: WebUrl | None) -> str:
    """A redirect's address made whole."""
    if base is None or _SCHEME.match(text):
        return text
    if text.startswith("//"):
        return f"{base.url.scheme}:{text}"
    try:
        return str(base.url.join(URL(text)))
    except (ValueError, UnicodeError) as error:
        raise _bad(text, "can't be read; correct it") from error


def _check_host(text: str, host: str) -> None:
    if not host:
        raise _bad(text, "names no host")
    if ":" in host:
        _check_ipv6(text, host)
        return
    if len(host) > 253 or _NAME.fullmatch(host) is None:
        raise _bad(text, "has a host that is no name; correct it")
    number = read_number(host)
    if number is not None and number != host:
        raise _bad(text, f"has a number as its host; write {number}")
    if number is None and re.fullmatch(r"(?:0x[0-9a-f]*|[0-9]+)", host.rpartition(".")[2]):
        raise _bad(text, "has a host that is no name; correct it")


def _check_ipv6(text: str, host: str) -> None:
    try:
        found = ip_address(host)
    except ValueError as error:
        raise _bad(text, "has a host that is no address; correct it") from error
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise _bad(text, f"has an IPv4 address written as IPv6; write {found.ipv4_mapped}")
    if getattr(found, "scope_id", None):
        raise _bad(text, "names a zone; leave it out")


def _bad(text: str, problem: str) -> ToolInputInvalid:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return ToolInputInvalid(f"{re.sub(r'//[^/]*@', '//…@', shown)!r} {problem}.")
