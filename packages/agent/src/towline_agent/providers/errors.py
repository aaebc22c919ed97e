"""From what a vendor answers to the error that says what to do (A3.17 to A3.21).

All dialects use it. What means what stands in the tables of `error_signals`.
"""

import json
import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from towline_agent.errors import ProviderError, RateLimited
from towline_agent.providers.error_body import ErrorBody, read_error_body, read_error_value
from towline_agent.providers.error_signals import EMPTY, KINDS, NETWORK, Kind, error_kind
from towline_agent.providers.retry_delay import duration_s, header_delay_s, worded_delay_s
from towline_agent.providers.secrets import Secrets
from towline_agent.providers.stated_limits import stated_limits
from towline_agent.providers.transport import TransportFailed

__all__ = [
    "Peer",
    "answer_error",
    "body_error",
    "broken_header_error",
    "broken_key_error",
    "document_error",
    "empty_error",
    "incomplete_error",
    "malformed_error",
    "missing_key_error",
    "network_error",
    "plain_http_error",
    "too_long_error",
    "value_error",
]

_WORDS_MAX: Final = 400
"""Characters of a vendor's own words that are shown (A3.21)."""
_REASON_MAX: Final = 200
"""Characters of the reason in a typed detail; real ones are words."""
_BODY_MAX: Final = 4000
"""Characters of an answer that an error keeps."""
_SHOWN_MAX: Final = 80
"""Characters of a header's name that are shown."""
_KEPT_HEADERS: Final = ("retry", "ratelimit", "request-id")
_KEY_ADVICE: Final = "pass a valid `api_key`; in the app, keep one with `towline keys set {}`"
_NOT_IMPLEMENTED: Final = 501
_NAMED: Final = (
    r"(?i)\b(function|tool|parameter|property|field|argument|schema|name)s?:? "
    r"(?P<mark>['\"`])[^'\"`\s]{1,128}(?P=mark)"
)
"""A name that a vendor repeats out of the request. A tool called `check_permission` says nothing
about what went wrong."""
_SUGGESTING: Final = ("model_not_on_plan", "daily_limit")
"""Kinds that only another model, or another day, helps (A3.18)."""
_NO_LIMIT: Final = r'"(?:quotavalue|quota_limit_value)":"?0"?[,}]'
_NO_LIMIT_WORDED: Final = r"\blimit: 0\b(?!\.\d)"


class Peer(msgspec.Struct, frozen=True, kw_only=True):
    """Who was asked, for the sentences. Its `repr` does not show the secret."""

    provider: str
    """The provider's name."""
    model: str
    """The model."""
    url: str
    """The address that was called."""
    key_setting: str | None = None
    """The environment variable that holds the key."""
    secrets: Secrets = msgspec.field(default_factory=Secrets)
    """The credential and whatever else was sent that nobody may read: taken out of a vendor's
    words, should they repeat it."""
    suggested_model: str | None = None
    """The model to take when this one is not on the plan or used up for the day (A3.18); `None`
    when there is none to suggest."""

    def __repr__(self) -> str:
        return f"Peer({self.provider!r}, {self.model!r}, {self.url!r})"


def answer_error(
    peer: Peer, *, status: int, headers: Mapping[str, str], body: bytes, now_ms: int
) -> ProviderError:
    """The error that an HTTP answer means.

    Args:
        peer: Who answered.
        status: The HTTP status.
        headers: Names in lower case.
        body: The body as it came.
        now_ms: Milliseconds since 1970, for a delay that is stated as a date.
    """
    return _error(peer, read_error_body(body), body, status, headers, now_ms)


def value_error(peer: Peer, value: Any) -> ProviderError:
    """The error that an `error` object in a stream or in a 200 answer means (A2.17, A2.20)."""
    said = read_error_value(value)
    return _error(peer, said, _dumped(value).encode(), said.status)


def body_error(peer: Peer, body: bytes) -> ProviderError:
    """The error that the data of an error event means (A2.17)."""
    said = read_error_body(body)
    return _error(peer, said, body, said.status)


def document_error(peer: Peer, body: bytes) -> ProviderError:
    """The error that a 200 answer without an answer in it means (A2.20, A3.19)."""
    said = read_error_body(body)
    if said.page or not (said.message or said.signs):
        # a page or an empty object comes the same the next time
        return malformed_error(peer, said.message, retryable=False)
    return _error(peer, said, body, said.status)


def network_error(peer: Peer, failure: TransportFailed, idle_s: float) -> ProviderError:
    """The error that a missing answer means (A3.T11)."""
    kind = NETWORK.get(failure.cause, NETWORK["lost"])
    return _make(peer, kind, failure.cause, failure.detail, idle=f"{idle_s:g}")


def incomplete_error(peer: Peer) -> ProviderError:
    """The stream ended without a finish reason and without `[DONE]` (A3.9)."""
    return _make(peer, KINDS["incomplete"], "incomplete", "")


def empty_error(peer: Peer, error: ProviderError) -> ProviderError:
    """The answer broke off before a word of it came: then none may have been on its way.

    Args:
        peer: Who was asked.
        error: Where it broke off.
    """
    return _make(peer, EMPTY, error.reason or "", "")


