"""Files that go to a model with no call of a tool, so that nobody is asked about them (A5.67)."""

from collections.abc import Callable

from towline_agent.errors import ToolDenied
from towline_agent.permissions.secret import is_secret
from towline_agent.workspaces.base import FileData, Workspace
from towline_agent.workspaces.threads import FILES
from towline_agent.workspaces.twin import follow

__all__ = ["SecretFile", "read_unasked"]


class SecretFile(ToolDenied):
    """A file that may hold secrets was to be shown with nobody asked."""


async def read_unasked(
    workspace: Workspace, path: str, *, secret: Callable[[str], bool] = is_secret
) -> FileData:
    """A file, unless it may hold secrets: by its own name, or by another that it has by a link.

    Args:
        workspace: Where it stands.
        path: The path as it was written.
        secret: Whether a path is a secret one.

    Raises:
        SecretFile: It may hold secrets.
        ToolDenied: It lies outside.
        ToolError: It cannot be read.
    """
    root = workspace.root
    lead = await FILES.run(lambda: follow(root, path, secret))
    if secret(path) or secret(lead.real) or lead.twin is not None:
        raise SecretFile(f"{path!r} may hold secrets, so it is not shown unasked.")
    return await workspace.read(path)
