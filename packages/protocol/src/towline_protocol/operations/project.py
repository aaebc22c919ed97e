"""What the folder of a session offers."""

from typing import Final

from towline_protocol.commands.project import (
    CommandList,
    PathList,
    RunCommand,
    SetTrust,
    StartInfo,
    SuggestionList,
    ToolList,
    TrustInfo,
)
from towline_protocol.commands.talk import PromptAccepted
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

ROWS: Final = (
    Operation(
        name="get_start",
        method="GET",
        path="/api/start",
        summary="Tell what a session would have that began in a folder: commands, mode, model.",
        query=("folder",),
        answer=StartInfo,
        faults=("forbidden",),
    ),
    Operation(
        name="list_start_paths",
        method="GET",
        path="/api/start/paths",
        summary="List files of a folder that a session may begin in, for `@`.",
        query=("folder", "prefix", "limit"),
        answer=PathList,
        faults=("forbidden", "rejected"),
    ),
    Operation(
        name="list_paths",
        method="GET",
        path="/api/sessions/{session}/paths",
        summary="List files and folders of the session's folder that may be meant, for `@`.",
        query=("prefix", "limit"),
        answer=PathList,
        faults=("not_found", "gone", "rejected"),
    ),
    Operation(
        name="list_commands",
        method="GET",
        path="/api/sessions/{session}/commands",
        summary="List the commands of the session, for `/`.",
        answer=CommandList,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="run_command",
        method="POST",
        path="/api/sessions/{session}/commands/{command}",
        summary="Say what a command stands for; it is durable before this answers.",
        request=RunCommand,
        answer=PromptAccepted,
        status=202,
        faults=("not_found", "gone", "conflict", "rejected", "capacity_exceeded", "rate_limited"),
        idempotent=True,
    ),
    Operation(
        name="list_suggestions",
        method="GET",
        path="/api/sessions/{session}/suggestions",
        summary="List prompts to begin with in the session's folder.",
        answer=SuggestionList,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="list_tools",
        method="GET",
        path="/api/sessions/{session}/tools",
        summary="List the tools that the session's model may call.",
        answer=ToolList,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="get_trust",
        method="GET",
        path="/api/sessions/{session}/trust",
        summary="Read whether the own files of the session's folder count, and which these are.",
        answer=TrustInfo,
        faults=("not_found", "gone"),
    ),
    Operation(
        name="set_trust",
        method="POST",
        path="/api/sessions/{session}/trust",
        summary="Trust the own files of the session's folder as they were seen, or no longer.",
        request=SetTrust,
        answer=TrustInfo,
        faults=("not_found", "gone", "conflict"),
        admin=True,
    ),
)
"""The rows of this part of the table."""
