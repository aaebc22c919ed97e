"""What can go wrong in the agent library.

```
TowlineError
├─ ProviderError (.provider .model .status .retryable .retry_after_s .headers .body)
│  ├─ ProviderUnavailable      the network, a 5xx, an overload, a silence
│  ├─ RateLimited              too many requests for now (.limits)
│  ├─ QuotaExhausted           no credit or no plan left
│  ├─ AuthenticationFailed     the key is wrong or may not do this
│  ├─ ModelNotFound            the provider has no such model
│  ├─ EndpointNotFound         nothing speaks this dialect at that address
│  ├─ CertificateUntrusted     the server's certificate is not trusted
│  ├─ RequestRejected          the provider refuses the request as it is
│  │  └─ ContextOverflow       it does not fit the model's window
│  └─ ResponseMalformed        the answer is not what the dialect says, or ends too early
├─ ToolError                   becomes a failed result, never ends a turn
│  ├─ ToolInputInvalid         the arguments do not fit
│  ├─ ToolDenied               a person, a rule or the root's fence said no
│  ├─ ToolTimeout              it took too long
│  └─ OutcomeUnknown           it may or may not have had its effect
├─ AbortTurn                   a tool's one way to end the turn, as failed
└─ LimitReached                a bound of the turn
```
"""

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from towline_protocol import TowlineError

__all__ = [
    "AbortTurn",
    "AuthenticationFailed",
    "CertificateUntrusted",
    "ContextOverflow",
    "EndpointNotFound",
    "LimitReached",
    "ModelNotFound",
    "OutcomeUnknown",
    "ProviderError",
    "ProviderUnavailable",
    "QuotaExhausted",
    "RateLimited",
    "RequestRejected",
    "ResponseMalformed",
    "StatedLimits",
    "ToolDenied",
    "ToolError",
    "ToolInputInvalid",
    "ToolTimeout",
]


class StatedLimits(msgspec.Struct, frozen=True, kw_only=True):
    """What a provider says that it takes in a minute, for one key and one model."""

    requests: int | None = None
    """Requests a minute; `None` when it does not say."""
    tokens: int | None = None
    """Tokens a minute; `None` when it does not say."""
    hit: str = ""
    """Which of them was reached: `requests`, `tokens`, or empty when it does not say."""


class ProviderError(TowlineError):
    """A provider could not answer. The message is a sentence a person can act on (A3.21)."""

    code: ClassVar[str] = "provider_server"
    retryable: bool = False
    """Whether the same request may be sent again at once (A3.14)."""

    def __init__(
        self,
        message: str,
        *,
        provider: str = "",
        model: str = "",
        status: int | None = None,
        retry_after_s: float | None = None,
        reason: str | None = None,
        retryable: bool | None = None,
        details: dict[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
        body: str = "",
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s, reason=reason, details=details)
        if retryable is not None:
            self.retryable = retryable
        self.provider = provider
        """The provider's name."""
        self.model = model
        """The model that was asked."""
        self.status = status
        """The HTTP status; `None` when there was no answer."""
        self.headers: Mapping[str, str] = headers or {}
        """The answer's headers about limits, waiting and the request's id; names in lower case."""
        self.body = body
        """The beginning of what the provider sent, without the credential; for a person or a log
        that wants to know more than the message tells."""


class ProviderUnavailable(ProviderError):
    """The network, a 5xx, an overload or a silence; trying again may help."""

    code: ClassVar[str] = "provider_unavailable"
    retryable: bool = True


class RateLimited(ProviderError):
    """Too many requests for now; `retry_after_s` says how long, when the provider does."""

    code: ClassVar[str] = "provider_rate_limit"
    usual_scope: ClassVar[str | None] = "plan"
    limits: StatedLimits = StatedLimits()
    """What the provider said about its limits, so that the next minute can keep under them."""


class QuotaExhausted(ProviderError):
    """No credit or no plan left; waiting does not help."""

    code: ClassVar[str] = "provider_quota"
    usual_scope: ClassVar[str | None] = "plan"


class AuthenticationFailed(ProviderError):
    """The key is missing, wrong or may not do this."""

    code: ClassVar[str] = "provider_auth"


class ModelNotFound(ProviderError):
    """The provider has no such model."""

    code: ClassVar[str] = "provider_model_not_found"


class EndpointNotFound(ProviderError):
    """Nothing at that address speaks the dialect; the message shows the URL."""

    code: ClassVar[str] = "provider_endpoint_not_found"


class CertificateUntrusted(ProviderError):
    """The server's certificate is not trusted on this machine."""

    code: ClassVar[str] = "provider_certificate"


class RequestRejected(ProviderError):
    """The provider refuses the request as it is."""

    code: ClassVar[str] = "provider_request_rejected"


class ContextOverflow(RequestRejected):
    """The request does not fit the model's window."""

    code: ClassVar[str] = "provider_context_overflow"


class ResponseMalformed(ProviderError):
    """The answer is not what the dialect says, or ends too early."""

    code: ClassVar[str] = "provider_malformed"
    retryable: bool = True


class ToolError(TowlineError):
    """A tool failed in an expected way; the model is told the message and the loop goes on."""

    code: ClassVar[str] = "rejected"
    status: ClassVar[str] = "failed"
    """What `ToolEnded` says of the call."""


class ToolInputInvalid(ToolError):
    """The arguments do not fit; the message says what was expected (A4.17)."""


class ToolDenied(ToolError):
    """A person, a rule or the root's fence said no."""

    code: ClassVar[str] = "forbidden"


class ToolTimeout(ToolError):
    """The tool took longer than it may."""

    code: ClassVar[str] = "deadline_exceeded"


class OutcomeUnknown(ToolError):
    """Whoever ran it is gone: it may or may not have had its effect (C5.5)."""

    code: ClassVar[str] = "deadline_exceeded"
    status: ClassVar[str] = "unknown"


class AbortTurn(TowlineError):
    """Raised by a tool to end the turn as failed: the one way to do so (A4.59)."""

    code: ClassVar[str] = "rejected"

    def __init__(self, message: str = "A tool ended the turn.", **facts: Any) -> None:
        super().__init__(message, **facts)


class LimitReached(TowlineError):
    """A bound of the turn was reached where no orderly end is possible."""

    code: ClassVar[str] = "rejected"
    usual_scope: ClassVar[str | None] = "turn"
