"""Tools that run in clients."""

from typing import Final, cast

from starlette.responses import Response

from towline_protocol import (
    CallId,
    ClaimCall,
    ClientCall,
    ClientCallEnded,
    DeclareTools,
    ReportProgress,
    SendResult,
    ToolsDeclared,
    UsageError,
)
from towline_server.api.handlers.call import MAX_NOTE, Call, Handler, check_length
from towline_server.sessions.client_call import ClientCalls

__all__ = ["HANDLERS"]


async def _declare_tools(call: Call) -> ToolsDeclared:
    body = cast("DeclareTools", call.body)
    calls = await _calls(call)
    return await calls.declare(body.reader, body.tools, call.remember)


async def _claim_call(call: Call) -> ClientCall:
    body = cast("ClaimCall", call.body)
    calls = await _calls(call)
    return await calls.claim(_id(call), body.reader, call.remember)


async def _report_progress(call: Call) -> Response:
    body = cast("ReportProgress", call.body)
    check_length(MAX_NOTE, text=body.text)
    if body.fraction is not None and not 0 <= body.fraction <= 1:
        raise UsageError(f"fraction={body.fraction!r} is no number from 0 to 1.")
    calls = await _calls(call)
    calls.report(_id(call), body.reader, body.text, body.fraction)
    return Response(status_code=204)


async def _send_result(call: Call) -> ClientCallEnded:
    body = cast("SendResult", call.body)
    calls = await _calls(call)
    return await calls.finish(
        _id(call), body.reader, body.content, is_error=body.is_error, remember=call.remember
    )


async def _calls(call: Call) -> ClientCalls:
    return (await call.service.sessions.get(call.user, call.session)).client_calls


def _id(call: Call) -> CallId:
    return CallId(call.request.path_params["call"])


HANDLERS: Final[dict[str, Handler]] = {
    "declare_tools": _declare_tools,
    "claim_call": _claim_call,
    "report_progress": _report_progress,
    "send_result": _send_result,
}
"""Operation name to handler."""
