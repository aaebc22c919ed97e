"""A kept sign-in as something that requests can carry."""

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Final

import msgspec

from towline.secrets.provider import Login, keep_login, stored_login
from towline.secrets.store import SecretsUnavailable
from towline.secrets.wallet import open_wallet
from towline_agent import (
    CA_SETTING,
    OAUTH_SERVICES,
    BearerCredential,
    Credential,
    OAuthClient,
    OAuthCredential,
    OAuthTokens,
)

__all__ = ["login_credential", "stored_credential"]

_log: Final = logging.getLogger("towline")


def stored_credential(provider: str, environ: Mapping[str, str] = os.environ) -> Credential | None:
    """The sign-in that is kept for a provider, ready for its requests; `None` when there is none.

    The first question of a process may take some seconds; see `stored_keys`.
    """
    login = stored_login(provider, environ)
    return login_credential(provider, login, environ) if login is not None else None


def login_credential(provider: str, login: Login, environ: Mapping[str, str]) -> Credential:
    """A sign-in, ready for requests. A refresh token that the service replaces is kept."""
    if login.refresh is None and login.expires_ms is None:
        return BearerCredential(login.access, login.project)

    async def keep(tokens: OAuthTokens) -> None:
        changed = msgspec.structs.replace(login, refresh=tokens.refresh, access="", expires_ms=None)
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, keep_login, open_wallet(environ), provider, changed)
        except SecretsUnavailable as error:
            # the request goes on: this process has the new token
            _log.warning("The sign-in for %s could not be kept: %s", provider, error.message)

    return OAuthCredential(
        OAUTH_SERVICES[provider],
        OAuthClient(id=login.client_id, secret=login.client_secret),
        OAuthTokens(access=login.access, refresh=login.refresh, expires_ms=login.expires_ms),
        project=login.project,
        keep=keep,
        ca_file=environ.get(CA_SETTING) or None,
    )
