"""Which model answers: what a person named, else a key from the environment, else the local one."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from towline.local_provider import LOCAL_MODEL, LocalProvider, OnNote, OnProgress, Warm
from towline_agent import connect, discover
from towline_server import Connection

__all__ = ["Choice", "Models", "choose_model"]


@dataclass(frozen=True, kw_only=True)
class Choice:
    """The model of new sessions."""

    model: str
    """`provider/model`."""
    why: str
    """One sentence for a person (A2.90)."""
    file: Path | None = None
    """A model file that was named."""

    @property
    def local(self) -> bool:
        """Whether it runs on this machine inside towline."""
        return self.model == LOCAL_MODEL


def choose_model(named: str | None, environ: Mapping[str, str] = os.environ) -> Choice:
    """Choose the model of new sessions (A2.85, A2.86).

    Args:
        named: `provider/model`, a path of a GGUF file, or `None` to look.
        environ: Where keys are looked for.
    """
    if named is not None and named.endswith(".gguf"):
        return Choice(model=LOCAL_MODEL, why=f"{named} was named.", file=Path(named))
    if named is not None:
        return Choice(model=named, why=f"{named} was named.")
    for found in discover(environ):
        if found.model is not None:
            return Choice(model=f"{found.provider}/{found.model}", why=f"{found.why}.")
    return Choice(
        model=LOCAL_MODEL,
        why="No provider key is set in the environment, so a small model runs on this machine.",
    )


class Models:
    """Makes connections; the embedded model is started once and shared."""

    def __init__(
        self,
        choice: Choice,
        *,
        environ: Mapping[str, str] = os.environ,
        on_progress: OnProgress = lambda done, total, source: None,
        on_note: OnNote = lambda note: None,
        warm: Warm | None = None,
    ) -> None:
        self.choice = choice
        """The model of new sessions."""
        self._environ = environ
        self._on_progress = on_progress
        self._on_note = on_note
        self._warm = warm
        self._local: LocalProvider | None = None

    @property
    def local(self) -> LocalProvider:
        """The embedded model; made at the first look, started at the first use."""
        if self._local is None:
            self._local = LocalProvider(
                file=self.choice.file,
                on_progress=self._on_progress,
                on_note=self._on_note,
                warm=self._warm,
            )
        return self._local

    async def connect(self, model: str) -> Connection:
        """The provider of a model.

        Raises:
            UsageError: There is no such provider.
            AuthenticationFailed: It needs a key that is not set.
        """
        if model == LOCAL_MODEL:
            return Connection(self.local, self.local.slot)
        return Connection(connect(model, self._environ))
