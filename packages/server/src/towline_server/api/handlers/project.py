"""What the folder of a session offers."""

from typing import Final, cast

from towline_agent import ToolError, expand_command
from towline_protocol import (
    CommandInfo,
    CommandList,
    PathList,
    PromptAccepted,
    RunCommand,
    SetTrust,
    StartInfo,
    SuggestionList,
    Text,
    ToolInfo,
    ToolList,
    TrustInfo,
    UsageError,
)
from towline_server.api.handlers.call import (
    MAX_WORD,
    Call,
    Handler,
    check_length,
    check_limits,
    take_content,
)
from towline_server.errors import Rejected
from towline_server.sessions.inbox import WHEN, Said
from towline_server.sessions.policies import Trust
from towline_server.sessions.project import COMMANDS, INIT

__all__ = ["HANDLERS"]

_PAGE: Final = 50
_MAX_ARGUMENTS: Final = 40_000


async def _get_start(call: Call) -> StartInfo:
    projects, sessions = call.service.projects, call.service.sessions
    folder = _start_folder(call)
    commands = await _commands(call, folder)
    return StartInfo(
        folder=folder,
        roots=projects.roots,
        model=call.service.agents.default_model,
        mode=await sessions.usual_mode(call.user, folder),
        suggestions=await projects.suggestions(folder),
        commands=commands.commands,
        notices=commands.notices,
    )


async def _list_start_paths(call: Call) -> PathList:
    return await _paths(call, _start_folder(call))


def _start_folder(call: Call) -> str:
    return call.service.projects.folder(call.text("folder"))


async def _list_paths(call: Call) -> PathList:
    return await _paths(call, await _folder(call))


async def _paths(call: Call, cwd: str) -> PathList:
    try:
        paths, truncated = await call.service.projects.paths(
            cwd, call.text("prefix") or "", call.number("limit", _PAGE)
        )
    except ToolError as error:
        raise Rejected(error.message, reason="folder") from error
    return PathList(paths=paths, truncated=truncated)


async def _list_commands(call: Call) -> CommandList:
    return await _commands(call, await _folder(call))


async def _commands(call: Call, cwd: str) -> CommandList:
    found, notices = await call.service.projects.commands(cwd)
    own = (
        CommandInfo(
            name=command.name,
            about=command.about,
            takes=command.takes,
            source=command.source,
            operation="run_command",
        )
        for command in found
        if command is not INIT
    )
    return CommandList(commands=(*COMMANDS, *own), notices=notices)


async def _run_command(call: Call) -> PromptAccepted:
    body = cast("RunCommand", call.body)
    if body.when not in WHEN:
        raise UsageError(f"There is no when={body.when!r}; it is one of: {', '.join(WHEN)}.")
    check_limits(body.limits)
    check_length(_MAX_ARGUMENTS, arguments=body.arguments)
    session = await call.service.sessions.get(call.user, call.session, live=True)
    with session.in_use():
        cwd = session.log.view.cwd or "."
        command = await call.service.projects.command(cwd, call.request.path_params["command"])
        words = Text(text=expand_command(command, body.arguments).strip())
        taken = await take_content(call, (words,), cwd=cwd)
        said = Said(
            content=taken.content,
            notices=taken.notices,
            when=body.when,
            key=call.key,
            limits=body.limits,
        )
        return await session.admit(said, call.remember)


async def _list_suggestions(call: Call) -> SuggestionList:
    found = await call.service.projects.suggestions(await _folder(call))
    return SuggestionList(suggestions=found)


async def _list_tools(call: Call) -> ToolList:
    session = await call.service.sessions.get(call.user, call.session)
    tools = session.tools()
    return ToolList(
        tools=tuple(
            ToolInfo(name=tool.name, about=tool.description, effect=tool.effect) for tool in tools
        )
    )


async def _get_trust(call: Call) -> TrustInfo:
    return _tell_trust(await call.service.projects.policies.trust(await _open_folder(call)))


async def _set_trust(call: Call) -> TrustInfo:
    body = cast("SetTrust", call.body)
    check_length(MAX_WORD, digest=body.digest)
    policies = call.service.projects.policies
    return _tell_trust(await policies.set_trust(await _open_folder(call), body.digest))


def _tell_trust(trust: Trust) -> TrustInfo:
    return TrustInfo(
        folder=trust.folder,
        trusted=trust.trusted,
        changed=trust.changed,
        digest=trust.digest,
        files=trust.files,
        rules=trust.rules,
        problems=trust.problems,
        contents=trust.contents,
    )


async def _folder(call: Call) -> str:
    info = await call.service.sessions.info(call.user, call.session)
    return info.cwd or "."


async def _open_folder(call: Call) -> str:
    """The folder, unless it is gone or outside the roots by now."""
    folder = await _folder(call)
    call.service.projects.check(folder)
    return folder


HANDLERS: Final[dict[str, Handler]] = {
    "get_start": _get_start,
    "list_start_paths": _list_start_paths,
    "list_paths": _list_paths,
    "list_commands": _list_commands,
    "run_command": _run_command,
    "list_suggestions": _list_suggestions,
    "list_tools": _list_tools,
    "get_trust": _get_trust,
    "set_trust": _set_trust,
}
"""Operation name to handler."""
