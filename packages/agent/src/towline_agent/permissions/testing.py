"""What tests of permissions ask: what becomes of a shell command."""

from collections.abc import Iterable

from towline_agent.permissions.gate import Case, Verdict, judge
from towline_agent.permissions.rules import parse_rule
from towline_agent.permissions.shell.split import split_shell

__all__ = ["judge_shell"]


def judge_shell(
    command: str, root: str, *, mode: str = "ask", rules: Iterable[str] = ()
) -> Verdict:
    """What the gate says of a command.

    Args:
        command: The whole of it.
        root: The folder that it runs in.
        mode: The session's mode.
        rules: Rules as people write them.
    """
    return judge(
        Case(
            tool="shell",
            effect="exec",
            parts=split_shell(command, root=root),
            mode=mode,
            rules=tuple(parse_rule(rule) for rule in rules),
            root=root,
            whole=command,
        )
    )
