"""What a scripted server answers to calls about models and their providers."""

from typing import Any, Final

from towline_protocol import (
    DefaultModel,
    KeyTest,
    LocalModelState,
    ModelInfo,
    ModelList,
    ProviderInfo,
    ProviderList,
    ProviderTest,
    SignInStarted,
    Usage,
    UsageReport,
    UsageRow,
)

__all__ = ["MODEL_ANSWERS"]

_PROVIDER: Final = ProviderInfo(
    provider="scripted",
    title="Scripted",
    state="ready",
    found="environment",
    key="abcd",
    model="scripted/model",
)
_DAY: Final = "2026-01-31"
_USED: Final = UsageRow(
    name=_DAY, requests=1, usage=Usage(input=100, output=20), cost=0.0, title=None
)

MODEL_ANSWERS: Final[dict[str, Any]] = {
    "list_models": ModelList(
        default="scripted/model",
        models=(ModelInfo(model="scripted/model", live=True),),
        faults={},
    ),
    "set_default_model": DefaultModel(model="scripted/model"),
    "get_local_model": LocalModelState(state="ready"),
    "list_providers": ProviderList(providers=(_PROVIDER,)),
    "change_provider": _PROVIDER,
    "remove_provider": _PROVIDER,
    "test_provider": ProviderTest(
        provider="scripted",
        models=("model",),
        keys=(KeyTest(key="abcd", found="environment", works=True, message="It works."),),
    ),
    "start_sign_in": SignInStarted(url="http://here/consent", expires_at=f"{_DAY}T09:15:00.000Z"),
    "finish_sign_in": _PROVIDER,
    "cancel_sign_in": None,
    "get_usage": UsageReport(
        by="day", first=_DAY, last=_DAY, rows=(_USED,), total=_USED, today_cost=0.0
    ),
}
"""Operation name to its answer; `None` for an empty one."""
