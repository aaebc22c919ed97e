"""Models, their providers, and what was used."""

from typing import Final, cast

from starlette.responses import Response

from towline_protocol import (
    ChangeProvider,
    DefaultModel,
    FinishSignIn,
    LocalModelState,
    ModelList,
    ProviderInfo,
    ProviderList,
    ProviderTest,
    SignInStarted,
    StartSignIn,
    UsageReport,
)
from towline_server.api.handlers.call import MAX_WORD, Call, Handler, check_length
from towline_server.errors import ProvidersAbsent
from towline_server.models.providers import Providers

__all__ = ["HANDLERS"]


def _providers(call: Call) -> Providers:
    if call.service.providers is None:
        raise ProvidersAbsent(
            "This server has fixed models and keeps no keys; set them where it was started."
        )
    return call.service.providers


def _name(call: Call) -> str:
    return str(call.request.path_params["provider"])


async def _list_models(call: Call) -> ModelList:
    return await _providers(call).models()


async def _set_default_model(call: Call) -> DefaultModel:
    wanted = cast("DefaultModel", call.body)
    check_length(MAX_WORD, model=wanted.model)
    if wanted.model is not None:
        call.service.agents.check_model(wanted.model)
    return DefaultModel(model=await _providers(call).set_default(wanted.model))


async def _get_local_model(call: Call) -> LocalModelState:
    return await _providers(call).local_model()


async def _list_providers(call: Call) -> ProviderList:
    return await _providers(call).providers()


async def _change_provider(call: Call) -> ProviderInfo:
    info = await _providers(call).change(_name(call), cast("ChangeProvider", call.body))
    call.service.agents.renew()
    return info


async def _remove_provider(call: Call) -> ProviderInfo:
    info = await _providers(call).remove(_name(call))
    call.service.agents.renew()
    return info


async def _test_provider(call: Call) -> ProviderTest:
    return await _providers(call).test(_name(call))


async def _start_sign_in(call: Call) -> SignInStarted:
    return await _providers(call).sign_ins.start(_name(call), cast("StartSignIn", call.body))


async def _finish_sign_in(call: Call) -> ProviderInfo:
    back = cast("FinishSignIn", call.body)
    info = await _providers(call).sign_ins.finish(_name(call), back)
    call.service.agents.renew()
    return info


async def _cancel_sign_in(call: Call) -> Response:
    await _providers(call).sign_ins.cancel(_name(call))
    return Response(status_code=204)


async def _get_usage(call: Call) -> UsageReport:
    return await call.service.budget.report(
        call.user, call.text("by") or "day", first=call.text("from"), last=call.text("to")
    )


HANDLERS: Final[dict[str, Handler]] = {
    "list_models": _list_models,
    "set_default_model": _set_default_model,
    "get_local_model": _get_local_model,
    "list_providers": _list_providers,
    "change_provider": _change_provider,
    "remove_provider": _remove_provider,
    "test_provider": _test_provider,
    "start_sign_in": _start_sign_in,
    "finish_sign_in": _finish_sign_in,
    "cancel_sign_in": _cancel_sign_in,
    "get_usage": _get_usage,
}
"""Operation name to handler."""
