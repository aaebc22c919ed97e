"""OAuth for providers that want one: the addresses as data, and the token endpoint (A2.66, A2.68).

A person signs in with `sign_in.OAuthSignIn`; `credential.OAuthCredential` keeps the tokens fresh.
"""

import base64
import re
from collections.abc import Mapping
from typing import Final

import msgspec

from towline_agent.errors import AuthenticationFailed, ProviderError, ProviderUnavailable
from towline_agent.host import Clock
from towline_agent.providers.errors import Peer, answer_error, malformed_error, network_error
from towline_agent.providers.json_value import UNREADABLE
from towline_agent.providers.transport import (
    HttpAnswer,
    HttpCall,
    Transport,
    TransportFailed,
)

__all__ = [
    "OAUTH_SERVICES",
    "OAuthClient",
    "OAuthService",
    "OAuthTokens",
    "consent_url",
    "redeem_code",
    "refresh_tokens",
    "sign_in_again",
]

_TOKEN_IDLE_S: Final = 30.0
"""Seconds without a byte from a token endpoint: its answer is one short document."""
_OK: Final = range(200, 300)
_REFUSED: Final = frozenset({400, 401, 403})
"""Statuses with which a token endpoint says that this sign-in does not hold (RFC 6749, 5.2)."""
_PASSING: Final = frozenset(
    {"internal_failure", "rate_limit_exceeded", "server_error", "slow_down"}
    | {"temporarily_unavailable"}
)
"""Error codes that come with such a status all the same and pass by themselves."""
_ERROR_CODE: Final = r"[a-z_]{1,40}"
_GOOGLE_CLOUD: Final = "https://www.googleapis.com/auth/cloud-platform"


class OAuthService(msgspec.Struct, frozen=True, kw_only=True):
    """Where a provider lets people sign in, and for what."""

    provider: str
    """The provider's name in the catalog."""
    title: str
    """Who asks for the consent, for people."""
    authorize_url: str
    """The consent page."""
    token_url: str
    """Where codes and refresh tokens are redeemed."""
    scopes: tuple[str, ...]
    """What is asked for."""
    parameters: dict[str, str] = {}
    """What else the consent page is told."""
    refresh_prefixes: tuple[str, ...] = ()
    """How its refresh tokens begin: so that a pasted one is known (A2.72)."""
    needs_project: bool = False
    """Whether requests need a project besides the token."""


class OAuthClient(msgspec.Struct, frozen=True, kw_only=True):
    """The program that signs in: always the user's own registration (A2.69).

    Its `repr` does not show the secret.
    """

    id: str
    """The client id."""
    secret: str | None = None
    """The client secret; Google wants one of installed programs too."""

    def __repr__(self) -> str:
        return f"OAuthClient({self.id!r})"


class OAuthTokens(msgspec.Struct, frozen=True, kw_only=True):
    """What a sign-in gave. Its `repr` shows no token."""

    access: str = ""
    """Goes with requests; empty when the refresh token has to give one first."""
    refresh: str | None = None
    """Gives new access tokens; `None` when the sign-in ends with this one."""
    expires_ms: int | None = None
    """When the access token ends, in milliseconds since 1970; `None` when nobody knows."""

    def __repr__(self) -> str:
        return f"OAuthTokens(expires_ms={self.expires_ms!r})"


class _TokenAnswer(msgspec.Struct):
    access_token: str
    refresh_token: str | None = None
    expires_in: float | None = None
    scope: str | None = None


class _TokenRefusal(msgspec.Struct):
    error: str = ""
    error_description: str = ""


def _google(provider: str, *scopes: str, needs_project: bool = False) -> OAuthService:
    """Google's flow for installed programs, as its pages for desktop apps describe it."""
    return OAuthService(
        provider=provider,
        title="Google",
        authorize_url="https://accounts.google.com/o/oauth2/v2/auth",
        token_url="https://oauth2.googleapis.com/token",  # noqa: S106 - an address
        scopes=scopes,
        # without a consent page of its own, a second sign-in brings no refresh token
        parameters={"access_type": "offline", "prompt": "consent"},
        refresh_prefixes=("1/",),
        needs_project=needs_project,
    )


OAUTH_SERVICES: Final[dict[str, OAuthService]] = {
    service.provider: service
    for service in (
        _google(
            "gemini",
            _GOOGLE_CLOUD,
            "https://www.googleapis.com/auth/generative-language.retriever",
        ),
        _google("vertex", _GOOGLE_CLOUD, needs_project=True),
    )
}
"""The providers that people can sign in to, by name."""


def consent_url(
    service: OAuthService, client: OAuthClient, *, redirect_uri: str, state: str, verifier: str
) -> str:
    """The page on which a person consents.

    Args:
        service: Whose page.
        client: Who asks.
        redirect_uri: Where the browser is sent afterwards.
        state: Comes back with it, unguessable.
        verifier: The secret of PKCE; only its SHA-256 stands in the address (RFC 7636).
    """
    # Here and below: what a sign-in alone needs is not imported with every provider.
    import hashlib
    from urllib.parse import urlencode

    digest = hashlib.sha256(verifier.encode("ascii")).digest()
    query = {
        **service.parameters,
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "scope": " ".join(service.scopes),
        "state": state,
        "code_challenge": base64.urlsafe_b64encode(digest).rstrip(b"=").decode("ascii"),
        "code_challenge_method": "S256",
    }
    return f"{service.authorize_url}?{urlencode(query)}"


