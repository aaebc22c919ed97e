"""The seam behind which secrets lie (A2.73)."""

from typing import ClassVar, Protocol

from towline_protocol import TowlineError

__all__ = ["SecretStore", "SecretsUnavailable"]


class SecretsUnavailable(TowlineError):
    """A store cannot be used now; the message says why in one sentence, and never a secret."""

    code: ClassVar[str] = "capability_unavailable"


class SecretStore(Protocol):
    """Keeps texts by name. All calls block for a bounded time.

    They raise `SecretsUnavailable` and nothing else of their own. What `set` has returned from is
    durable, and other processes see it; two that set different names at once lose nothing. There is
    nothing to close.
    """

    @property
    def title(self) -> str:
        """What it is and where, for people, such as `the system keyring`."""
        ...

    def get(self, name: str) -> str | None:
        """What is kept under a name; `None` for nothing."""
        ...

    def set(self, name: str, value: str) -> None:
        """Keep a text, in place of any before it."""
        ...

    def delete(self, name: str) -> None:
        """Forget a name; one that is not there is fine."""
        ...
