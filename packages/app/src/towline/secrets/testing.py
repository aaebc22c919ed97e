"""For tests: a store that forgets with the process."""

from towline.secrets.store import SecretsUnavailable

__all__ = ["MemorySecretStore"]


class MemorySecretStore:
    """A store in memory; see `SecretStore`.

    Args:
        title: What it calls itself.
    """

    def __init__(self, title: str = "memory") -> None:
        self.title = title
        """What it calls itself."""
        self.values: dict[str, str] = {}
        """What it keeps."""
        self.problem: str | None = None
        """While it is set, every call fails with this sentence."""
        self.calls = 0
        """How often it was called."""

    def get(self, name: str) -> str | None:
        """What is kept under a name."""
        self._answer()
        return self.values.get(name)

    def set(self, name: str, value: str) -> None:
        """Keep a text."""
        self._answer()
        self.values[name] = value

    def delete(self, name: str) -> None:
        """Forget a name."""
        self._answer()
        self.values.pop(name, None)

    def _answer(self) -> None:
        self.calls += 1
        if self.problem is not None:
            raise SecretsUnavailable(self.problem)
