"""Calls about models: what there is, how providers are reached, what was used."""

from collections.abc import Sequence
from typing import Final, TypeVar, Unpack

import msgspec

from towline_client.caller import Caller
from towline_client.options import CallOptions
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

__all__ = ["Models"]

_T = TypeVar("_T", bound=msgspec.Struct)

_SLOW_S: Final = 60.0  # the server gives up by itself before that


class Models:
    """The models of a server, and for admins their providers; see `Client.models`.

    What names a provider raises `CommandRejected` when there is none.
    """

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def list_models(self, **options: Unpack[CallOptions]) -> ModelList:
        """Every model that can be asked, with abilities and prices."""
        return await self._caller.call("list_models", ModelList, try_s=_SLOW_S, options=options)

    async def set_default_model(
        self, model: str | None, **options: Unpack[CallOptions]
    ) -> DefaultModel:
        """Choose the model of sessions that name none, for all who use the server. For admins.

        Args:
            model: `provider/model`; `None` to let the server choose by what is there.

        Raises:
            CommandRejected: There is no such model, or the server's settings name another one.
        """
        return await self._caller.call(
            "set_default_model", DefaultModel, body=DefaultModel(model=model), options=options
        )

    async def local_model(self, **options: Unpack[CallOptions]) -> LocalModelState:
        """How the built-in model stands: how far its fetch is, what it does now."""
        return await self._caller.call("get_local_model", LocalModelState, options=options)

    async def list_providers(self, **options: Unpack[CallOptions]) -> ProviderList:
        """All providers, the usable ones first. For admins."""
        return await self._caller.call("list_providers", ProviderList, options=options)

    async def change_provider(
        self,
        provider: str,
        *,
        api_key: str | None = None,
        backup_keys: Sequence[str] | None = None,
        base_url: str | None = None,
        ca_file: str | None = None,
        **options: Unpack[CallOptions],
    ) -> ProviderInfo:
        """Say how a provider is reached; counts for the next request. For admins.

        With nothing to change the server reads again what is kept.

        Args:
            provider: Its name.
            api_key: The key to ask with first; `None` leaves it.
            backup_keys: All keys that stand in for it; `None` leaves them.
            base_url: Another address; empty for its own one, `None` leaves it.
            ca_file: A PEM file on the server; empty for none, `None` leaves it.

        Raises:
            CommandRejected: Something of it cannot be used, or cannot be kept.
        """
        body = ChangeProvider(
            key=api_key,
            backup_keys=None if backup_keys is None else tuple(backup_keys),
            base_url=base_url,
            ca_file=ca_file,
        )
        return await self._call("change_provider", ProviderInfo, provider, body, options)

    async def remove_provider(self, provider: str, **options: Unpack[CallOptions]) -> ProviderInfo:
        """Forget all that is kept for a provider. For admins."""
        return await self._call("remove_provider", ProviderInfo, provider, None, options)

    async def test_provider(self, provider: str, **options: Unpack[CallOptions]) -> ProviderTest:
        """Ask a provider for its models with each of its keys. For admins."""
        return await self._call("test_provider", ProviderTest, provider, None, options)

    async def start_sign_in(
        self,
        provider: str,
        *,
        client_id: str | None = None,
        client_secret: str | None = None,
        project: str | None = None,
        **options: Unpack[CallOptions],
    ) -> SignInStarted:
        """Begin a sign-in; the answer names the page to open. For admins.

        Args:
            provider: Its name.
            client_id: An OAuth client of your own; `None` for the server's environment.
            client_secret: Its secret.
            project: The project that requests are counted for.
        """
        body = StartSignIn(client_id=client_id, client_secret=client_secret, project=project)
        return await self._call("start_sign_in", SignInStarted, provider, body, options)

    async def finish_sign_in(
        self, provider: str, address: str | None = None, **options: Unpack[CallOptions]
    ) -> ProviderInfo:
        """End a sign-in that was consented to. For admins.

        Args:
            provider: Its name.
            address: Where the browser ended; `None` when it ran on the server's machine.

        Raises:
            CommandRejected: Nobody has consented so far (`consent_pending`), or there was none.
        """
        body = FinishSignIn(address=address)
        return await self._call("finish_sign_in", ProviderInfo, provider, body, options)

    async def cancel_sign_in(self, provider: str, **options: Unpack[CallOptions]) -> None:
        """Give up a sign-in; one that does not wait is fine. For admins."""
        await self._caller.tell("cancel_sign_in", params={"provider": provider}, options=options)

    async def get_usage(
        self,
        by: str = "day",
        *,
        first: str | None = None,
        last: str | None = None,
        **options: Unpack[CallOptions],
    ) -> UsageReport:
        """What the caller has used, and what it cost.

        Args:
            by: What a row is: `day`, `model` or `session`.
            first: The first day, `YYYY-MM-DD` in UTC; `None` for 30 days.
            last: The last one; `None` for today.
        """
        asked = {"by": by, "from": first, "to": last}
        query = {name: value for name, value in asked.items() if value is not None}
        return await self._caller.call("get_usage", UsageReport, query=query, options=options)

    async def _call(
        self,
        name: str,
        answer: type[_T],
        provider: str,
        body: msgspec.Struct | None,
        options: CallOptions,
    ) -> _T:
        params = {"provider": provider}
        return await self._caller.call(
            name, answer, params=params, body=body, try_s=_SLOW_S, options=options
        )
