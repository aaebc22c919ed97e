"""The embedded local model: what answers when there is no provider key.

```
path = await ensure_model(on_progress=..., on_note=...)   # found, or fetched and checked
async with serve_model(path) as model:                    # model.base_url, model.key, model.facts
    speed = await model.warm(system, tools)
```
"""

from towline.local.errors import (
    DiskFull,
    EngineMissing,
    LibraryMissing,
    LocalModelError,
    ModelFolderUnusable,
    ModelHashWrong,
    ModelServerFailed,
    ModelUnavailable,
    ModelUnreadable,
)
from towline.local.facts import QWEN_CODER, HubFile, LocalModelFacts, PartWheels
from towline.local.model_file import (
    cached_model,
    ensure_model,
    model_facts,
    model_folder,
    named_model,
)
from towline.local.notice import describe_local_model
from towline.local.progress import FetchProgress
from towline.local.server import LocalModel, Speed, Work, check_engine, serve_model

__all__ = [
    "QWEN_CODER",
    "DiskFull",
    "EngineMissing",
    "FetchProgress",
    "HubFile",
    "LibraryMissing",
    "LocalModel",
    "LocalModelError",
    "LocalModelFacts",
    "ModelFolderUnusable",
    "ModelHashWrong",
    "ModelServerFailed",
    "ModelUnavailable",
    "ModelUnreadable",
    "PartWheels",
    "Speed",
    "Work",
    "cached_model",
    "check_engine",
    "describe_local_model",
    "ensure_model",
    "model_facts",
    "model_folder",
    "named_model",
    "serve_model",
]
