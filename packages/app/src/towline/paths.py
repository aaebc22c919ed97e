"""Where towline keeps its files (D1)."""

import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import platformdirs

__all__ = ["Paths", "find_paths"]


@dataclass(frozen=True, kw_only=True)
class Paths:
    """The three places."""

    config_file: Path
    """`config.toml`, which need not exist."""
    data_dir: Path
    """The store; lies outside every root."""
    run_file: Path
    """`run.json`: how programs of this user find the server."""


def find_paths(environ: Mapping[str, str] = os.environ) -> Paths:
    """The places on this machine; `TOWLINE_HOME` puts all of them in one folder."""
    home = environ.get("TOWLINE_HOME")
    if home:
        base = Path(home).expanduser().absolute()
        return Paths(
            config_file=base / "config.toml", data_dir=base / "data", run_file=base / "run.json"
        )
    data_dir = platformdirs.user_data_path("towline")
    # Without a runtime folder of the user's own, the data folder is the private place there is.
    has_runtime = bool(environ.get("XDG_RUNTIME_DIR")) or sys.platform == "darwin"
    run_dir = platformdirs.user_runtime_path("towline") if has_runtime else data_dir
    return Paths(
        config_file=platformdirs.user_config_path("towline") / "config.toml",
        data_dir=data_dir,
        run_file=run_dir / "run.json",
    )