async def redeem_code(
    service: OAuthService,
    client: OAuthClient,
    *,
    code: str,
    verifier: str,
    redirect_uri: str,
    transport: Transport,
    clock: Clock,
) -> OAuthTokens:
    """The tokens for the code that a consent gave.

    Raises:
        AuthenticationFailed: The code or the client is not accepted, or a scope was not granted.
        ProviderError: The token endpoint could not be asked.
    """
    form = {
        "grant_type": "authorization_code",
        "code": code,
        "code_verifier": verifier,
        "redirect_uri": redirect_uri,
    }
    tokens, scope = await _ask(service, client, form, transport, clock)
    missing = set(service.scopes) - set((scope or " ".join(service.scopes)).split())
    if missing:
        raise AuthenticationFailed(
            f"The consent leaves out {', '.join(sorted(missing))}; {sign_in_again(service)} and "
            "allow all that is asked for.",
            provider=service.provider,
            reason="scope",
        )
    return tokens


async def refresh_tokens(
    service: OAuthService,
    client: OAuthClient,
    tokens: OAuthTokens,
    *,
    transport: Transport,
    clock: Clock,
) -> OAuthTokens:
    """New tokens for a refresh token; it stays the same unless the service sends another one.

    Raises:
        AuthenticationFailed: The sign-in does not hold any more; the message says how to get one.
        ProviderError: The token endpoint could not be asked; a retry may help.
    """
    if tokens.refresh is None:
        raise AuthenticationFailed(
            f"The access token for {service.provider!r} has ended and there is no refresh token; "
            f"{sign_in_again(service)}.",
            provider=service.provider,
            reason="token_expired",
        )
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh}
    fresh, _ = await _ask(service, client, form, transport, clock)
    return msgspec.structs.replace(fresh, refresh=fresh.refresh or tokens.refresh)


def sign_in_again(service: OAuthService) -> str:
    """What a person does when a sign-in does not hold."""
    return f"run `towline login {service.provider}`"


async def _ask(
    service: OAuthService,
    client: OAuthClient,
    form: Mapping[str, str],
    transport: Transport,
    clock: Clock,
) -> tuple[OAuthTokens, str | None]:
    """The tokens that the endpoint gives for a form, and the scopes that it names."""
    from urllib.parse import urlencode

    peer = Peer(provider=service.provider, model="", url=service.token_url)
    sent = {**form, "client_id": client.id}
    if client.secret:
        sent["client_secret"] = client.secret
    call = HttpCall(
        url=service.token_url,
        headers={
            "content-type": "application/x-www-form-urlencoded",
            "accept": "application/json",
        },
        body=urlencode(sent).encode("ascii"),
        idle_s=_TOKEN_IDLE_S,
    )
    asked_ms = clock.now_ms()
    try:
        answer = await transport.json(call)
    except TransportFailed as failure:
        raise network_error(peer, failure, call.idle_s) from failure
    if answer.status not in _OK:
        raise _refusal(service, peer, answer, (*sent.values(),), clock.now_ms())
    try:
        # some servers write the seconds as a string
        said = msgspec.json.decode(answer.body, type=_TokenAnswer, strict=False)
    except UNREADABLE:
        # `from None`: the text of the cause may quote a token
        raise malformed_error(peer) from None
    if not said.access_token:
        raise malformed_error(peer)
    expires_ms = None if said.expires_in is None else asked_ms + round(said.expires_in * 1000)
    tokens = OAuthTokens(
        access=said.access_token, refresh=said.refresh_token, expires_ms=expires_ms
    )
    return tokens, said.scope


def _refusal(
    service: OAuthService, peer: Peer, answer: HttpAnswer, secrets: tuple[str, ...], now_ms: int
) -> ProviderError:
    """The error that a refusal means. Its body is quoted only where no secret can be in it."""
    try:
        said = msgspec.json.decode(answer.body, type=_TokenRefusal)
    except UNREADABLE:
        said = _TokenRefusal()
    code = said.error if re.fullmatch(_ERROR_CODE, said.error) else ""
    if code in _PASSING:
        return ProviderUnavailable(
            f"{service.title} does not give tokens for {service.provider!r} just now ({code}); try "
            "again in a moment.",
            provider=service.provider,
            status=answer.status,
            reason=code,
        )
    if answer.status in _REFUSED:
        words = f" ({code})" if code and code not in secrets else ""
        return AuthenticationFailed(
            f"{service.title} does not accept the sign-in for {service.provider!r}{words}; "
            f"{sign_in_again(service)}.",
            provider=service.provider,
            status=answer.status,
            reason=code or "refused",
        )
    return answer_error(peer, status=answer.status, headers=answer.headers, body=b"", now_ms=now_ms)
