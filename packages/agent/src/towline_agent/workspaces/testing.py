"""What tests of folders look at: all that stands below one, byte by byte."""

import os
import stat
from pathlib import Path

__all__ = ["Tree", "snapshot"]

Tree = dict[str, tuple[str, int, bytes]]
"""Path to kind (`file`, `dir` or `link`), permission bits (0 of a link), and bytes or target."""


def snapshot(root: Path) -> Tree:
    """All that stands below a folder, links not followed."""
    found: Tree = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        name = path.relative_to(root).as_posix()
        mode = stat.S_IMODE(status.st_mode)
        if stat.S_ISLNK(status.st_mode):
            found[name] = ("link", 0, os.fsencode(path.readlink()))
        elif stat.S_ISDIR(status.st_mode):
            found[name] = ("dir", mode, b"")
        else:
            found[name] = ("file", mode, path.read_bytes())
    return found
