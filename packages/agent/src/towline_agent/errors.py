"""What can go wrong in the agent library.

```
TowlineError
├─ ProviderError (.provider .model .status .retryable .retry_after_s)
│  ├─ ProviderUnavailable      the network, a 5xx, an overload, a silence
│  ├─ RateLimited              too many requests for now
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
│  └─ ToolTimeout              it took too long
├─ AbortTurn                   a tool's one way to end the turn, as failed
└─ LimitReached                a bound of the turn
```
"""

from typing import ClassVar

from towline_protocol import TowlineError

__all__ = [
    "AbortTurn",
    "AuthenticationFailed",
    "CertificateUntrusted",
    "ContextOverflow",
    "EndpointNotFound",
    "LimitReached",
    "ModelNotFound",
    "ProviderError",
    "ProviderUnavailable",
    "QuotaExhausted",
    "RateLimited",
    "RequestRejected",
    "ResponseMalformed",
    "ToolDenied",
    "ToolError",
    "ToolInputInvalid",
    "ToolTimeout",
]


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
    ) -> None:
        super().__init__(message, retry_after_s=retry_after_s, reason=reason)
        if retryable is not None:
            self.retryable = retryable
        self.provider = provider
        """The provider's name."""
        self.model = model
        """The model that was asked."""
        self.status = status
        """The HTTP status; `None` when there was no answer."""


class ProviderUnavailable(ProviderError):
    """The network, a 5xx, an overload or a silence; trying again may help."""

    code: ClassVar[str] = "provider_unavailable"
    retryable: bool = True


class RateLimited(ProviderError):
    """Too many requests for now; `retry_after_s` says how long, when the provider does."""

    code: ClassVar[str] = "provider_rate_limit"


class QuotaExhausted(ProviderError):
    """No credit or no plan left; waiting does not help."""

    code: ClassVar[str] = "provider_quota"


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


class ToolInputInvalid(ToolError):
    """The arguments do not fit; the message says what was expected (A4.17)."""


class ToolDenied(ToolError):
    """A person, a rule or the root's fence said no."""

    code: ClassVar[str] = "forbidden"


class ToolTimeout(ToolError):
    """The tool took longer than it may."""

    code: ClassVar[str] = "deadline_exceeded"


class AbortTurn(TowlineError):
    """Raised by a tool to end the turn as failed: the one way to do so (A4.59)."""

    code: ClassVar[str] = "rejected"


class LimitReached(TowlineError):
    """A bound of the turn was reached where no orderly end is possible."""

    code: ClassVar[str] = "capacity_exceeded"
