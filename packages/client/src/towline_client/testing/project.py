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
    SetTrust,
    SuggestionList,
    Text,
    ToolInfo,
    ToolList,
    TrustInfo,
)

__all__ = ["PROJECT"]

_TOOLS: Final = (
    ToolInfo(name="read_file", about="Read a text file. Line by line.", effect="read"),
    ToolInfo(name="run_program", about="Run one program.", effect="exec"),
)


_DIGEST: Final = "0" * 64


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


def _trust(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del session
    return give(call, _trust_info(stage))


def _set_trust(stage: Stage, session: ScriptedSession, call: Call) -> Reply:
    del session
    asked = read_body(call, SetTrust)
    if asked.digest not in (None, _DIGEST):
        return refuse("conflict", "The files have changed since you looked.", reason="changed")
    stage.trusted = asked.digest is not None
    return give(call, _trust_info(stage))


def _trust_info(stage: Stage) -> TrustInfo:
    return TrustInfo(
        folder="/home/person",
        trusted=stage.trusted,
        digest=_DIGEST,
        files=(".towline/permissions.toml",),
        rules=("allow shell(make)",),
    )


PROJECT: Final[dict[str, Handler]] = {
    "list_paths": _paths,
    "list_commands": _commands,
    "run_command": _run,
    "list_suggestions": _suggestions,
    "list_tools": _tools,
    "get_trust": _trust,
    "set_trust": _set_trust,
}
"""Operation name to what answers it."""
