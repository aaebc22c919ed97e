"""What a project is, at a glance (A5.T5)."""

import posixpath

from towline_agent.errors import ToolError
from towline_agent.tools.builtin.place import look_at
from towline_agent.tools.code.overview import find_manifests, find_readme, show_overview
from towline_agent.tools.function import tool
from towline_agent.tools.tool import ToolContext
from towline_agent.workspaces.base import Workspace
from towline_agent.workspaces.text import decode_text
from towline_agent.workspaces.threads import FILES

__all__ = ["project_overview"]


@tool(
    effect="read",
    idempotent=True,
    title=lambda arguments: f"Look over {arguments['path']}",
    look=look_at("read"),
)
async def project_overview(context: ToolContext, path: str = ".") -> str:
    """Get a page about the project: languages, packages, entry points, dependencies, tasks, tests.

    Args:
        context: The call.
        path: Its folder.
    """
    walk = await context.workspace.walk(path)
    paths = [entry.name for entry in walk.entries if entry.kind == "file"]
    readme = find_readme(paths)
    wanted = [*find_manifests(paths), *([readme] if readme else [])]
    texts: dict[str, str] = {}
    for name in wanted:
        text = await _read(context.workspace, posixpath.join(path, name))
        if text is not None:
            texts[name] = text
    return await FILES.run(lambda: show_overview(paths, texts, truncated=walk.truncated))


async def _read(workspace: Workspace, path: str) -> str | None:
    try:
        decoded = decode_text((await workspace.read(path)).data)
    except ToolError:  # a link that leads outside, or gone meanwhile
        return None
    return None if decoded is None else decoded[0]
