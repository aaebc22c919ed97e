"""Where a session works: a folder in one of the server's roots (D2)."""

import shlex
from collections.abc import Sequence
from pathlib import Path

from towline_protocol import UsageError
from towline_server.errors import Rejected, RootForbidden

__all__ = ["check_folder", "find_folder"]


def find_folder(cwd: str | None, roots: Sequence[Path]) -> str:
    """The folder that a client names, made absolute; the first root when it names none.

    Args:
        cwd: What the client says.
        roots: The folders this server may work in; one at least.

    Raises:
        UsageError: It is no folder.
        RootForbidden: It lies outside the roots, also by a link.
    """
    try:
        folder = Path(cwd).expanduser().resolve() if cwd else roots[0].resolve()
        found = folder.is_dir()
    except (OSError, RuntimeError, ValueError) as error:  # no access, `~nobody`, a NUL
        raise UsageError(f"{cwd!r} is no folder that can be used; name another one.") from error
    if not any(folder.is_relative_to(root.resolve()) for root in roots):
        named = ", ".join(str(root) for root in roots)
        raise RootForbidden(
            f"{str(folder)!r} lies outside the folders this server may work in ({named}); add "
            "it to `roots` in config.toml, or end this server by `towline stop` and start it by "
            f"`towline up --root {shlex.quote(str(folder))}`.",
            reason="outside_roots",
        )
    if not found:
        raise UsageError(f"{str(folder)!r} is not a folder; make it or name another one.")
    return str(folder)


def check_folder(cwd: str, roots: Sequence[Path]) -> None:
    """Refuse a turn of a session whose folder was moved, or that may not be worked in any more.

    Args:
        cwd: The session's folder.
        roots: The folders this server may work in now; none when nobody has said.

    Raises:
        Rejected: There is no such folder any more.
        RootForbidden: It lies outside the roots, also by a link.
    """
    if not roots:
        return
    try:
        folder = Path(cwd).resolve()
        found = folder.is_dir()
    except (OSError, RuntimeError, ValueError):  # no access, or a circle of links
        folder, found = Path(cwd), False
    if not found:
        raise Rejected(
            f"The folder of this session, {cwd!r}, is not there any more. Put it back, or begin "
            "another session in a folder that is there.",
            reason="folder_gone",
        )
    if not any(folder.is_relative_to(root.resolve()) for root in roots):
        named = ", ".join(str(root) for root in roots)
        raise RootForbidden(
            f"The folder of this session, {cwd!r}, lies outside the folders that this server may "
            f"work in now ({named}). Add it to `roots` in config.toml, or start the server by "
            f"`towline up --root {shlex.quote(cwd)}`; or begin another session.",
            reason="outside_roots",
        )
