"""Which addresses are asked for, which only after a person was asked, which never."""

import pytest

from towline_agent.errors import ToolInputInvalid
from towline_agent.tools.web.address import is_public
from towline_agent.tools.web.fetch import host_part
from towline_agent.tools.web.url import MAX_URL, read_url

REFUSED = [
    # other schemes
    "file:///etc/passwd", "ftp://example.com/", "gopher://127.0.0.1:6379/_x", "data:text/html,hi",
    "javascript:alert(1)", "ws://example.com/", "about:blank", "view-source:http://example.com/",
    "unix:/var/run/docker.sock", "HTTPS:/example.com/", "http:example.com", "example.com/page",
    "//example.com/", "", "http://", "https:///etc/passwd", "dict://localhost:11211/", "\\\\host\\x",
    # what stands before the host
    "http://user@example.com/", "http://user:secret@127.0.0.1/", "http://example.com@127.0.0.1/",
    "http://example.com:80@127.0.0.1/", "http://[::1]@example.com/", "http://@example.com/",
    # parsers that disagree
    "http://example.com\\@127.0.0.1/", "http://example.com\\.evil.example/", "http:\\\\127.0.0.1/",
    "http://example.com /", "http://exa mple.com/", "http://example.com\t/", "http://a\r\nHost: b/",
    "http://example.com\x00.evil.example/", "http://%31%32%37.0.0.1/", "http://%6c%6fcalhost/",
    "http://example.com%2f@127.0.0.1/", "http://example.com%00/", "http://127.0.0.1%0a/",
    "http://exa\u2028mple.com/", "http://example\u3000.com/", "http://a..b/", "http://-a.com/",
    # numbers that are not written as numbers are
    "http://2130706433/", "http://0x7f000001/", "http://0x7f.0.0.1/", "http://0177.0.0.1/",
    "http://127.1/", "http://127.0.1/", "http://017700000001/", "http://0/", "http://0.0/",
    "http://127.0.0.01/", "http://1.2.3.4.5/", "http://256.256.256.256/", "http://0x/",
    "http://3232235777/", "http://example.0x7f/", "http://example.127/",
    # IPv6
    "http://[::ffff:127.0.0.1]/", "http://[::ffff:7f00:1]/", "http://[::ffff:169.254.169.254]/",
    "http://[fe80::1%25eth0]/", "http://[fe80::1%eth0]/", "http://[::1/", "http://::1/",
    "http://[127.0.0.1]/", "http://[]/",
    # ports
    "http://example.com:0/", "http://example.com:99999/", "http://example.com:abc/",
    "http://example.com:-1/", "http://" + "a" * 64 + ".com/", "http://" + "a." * 130 + "com/",
]  # fmt: skip
"""Never asked for, whoever allows it."""

ASKED = [
    "http://127.0.0.1/", "http://127.255.255.254:8080/", "http://localhost/", "http://LOCALHOST/",
    "http://localhost./", "http://api.localhost/", "http://0.0.0.0/", "http://10.0.0.1/",
    "http://172.16.0.1/", "http://172.31.255.255/", "http://192.168.1.1/", "http://169.254.169.254/",
    "http://100.64.0.1/", "http://100.100.100.200/", "http://224.0.0.1/", "http://255.255.255.255/",
    "http://192.0.2.1/", "http://198.18.0.1/", "http://240.0.0.1/", "http://192.0.0.170/",
    "http://[::1]/", "http://[::]/", "http://[fe80::1]/", "http://[fc00::1]/", "http://[fd12::1]/",
    "http://[ff02::1]/", "http://[2002:7f00:1::]/", "http://[64:ff9b::7f00:1]/",
    "http://[64:ff9b:1::1]/", "http://[2001::1]/", "http://[2001:db8::1]/", "http://[::127.0.0.1]/",
    "http://[fec0::1]/", "http://[2600::5efe:7f00:1]/", "http://metadata/", "http://intranet/x",
    "http://metadata.google.internal/", "http://printer.local/", "http://nas.lan/", "http://x.test/",
    "http://１２７.0.0.1/", "http://127。0。0。1/", "http://ⓛocalhost/", "http://ｌocalhost:80/",
]  # fmt: skip
"""Asked for once a rule or a person has allowed that very host."""

PUBLIC = [
    ("https://example.com", "example.com"), ("http://EXAMPLE.com./a?b=c#d", "example.com"),
    ("https://example.com:443/", "example.com"), ("https://example.com:8443/", "example.com:8443"),
    ("http://bücher.example.de/", "xn--bcher-kva.example.de"), ("http://8.8.8.8/", "8.8.8.8"),
    ("https://[2606:4700::1111]/", "[2606:4700::1111]"), ("http://a_b.example.com/", "a_b.example.com"),
    ("http://example.com?@127.0.0.1/", "example.com"), ("http://example.com#@127.0.0.1/", "example.com"),
    ("http://127.0.0.1.nip.io/", "127.0.0.1.nip.io"), ("http://[64:ff9b::808:808]/", "[64:ff9b::808:808]"),
]  # fmt: skip


@pytest.mark.wide
@pytest.mark.rules("A5.31", "A5.32")
@pytest.mark.parametrize("text", REFUSED)
def test_an_address_that_is_none_or_hides_its_host_is_refused(text: str) -> None:
    with pytest.raises(ToolInputInvalid) as raised:
        read_url(text)
    assert "secret" not in raised.value.message


@pytest.mark.wide
@pytest.mark.rules("A5.32", "A5.69")
@pytest.mark.parametrize("text", ASKED)
def test_a_private_address_is_something_to_ask_a_person_about(text: str) -> None:
    part = host_part(read_url(text))
    assert part.kind == "host"
    assert part.caution is not None
    assert part.subject in part.caution


@pytest.mark.rules("A5.47")
@pytest.mark.parametrize(("text", "place"), PUBLIC)
def test_a_public_address_is_named_by_its_host(text: str, place: str) -> None:
    part = host_part(read_url(text))
    assert (part.subject, part.caution, part.effect) == (place, None, "network")


def test_an_address_has_one_form() -> None:
    url = read_url(" http://EXAMPLE.com.:80/a%20b?c=d#e ")
    assert url.text == "http://example.com/a%20b?c=d"
    assert (url.host, url.port) == ("example.com", 80)


def test_a_redirect_is_read_from_where_it_stands() -> None:
    base = read_url("https://example.com/a/b?c")
    assert read_url("../d", base).text == "https://example.com/d"
    assert read_url("//other.example.com/x", base).text == "https://other.example.com/x"
    assert read_url("http://other.example.com", base).place == "other.example.com"
    with pytest.raises(ToolInputInvalid, match="must begin with"):
        read_url("file:///etc/passwd", base)


def test_a_long_address_is_refused() -> None:
    with pytest.raises(ToolInputInvalid, match=str(MAX_URL)):
        read_url("http://example.com/" + "x" * MAX_URL)


def test_what_is_no_address_is_not_public() -> None:
    assert not is_public("example.com")
    assert not is_public("fe80::1%eth0")
    assert not is_public("2600::1%1")
    assert is_public("1.1.1.1")
