"""What can go wrong with the local model, each with the next step in its message.

```
LocalModelError              root of this branch; never raised itself
├─ ModelUnreadable           the file is not there or not a GGUF the engine can load
├─ ModelHashWrong            the bytes are not the pinned model
├─ ModelUnavailable          no source gave the model (offline, all refused)
├─ SourceFailed              one source did not give it; the next one is tried
├─ ModelFolderUnusable       the cache folder cannot be written
│  └─ DiskFull               there is no room for the model
├─ EngineMissing             the extra `local` is not installed
├─ LibraryMissing            a system library of the engine is not installed
└─ ModelServerFailed         the model server did not start, or ended by itself
```
"""

from typing import ClassVar

from towline_protocol import TowlineError

__all__ = [
    "OTHER_WAYS",
    "DiskFull",
    "EngineMissing",
    "LibraryMissing",
    "LocalModelError",
    "ModelFolderUnusable",
    "ModelHashWrong",
    "ModelServerFailed",
    "ModelUnavailable",
    "ModelUnreadable",
    "SourceFailed",
]

OTHER_WAYS = (
    "name a GGUF file with `--model FILE`, or set a provider key such as "
    "`export ANTHROPIC_API_KEY=…`"
)
"""The end of a message when the embedded model is out of reach: what works without it."""


class LocalModelError(TowlineError):
    """Catch this to handle any failure of the local model. Never raised itself."""

    code: ClassVar[str] = "capability_unavailable"


class ModelUnreadable(LocalModelError):
    """The model file is missing, or is no GGUF that the engine can load."""


class ModelHashWrong(LocalModelError):
    """What was fetched is not the pinned model; it was deleted and never used."""


class ModelUnavailable(LocalModelError):
    """No source gave the model. What has been fetched is kept, so a later run goes on there."""


class SourceFailed(LocalModelError):
    """One source did not give the model; the message is the reason alone, as part of a line."""


class ModelFolderUnusable(LocalModelError):
    """The folder for models cannot be written."""


class DiskFull(ModelFolderUnusable):
    """There is no room for the model on the disk of its folder."""


class EngineMissing(LocalModelError):
    """The engine is not installed: it comes with the extra `local`."""


class LibraryMissing(LocalModelError):
    """The engine is installed, but a system library that it needs is not."""


class ModelServerFailed(LocalModelError):
    """The model server did not start, or ended by itself."""
