"""Base URLs as people paste them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from towline_agent.providers.address import is_safe, parse_address
from towline_protocol import UsageError


@pytest.mark.rules("A2.77", "A2.78")
@pytest.mark.parametrize(
    ("pasted", "base", "api"),
    [
        ("https://a.test", "https://a.test", "https://a.test/v1"),
        ("https://a.test/", "https://a.test", "https://a.test/v1"),
        ("https://a.test/v1", "https://a.test", "https://a.test/v1"),
        ("https://a.test/v1/", "https://a.test", "https://a.test/v1"),
        ("https://a.test/v1/chat/completions", "https://a.test", "https://a.test/v1"),
        ("https://a.test/v1/models", "https://a.test", "https://a.test/v1"),
        ("https://a.test/v1/responses", "https://a.test", "https://a.test/v1"),
        ("https://a.test/codex/responses", "https://a.test/codex", "https://a.test/codex"),
        ("HTTPS://A.test:8443/V", "https://a.test:8443/V", "https://a.test:8443/V/v1"),
        ("https://a.test/openai", "https://a.test/openai", "https://a.test/openai/v1"),
        ("https://a.test/api/v1", "https://a.test/api", "https://a.test/api/v1"),
        ("https://a.test/v1beta/openai/", "https://a.test/v1beta/openai", "https://a.test/v1beta/openai"),
        ("https://a.test/paas/v4", "https://a.test/paas/v4", "https://a.test/paas/v4"),
        ("https://a.test/v4/ai/v1", "https://a.test/v4/ai", "https://a.test/v4/ai/v1"),
        ("https://a.test/chat/completions", "https://a.test", "https://a.test"),
        ("https://a.test/v1/messages", "https://a.test", "https://a.test/v1"),
        ("https://a.test/v1/messages/count_tokens", "https://a.test", "https://a.test/v1"),
        ("https://a.test/anthropic/v1/messages", "https://a.test/anthropic", "https://a.test/anthropic/v1"),
        ("https://a.test/v1?key=1#x", "https://a.test", "https://a.test/v1"),
        ("http://[::1]:8080/v1", "http://[::1]:8080", "http://[::1]:8080/v1"),
        ('base_url = "https://a.test/v1"  # then https://b.test', "https://a.test", "https://a.test/v1"),
        ("Use <https://a.test/v1>.", "https://a.test", "https://a.test/v1"),
        ("It is at https://a.test.", "https://a.test", "https://a.test/v1"),
        ("curl https://a.test/v1/models \\\n -H x", "https://a.test", "https://a.test/v1"),
    ],
)  # fmt: skip
def test_the_first_url_of_a_pasted_block_is_the_base(pasted: str, base: str, api: str) -> None:
    address = parse_address(pasted)
    assert (address.base, address.api) == (base, api)
    assert parse_address(api).api == api or "/v1beta" in api or "/v4" in api or base == api


@pytest.mark.rules("A2.77")
@pytest.mark.parametrize(
    "pasted",
    ["", "a.test", "ftp://a.test", "https://", "https://:80", "https://a.test:x", "http://[::1"],
)
def test_what_holds_no_usable_url_is_said(pasted: str) -> None:
    with pytest.raises(UsageError) as error:
        parse_address(pasted)
    assert "URL" in error.value.message


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError) as error:
        parse_address("https://me:hush@a.test/v1")
    assert "hush" not in error.value.message


@given(st.text(max_size=60))
def test_whatever_is_pasted_gives_an_address_or_a_sentence(pasted: str) -> None:
    for text in (pasted, f"https://{pasted}"):
        try:
            address = parse_address(text)
        except UsageError:
            continue
        assert address.api.startswith(address.base)


@pytest.mark.rules("A2.80")
@pytest.mark.parametrize(
    ("url", "safe"),
    [
        ("https://anywhere.test/v1", True),
        ("http://localhost:1/v1", True),
        ("http://ollama.localhost/v1", True),
        ("http://127.8.9.1/v1", True),
        ("http://[::1]/v1", True),
        ("http://localhost.evil.test/v1", False),
        ("http://192.168.1.2/v1", False),
        ("http://0.0.0.0/v1", False),
        ("http://example.test/v1", False),
    ],
)
def test_only_this_machine_is_safe_without_encryption(url: str, safe: bool) -> None:
    assert is_safe(url) is safe
