"""`/trust`: let the own files of a session's folder count, exactly as they were shown."""

from typing import Final

from towline.cli.visible import show_line
from towline_client import Client, Session
from towline_protocol import TrustInfo, UsageError

__all__ = ["FORGET", "trust"]

FORGET: Final = "no"
"""What stands behind `/trust` to trust the folder no longer."""

_SHOWN: Final = 8  # characters of the digest: what is trusted must be what was seen
_MEANS: Final = (
    "To trust them means: rules among them may allow things without asking, commands can be typed "
    "as /NAME, and servers among them are started. Without it they can only make things stricter."
)


async def trust(client: Client, session: Session, words: str) -> str:
    """Show the folder's own files, or trust those that were shown.

    Args:
        client: The server; not used.
        session: The session; its folder is meant.
        words: Nothing, to show them; the code that stood below them, to trust them; `FORGET`.

    Raises:
        UsageError: The words are none of these, or the files are others by now.
        CommandRejected: The caller may not, or the files can't be trusted.
    """
    del client
    if words == FORGET:
        await session.project.set_trust(None)
        return "(not trusted: the folder's own files can only make things stricter)"
    found = await session.project.trust()
    code = found.digest[:_SHOWN]
    if not words:
        return _show(found, code)
    if words != code:
        raise UsageError(
            f"/trust {show_line(words[:20])} names no files that are there now; /trust shows those "
            "there are, and how to trust them."
        )
    await session.project.set_trust(found.digest)
    return "(trusted until one of these files changes)"


def _show(found: TrustInfo, code: str) -> str:
    if not found.files and not found.problems:
        return f"{show_line(found.folder)} has no rules, commands or servers of its own."
    lines = [f"{show_line(found.folder)} brings along:"]
    lines += [f"  {show_line(name)}" for name in found.files]
    lines += [f"  rule: {show_line(rule)}" for rule in found.rules]
    lines += [f"  problem: {show_line(problem)}" for problem in found.problems]
    if found.trusted:
        return "\n".join((*lines, f"You trust them. /trust {FORGET} ends that."))
    if found.changed:
        lines.append("They have changed since you trusted them.")
    return "\n".join((*lines, _MEANS, f"Type /trust {code} to trust exactly these."))
