"""Models, their providers, and what was used."""

from typing import Final

from towline_protocol.commands.model import (
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
from towline_protocol.operations.operation import Operation

__all__ = ["ROWS"]

_ONE: Final = "/api/providers/{provider}"
_FAULTS: Final = ("not_found", "capability_unavailable", "rejected", "upstream_unavailable")

ROWS: Final = (
    Operation(
        name="list_models",
        method="GET",
        path="/api/models",
        summary="List the models that can be asked, with abilities and prices.",
        answer=ModelList,
        faults=("capability_unavailable",),
    ),
    Operation(
        name="set_default_model",
        method="PUT",
        path="/api/models/default",
        summary="Choose the model of sessions that name none, for all who use the server.",
        request=DefaultModel,
        answer=DefaultModel,
        faults=("capability_unavailable", "rejected"),
        admin=True,
    ),
    Operation(
        name="get_local_model",
        method="GET",
        path="/api/local-model",
        summary="Tell how the built-in model stands: how far its fetch is, what it does now.",
        answer=LocalModelState,
        faults=("capability_unavailable",),
    ),
    Operation(
        name="list_providers",
        method="GET",
        path="/api/providers",
        summary="List providers: where a key was found, its last four characters, the address.",
        answer=ProviderList,
        faults=("capability_unavailable", "upstream_unavailable"),
        admin=True,
    ),
    Operation(
        name="change_provider",
        method="PUT",
        path=_ONE,
        summary="Set a provider's key, backup keys, address or CA; counts for the next request.",
        request=ChangeProvider,
        answer=ProviderInfo,
        faults=_FAULTS,
        admin=True,
    ),
    Operation(
        name="remove_provider",
        method="DELETE",
        path=_ONE,
        summary="Forget what is kept for a provider: keys, sign-in, address and CA.",
        answer=ProviderInfo,
        faults=_FAULTS,
        admin=True,
    ),
    Operation(
        name="test_provider",
        method="POST",
        path=f"{_ONE}/test",
        summary="Ask a provider for its models with each of its keys, and say which work.",
        answer=ProviderTest,
        faults=_FAULTS,
        admin=True,
    ),
    Operation(
        name="start_sign_in",
        method="POST",
        path=f"{_ONE}/sign-in",
        summary="Begin a sign-in; the answer names the page to open.",
        request=StartSignIn,
        answer=SignInStarted,
        faults=_FAULTS,
        admin=True,
    ),
    Operation(
        name="finish_sign_in",
        method="POST",
        path=f"{_ONE}/sign-in/finish",
        summary="Hand in where the browser ended, or wait for it to come back.",
        request=FinishSignIn,
        answer=ProviderInfo,
        faults=(*_FAULTS, "conflict"),
        admin=True,
    ),
    Operation(
        name="cancel_sign_in",
        method="POST",
        path=f"{_ONE}/sign-in/cancel",
        summary="Give up a sign-in; one that does not wait is fine.",
        status=204,
        faults=("not_found", "capability_unavailable"),
        admin=True,
    ),
    Operation(
        name="get_usage",
        method="GET",
        path="/api/usage",
        summary="Tell what the caller has used and what it cost, by day, model or session.",
        query=("from", "to", "by"),
        answer=UsageReport,
    ),
)
"""The rows of this part of the table."""
