"""The process that runs the model; `server` starts this file as a program.

It imports the standard library and the engine alone, so that it starts fast and stays small.

It speaks one line each way. In: a JSON object on stdin with what to load, the access key in it, so
that the key stands in no argument list and no environment. Out: `{"url": ...}` once it answers, or
`{"error": kind, "detail": text}`. It ends when stdin ends, and so with its parent, however that
ends.
"""

import importlib
import json
import os
import sys
import threading
from pathlib import Path
from typing import IO, Any, cast

__all__ = ["CHECK_ONLY", "ENGINE", "ENGINE_MISSING", "LIBRARY_MISSING", "LOAD_FAILED", "main"]

ENGINE = "xllamacpp"
"""The module of the engine: llama.cpp's own HTTP server in a wheel."""

CHECK_ONLY = "check"
"""The key of an order that only loads the engine, to see whether it is there."""

ENGINE_MISSING = "engine_missing"
"""The answer when the engine's package is not installed."""
LIBRARY_MISSING = "library_missing"
"""The answer when a library of the system that it needs is not there."""
LOAD_FAILED = "load_failed"
"""The answer when the engine cannot load the model."""


def main() -> None:
    """Take one order from stdin, carry it out, and stay until stdin ends."""
    answers = _take_stdout()
    order = cast("dict[str, Any]", json.loads(sys.stdin.readline() or "{}"))
    if not order:
        return
    watcher = threading.Thread(target=_leave_with_parent, daemon=True)
    watcher.start()
    server, answer = _carry_out(order)
    answers.write(json.dumps(answer) + "\n")
    answers.flush()
    if server is not None:
        watcher.join()


def _take_stdout() -> IO[str]:
    """Keep stdout for the answer alone: what the engine prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return answers


def _leave_with_parent() -> None:
    """End the process when stdin ends. The engine's own threads would keep it alive."""
    while os.read(0, 4096):
        continue
    os._exit(0)


def _carry_out(order: dict[str, Any]) -> tuple[Any, dict[str, str]]:
    """The running server (keep it: it stops when it is dropped) and the answer to the parent."""
    try:
        engine = cast("Any", importlib.import_module(ENGINE))
    except ImportError as error:
        absent = isinstance(error, ModuleNotFoundError) and error.name == ENGINE
        kind = ENGINE_MISSING if absent else LIBRARY_MISSING
        return None, {"error": kind, "detail": str(error)}
    if CHECK_ONLY in order:
        return None, {"url": ""}
    try:
        server = engine.Server(_engine_settings(engine, order))
    except (RuntimeError, ValueError, OSError, MemoryError) as error:
        return None, {"error": LOAD_FAILED, "detail": str(error)}
    return server, {"url": str(server.listening_address)}


def _engine_settings(engine: Any, order: dict[str, Any]) -> Any:
    settings = engine.CommonParams()
    settings.model.path = order["model"]
    settings.model_alias = {order["alias"]}
    settings.use_jinja = True
    if order["template"]:
        settings.chat_template = Path(order["template"]).read_text(encoding="utf-8")
    settings.hostnames, settings.port, settings.api_keys = ["127.0.0.1"], 0, [order["key"]]
    settings.ui, settings.offline = False, True
    settings.n_ctx, settings.n_parallel = order["context_tokens"], 1
    # It tells how much it has read after each batch: a small one computes no slower here.
    settings.n_batch = 512
    settings.cpuparams.n_threads = order["threads"]
    settings.cpuparams_batch.n_threads = order["threads"]
    settings.sampling.temp = order["temperature"]
    # Else the weights are kept a second time, repacked: 1.95 GB instead of 1.35 GB.
    settings.no_extra_bufts = True
    settings.cache_ram_mib = order["cache_mib"]
    return settings


if __name__ == "__main__":
    main()
