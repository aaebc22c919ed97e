"""The model that a person named last for each provider (A2.87)."""

import os
import tempfile
from pathlib import Path
from typing import Final

import msgspec

__all__ = ["Picks"]

_FILE: Final = "picks.json"
_ALL: Final = "*"  # no provider is called so


class Picks:
    """A small file in the data folder. One that cannot be read or written does no harm.

    Args:
        data_dir: The data folder.
    """

    def __init__(self, data_dir: Path) -> None:
        self._path = data_dir / _FILE

    def last(self, provider: str) -> str | None:
        """The last pick as `provider/model`; `None` when there is none."""
        return self._read().get(provider)

    @property
    def chosen(self) -> str | None:
        """The model that was chosen for all new sessions; `None` when nobody has."""
        return self._read().get(_ALL)

    def choose(self, model: str | None) -> None:
        """Keep the model of all new sessions.

        Args:
            model: `provider/model`; `None` to choose by what is there, as if nobody had.

        Raises:
            OSError: It cannot be kept.
        """
        picks = self._read()
        picks.pop(_ALL, None)
        if model is not None:
            picks[_ALL] = model
        self._write(msgspec.json.format(msgspec.json.encode(picks)))

    def remember(self, model: str) -> None:
        """Remember a model that a person named.

        Args:
            model: `provider/model`, or `provider+dialect/model`.
        """
        provider = model.partition("/")[0].partition("+")[0]
        picks = self._read()
        if not provider or picks.get(provider) == model:
            return
        picks[provider] = model
        try:
            self._write(msgspec.json.format(msgspec.json.encode(picks)))
        except OSError:
            return  # the next start chooses as if nothing had been named

    def _read(self) -> dict[str, str]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, str])
        except (OSError, msgspec.DecodeError, UnicodeDecodeError):
            return {}

    def _write(self, content: bytes) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        handle, name = tempfile.mkstemp(dir=self._path.parent, prefix=_FILE)
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(content)
            Path(name).replace(self._path)  # whole or not at all
        except OSError:
            Path(name).unlink(missing_ok=True)
            raise
