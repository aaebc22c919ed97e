"""What a scripted server answers about the folder of a session."""

from typing import Final

from towline_client.testing.log import ScriptedSession
from towline_client.testing.reply import give, part_of, read_body, refuse
from towline_client.testing.stage import Handler, Stage
from towline_client.transport import Call, Reply
from towline_protocol import (
    CommandInfo,
    CommandList,
    PathList,
    RunCommand,
    SuggestionList,
    Text,
    ToolInfo,
    ToolList,
)

__all__ = ["PROJECT"]

_TOOLS: Final = (
    ToolInfo(name="read_file", about="Read a text file. Line by line.", effect="read"),
    ToolInfo(name="run_program", about="Run one program.", effect="exec"),
)


def _paths(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del session
    typed = call.query.get("prefix", "")
    return give(call, PathList(paths=tuple(p for p in stage.paths if p.startswith(typed))))


def _commands(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del session
    own = (
        CommandInfo(name=name, about=words, source="user", operation="run_command")
        for name, words in stage.commands.items()
    )
    ours = CommandInfo(name="help", about="list these", operation="list_commands")
    return give(call, CommandList(commands=(ours, *own)))


def _run(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    name = part_of(call, 4)
    words = {"init": "Write AGENTS.md.", **stage.commands}.get(name)
    if words is None:
        why = f"There is no command {name!r}; list the commands."
        return refuse("rejected", why, reason="unknown_command")
    if session.view.closed is not None:
        return refuse("gone", "The session is closed; make a new one.")
    asked = read_body(call, RunCommand)
    said = (Text(text=f"{words} {asked.arguments}".strip()),)
    key = call.headers.get("idempotency-key")
    return give(call, stage.admit(session, said, when=asked.when, key=key))


def _suggestions(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage, session
    return give(call, SuggestionList(suggestions=("Tell me what is in this folder.", "/init")))


def _tools(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del stage, session
    return give(call, ToolList(tools=_TOOLS))


PROJECT: Final[dict[str, Handler]] = {
    "list_paths": _paths,
    "list_commands": _commands,
    "run_command": _run,
    "list_suggestions": _suggestions,
    "list_tools": _tools,
}
"""Operation name to what answers it."""
