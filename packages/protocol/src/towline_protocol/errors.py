"""The root of the exception tree.

```
TowlineError                 root; .code, .fault(); never raised itself
├─ UsageError                the caller's own mistake: a bad argument, a bad setting
├─ ProtocolError             bytes that are not what the contract says
└─ VersionMismatch           the peer speaks another major version of the contract
```

`towline_agent.errors`, `towline_server.errors` and `towline_client.errors` grow their branches from
this root. Each class names its fault code, so a `Fault` can be made from it and back.
"""

from typing import Any, ClassVar

from towline_protocol.faults import FAULT_CODES, Fault

__all__ = ["ProtocolError", "TowlineError", "UsageError", "VersionMismatch"]


class TowlineError(Exception):
    """The root of every exception towline raises on purpose. Never raised itself."""

    code: ClassVar[str] = "internal_error"
    """The fault code that this class stands for."""
    usual_scope: ClassVar[str | None] = None
    """Whose limit or part it is when the raiser does not say: see `Fault.scope` (C2.2)."""

    def __init__(
        self,
        message: str,
        *,
        retry_after_s: float | None = None,
        reason: str | None = None,
        scope: str | None = None,
        details: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.retry_after_s = retry_after_s
        self.reason = reason
        self.scope = self.usual_scope if scope is None else scope
        self.details = details

    def fault(self) -> Fault:
        """This error as data, ready for an event or a problem answer."""
        row = FAULT_CODES.get(self.code)
        return Fault(
            code=self.code,
            # It may repeat what was given, and half a character of that can be sent to nobody.
            message=str(self.message).encode(errors="replace").decode(),
            retry=row.retry if row is not None else "none",
            retry_after_s=self.retry_after_s,
            scope=self.scope,
            reason=self.reason,
            details=self.details,
        )


class UsageError(TowlineError):
    """The caller's own mistake: a bad argument or setting. The message says what to change."""

    code: ClassVar[str] = "invalid_request"


class ProtocolError(TowlineError):
    """Bytes that are not what the contract says, such as a stream that ends inside a character."""

    code: ClassVar[str] = "invalid_request"


class VersionMismatch(TowlineError):
    """The peer speaks another major version of the contract; one of both must be updated."""

    code: ClassVar[str] = "version_mismatch"
