"""Where a provider is asked instead of its own address, and whom it is trusted by: no secrets."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import msgspec

from towline.secrets import SecretsUnavailable
from towline.secrets.private_file import locked, read_private, write_private

__all__ = ["ProviderSettings", "Setting"]

_FILE: Final = "providers.json"


class Setting(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a person has set for one provider."""

    base_url: str = ""
    """Another address than its own; empty for none."""
    ca_file: str = ""
    """A PEM file to trust besides the system's; empty for none."""


class ProviderSettings:
    """A small file in the data folder. All calls block for a bounded time.

    Args:
        data_dir: The data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / _FILE
        self._lock = data_dir / f"{_FILE}.lock"

    def read(self) -> dict[str, Setting]:
        """All settings, by provider.

        Raises:
            SecretsUnavailable: The file cannot be read.
        """
        content = read_private(self._path)
        if content is None:
            return {}
        try:
            return msgspec.json.decode(content, type=dict[str, Setting])
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise SecretsUnavailable(
                f"The file {str(self._path)!r} is damaged; move it away and set the addresses anew."
            ) from error

    def set(self, provider: str, setting: Setting) -> None:
        """Keep a provider's setting, in place of any before it.

        Raises:
            SecretsUnavailable: It cannot be kept.
        """
        with locked(self._lock):
            rows: Mapping[str, Setting] = {**self.read(), provider: setting}
            kept = {name: row for name, row in rows.items() if row != Setting()}
            write_private(self._path, msgspec.json.format(msgspec.json.encode(kept)))