def malformed_error(
    peer: Peer, detail: str = "", *, retryable: bool | None = None
) -> ProviderError:
    """The answer is not what the dialect says."""
    return _make(peer, KINDS["malformed"], "malformed", detail, retryable=retryable)


def too_long_error(peer: Peer, limit: str) -> ProviderError:
    """The answer has more of something than one may have; the next one would be as long.

    Args:
        peer: Who answered.
        limit: The most that it may have, such as `100 calls`.
    """
    return _make(peer, KINDS["too_long"], "too_long", "", retryable=False, limit=limit)


def missing_key_error(peer: Peer) -> ProviderError:
    """The provider wants a key and there is none; nothing was sent."""
    return _make(peer, KINDS["missing_key"], "missing_key", "")


def broken_key_error(peer: Peer) -> ProviderError:
    """The key holds what no header can; nothing was sent."""
    return _make(peer, KINDS["broken_key"], "broken_key", "")


def broken_header_error(peer: Peer, name: str) -> ProviderError:
    """A header that was asked for holds what none can; nothing was sent."""
    return _make(peer, KINDS["broken_header"], "broken_header", "", limit=repr(name[:_SHOWN_MAX]))


def plain_http_error(peer: Peer) -> ProviderError:
    """The address would send the conversation unencrypted; nothing was sent (A2.80)."""
    return _make(peer, KINDS["plain_http"], "plain_http", "")


def _error(
    peer: Peer,
    said: ErrorBody,
    body: bytes,
    status: int | None,
    headers: Mapping[str, str] | None = None,
    now_ms: int = 0,
) -> ProviderError:
    headers = headers or {}
    name = error_kind(status, _telling(said))
    if name in ("rate_limit", "quota"):
        name = _refined(said) or name
    stated_s = header_delay_s(headers, now_ms)
    error = _make(
        peer,
        KINDS[name],
        name,
        said.message,
        status=status,
        retry_after_s=_body_delay_s(said) if stated_s is None else stated_s,
        retryable=False if status == _NOT_IMPLEMENTED else None,
    )
    error.headers = {
        key: peer.secrets.clean(value)
        for key, value in headers.items()
        if any(part in key for part in _KEPT_HEADERS)
    }
    error.body = peer.secrets.clean(body.decode("utf-8", "replace"))[:_BODY_MAX]
    if isinstance(error, RateLimited):
        words = f"{said.signs} {said.message}"
        error.limits = stated_limits(headers, said.details, words)
    return error


def _telling(said: ErrorBody) -> str:
    """The words that say what kind it is."""
    stated = [detail.get("reason") for detail in said.details]
    reasons = [reason[:_REASON_MAX] for reason in stated if isinstance(reason, str)]
    return " ".join([said.signs, re.sub(_NAMED, r"\1", said.message), *reasons])


def _refined(said: ErrorBody) -> str | None:
    """What Google's details add to a refusal (A3.17)."""
    text = _dumped(said.details).lower()
    if re.search(_NO_LIMIT, text) or re.search(_NO_LIMIT_WORDED, said.message):
        return "model_not_on_plan"
    return "daily_limit" if "perday" in text else None


def _dumped(value: Any) -> str:
    try:
        return json.dumps(value, separators=(",", ":"))
    except (ValueError, TypeError, RecursionError):  # deeper than can be written, or no JSON
        return ""


def _body_delay_s(said: ErrorBody) -> float | None:
    """The delay that the body states: Google's `retryDelay`, or a sentence (A3.20)."""
    for detail in said.details:
        delay: Any = detail.get("retryDelay")
        if isinstance(delay, str):
            return duration_s(delay)
    return worded_delay_s(said.message)


def _make(
    peer: Peer,
    kind: Kind,
    reason: str,
    words: str,
    *,
    status: int | None = None,
    retry_after_s: float | None = None,
    retryable: bool | None = None,
    idle: str = "",
    limit: str = "",
) -> ProviderError:
    setting = peer.key_setting
    other = peer.suggested_model if peer.suggested_model != peer.model else None
    sentence = kind.sentence.format(
        provider=peer.provider,
        model=peer.model,
        url=peer.url,
        status="in the middle of its answer" if status is None else f"status {status}",
        key=f"set {setting} to a valid key"
        if setting
        else _KEY_ADVICE.format(peer.provider.partition("+")[0]),
        idle=idle,
        limit=limit,
        other="another model" if other is None else repr(other),
    )
    suggests = other is not None and reason in _SUGGESTING
    return kind.error(
        sentence + _quoted(peer.secrets.clean(words)),
        provider=peer.provider,
        model=peer.model,
        status=status,
        retry_after_s=retry_after_s,
        reason=reason,
        retryable=retryable,
        details={"suggested_model": other} if suggests else None,
    )


def _quoted(words: str) -> str:
    if not words:
        return ""
    cut = words if len(words) <= _WORDS_MAX else words[: _WORDS_MAX - 1] + "…"
    return f" It says: {cut}"
