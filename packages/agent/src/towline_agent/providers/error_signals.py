"""The tables of failures: which signal means which kind, and what each kind tells people.

The first row that matches decides (A3.T1 to A3.T10); a failure of the network goes by its cause
(A3.T11).
"""

from typing import Final

import msgspec

from towline_agent.errors import (
    AuthenticationFailed,
    CertificateUntrusted,
    ContextOverflow,
    EndpointNotFound,
    ModelNotFound,
    ProviderError,
    ProviderUnavailable,
    QuotaExhausted,
    RateLimited,
    RequestRejected,
    ResponseMalformed,
)
from towline_agent.providers.transport import CA_SETTING

__all__ = ["EMPTY", "KINDS", "NETWORK", "SIGNALS", "Kind", "Signal", "error_kind"]


class Kind(msgspec.Struct, frozen=True):
    """One kind of failure."""

    error: type[ProviderError]
    """The class of its exception."""
    sentence: str
    """For people; names `{provider}`, `{model}`, `{url}`, `{status}`, `{key}`, `{idle}`,
    `{limit}`, and as `{other}` the model to take instead."""


class Signal(msgspec.Struct, frozen=True, kw_only=True):
    """One row of the table: it matches by status or by any of its words."""

    id: str
    """The row's number."""
    kind: str
    """A key of `KINDS`."""
    statuses: tuple[range, ...] = ()
    """HTTP statuses."""
    words: tuple[str, ...] = ()
    """Lower-case parts of what the body says."""
    unless: tuple[str, ...] = ()
    """Words with which it does not match."""
    weak: bool = False
    """Whether the words count only where no status says whose fault it was."""


KINDS: Final[dict[str, Kind]] = {
    "endpoint_not_found": Kind(
        EndpointNotFound,
        "Nothing at {url} speaks this API; check the base URL of {provider!r}.",
    ),
    "quota": Kind(
        QuotaExhausted,
        "The account at {provider!r} has no credit left for {model!r}; add credit there or take "
        "another model.",
    ),
    "model_not_on_plan": Kind(
        QuotaExhausted,
        "The plan at {provider!r} does not include {model!r}; take {other} or another plan.",
    ),
    "daily_limit": Kind(
        QuotaExhausted,
        "The requests of the day for {model!r} at {provider!r} are used up; take {other} or wait "
        "until tomorrow.",
    ),
    "auth": Kind(
        AuthenticationFailed, "{provider!r} does not accept the key for {model!r}; {key}."
    ),
    "context_overflow": Kind(
        ContextOverflow,
        "The conversation does not fit the window of {model!r}; shorten it, start a new one, or "
        "take a model with a larger window.",
    ),
    "rate_limit": Kind(
        RateLimited, "{provider!r} takes no more requests for {model!r} just now; wait a moment."
    ),
    "overloaded": Kind(
        ProviderUnavailable,
        "{provider!r} is overloaded; try again in a moment or take another model than {model!r}.",
    ),
    "model_not_found": Kind(
        ModelNotFound, "{provider!r} has no model {model!r} for this key; take another one."
    ),
    "server": Kind(
        ProviderUnavailable,
        "{provider!r} failed at its own end ({status}); try again in a moment.",
    ),
    "request_rejected": Kind(
        RequestRejected,
        "{provider!r} refuses this request for {model!r} ({status}); the reason it gives says what "
        "to change.",
    ),
    "incomplete": Kind(
        ResponseMalformed,
        "The answer of {provider!r} ended in the middle; what had come is kept. Send it again.",
    ),
    "malformed": Kind(
        ResponseMalformed,
        "{provider!r} answered what is no answer of this API; try again, or check the base URL "
        "{url}.",
    ),
    "too_long": Kind(
        ResponseMalformed,
        "{model!r} of {provider!r} sent an answer of more than {limit}, the most that "
        "is taken; the words before that are kept. Ask for less at once or take another model.",
    ),
    "missing_key": Kind(AuthenticationFailed, "There is no key for {provider!r}; {key}."),
    "broken_key": Kind(
        AuthenticationFailed,
        "The key for {provider!r} holds white space or letters that no key has; copy it anew: "
        "{key}.",
    ),
    "broken_header": Kind(
        RequestRejected,
        "The extra header {limit} for {provider!r} has no value, or holds a line end or another "
        "character that no header can; correct it.",
    ),
    "plain_http": Kind(
        EndpointNotFound,
        "{url} is not encrypted and not on this machine, so nothing was sent; take an https "
        "address, or allow plain http with `allow_http=True` or TOWLINE_ALLOW_HTTP=1.",
    ),
}
"""What each kind is as an exception and as a sentence (A3.21)."""

_SERVER_ERRORS: Final = range(500, 600)
_ERRORS: Final = range(400, 600)
_OTHER_THINGS: Final = (
    "previous_response",
    "previous response",
    "item with id",
    "conversation with id",
    "file_id",
    "file with id",
    "image_file",
    "cachedcontent",
    "cached content",
)
"""Things of the request itself that can be missing: neither the address nor the model is."""


def _only(*statuses: int) -> tuple[range, ...]:
    return tuple(range(status, status + 1) for status in statuses)


SIGNALS: Final = (
    Signal(
        id="A3.T1",
        kind="endpoint_not_found",
        statuses=(range(300, 400), *_only(404, 405)),
        unless=("model", "deployment", "no endpoints found", *_OTHER_THINGS),
    ),
    Signal(
        id="A3.T2",
        kind="quota",
        statuses=_only(402),
        words=(
            "insufficient_quota",
            "out of credit",
            "credit balance",
            "insufficient credit",
            "insufficient balance",
            "available credits",
            "any credits",
            "spending limit",
            "specified api usage limits",
        ),
    ),
    Signal(
        id="A3.T3",
        kind="auth",
        statuses=_only(401, 403),
        words=(
            "authentication",
            "permission",
            "api key not valid",
            "api key expired",
            "invalid_api_key",
            "api_key_invalid",
            "invalid api key",
            "incorrect api key",
        ),
    ),
    Signal(
        id="A3.T4",
        kind="context_overflow",
        words=(
            "context_length",
            "context length",
            "context_window",
            "context window",
            "context size",
            "exceed_context",
            "maximum context",
            "prompt is too long",
            "prompt too long",
            "prompt exceeds",
            "prompt_tokens_exceeded",
            "prompt token count",
            "maximum prompt length",
            "input is too long",
            "is too large to process",
            "range of input length",
            "exceeded model token limit",
            "total tokens limit",
            "reduce the length of the messages",
            "exceed context limit",
            "max_new_tokens must be",
            "input tokens exceed",
            "exceeds the maximum number of tokens",
            "too_many_tokens",
        ),
    ),
    Signal(
        id="A3.T5",
        kind="rate_limit",
        statuses=_only(429),
        words=(
            "rate_limit",
            "rate limit",
            "ratelimit",
            "resource_exhausted",
            "too many requests",
            "throttl",
        ),
    ),
    Signal(id="A3.T6", kind="quota", words=("billing", "exceeded your current quota")),
    Signal(id="A3.T7", kind="overloaded", statuses=_only(529), words=("overloaded",)),
    Signal(
        id="A3.T8",
        kind="model_not_found",
        statuses=_only(404),
        words=(
            "not_found",
            "notfound",
            "invalid_model",
            "invalid model:",
            "invalid model '",
            "unknown model",
            "model not exist",
            "model does not exist",
            "is not a valid model",
        ),
        unless=_OTHER_THINGS,
    ),
    Signal(
        id="A3.T9",
        kind="server",
        statuses=(_SERVER_ERRORS, *_only(408)),
        words=("server_error", "internal error", "unavailable"),
        weak=True,
    ),
    Signal(
        id="A3.T10",
        kind="request_rejected",
        statuses=_only(400, 413, 422),
        words=(
            "invalid_request",
            "invalid_argument",
            "invalid_prompt",
            "invalid_image",
            "request_too_large",
            "content_filter",
            "content_policy",
            *_OTHER_THINGS,
        ),
        weak=True,
    ),
)
"""The table, in its order."""

EMPTY: Final = Kind(
    ResponseMalformed,
    "{provider!r} answered nothing that this API knows; send it again, or check that {url} "
    "speaks it.",
)
"""The sentence of an answer that broke off before a word of it came, whatever the reason."""

NETWORK: Final[dict[str, Kind]] = {
    "dns": Kind(
        ProviderUnavailable,
        "The host of {url} is not known; check the network and the base URL of {provider!r}.",
    ),
    "certificate": Kind(
        CertificateUntrusted,
        f"The certificate of {{url}} is not trusted here; if a proxy or a company signs it, name "
        f"its CA file (PEM) in {CA_SETTING}, or pass it as `ca_file`.",
    ),
    "tls": Kind(
        ProviderUnavailable,
        "No encrypted connection to {url} could be made; check the base URL and any proxy.",
    ),
    "refused": Kind(
        ProviderUnavailable,
        "Nothing listens at {url}; start the server there, or check the base URL.",
    ),
    "unreachable": Kind(ProviderUnavailable, "{url} cannot be reached; check the network."),
    "proxy": Kind(
        ProviderUnavailable,
        "The proxy did not let the request for {url} through; check HTTP_PROXY, HTTPS_PROXY "
        "and NO_PROXY.",
    ),
    "connect_timeout": Kind(
        ProviderUnavailable, "{url} did not answer in time; check the network and try again."
    ),
    "idle": Kind(
        ProviderUnavailable,
        "{provider!r} sent nothing for {idle} seconds, so the request was given up; try again.",
    ),
    "no_answer": Kind(
        ProviderUnavailable,
        "{provider!r} kept the line open but sent no word of an answer for too long, so the "
        "request was given up; try again or take another model than {model!r}.",
    ),
    "lost": Kind(
        ProviderUnavailable,
        "The connection to {url} broke; check the network and the base URL, try again.",
    ),
    "cut": KINDS["incomplete"],
    "too_large": Kind(
        ResponseMalformed,
        "{provider!r} sends more than an answer can be; check that {url} is its API.",
    ),
    "malformed": KINDS["malformed"],
    "address": Kind(EndpointNotFound, "{url!r} is no address; correct the base URL."),
    "ca_file": Kind(
        CertificateUntrusted,
        f"The CA file of `ca_file` or {CA_SETTING} cannot be read; name a PEM file.",
    ),
}
"""The row A3.T11: by the cause that a transport names."""


def error_kind(status: int | None, words: str) -> str:
    """The kind of the first row that matches; a failure that says nothing is the server's.

    Args:
        status: The HTTP status, or the one that the body states.
        words: Type, code and message of the body.
    """
    text = words.lower()
    for signal in SIGNALS:
        if _matches(signal, status, text):
            return signal.kind
    client_side = status is not None and status not in _SERVER_ERRORS
    return "request_rejected" if client_side else "server"


def _matches(signal: Signal, status: int | None, text: str) -> bool:
    if any(word in text for word in signal.unless):
        return False
    if status is not None and any(status in statuses for statuses in signal.statuses):
        return True
    if signal.weak and status is not None and status in _ERRORS:
        return False
    return any(word in text for word in signal.words)
