"""Sign-ins: who can have one, with whose registration, and those that wait for a consent."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import msgspec

from towline.providers.names import find_provider
from towline.secrets import Login, check_secret
from towline_agent import (
    CA_SETTING,
    OAUTH_SERVICES,
    SIGN_IN_S,
    Clock,
    OAuthClient,
    OAuthService,
    OAuthSignIn,
    OAuthTokens,
    ProviderError,
    ProviderUnavailable,
)
from towline_protocol import (
    FinishSignIn,
    ProviderInfo,
    SignInStarted,
    StartSignIn,
    TowlineError,
    UsageError,
    format_time,
)
from towline_server import ConsentPending, Rejected, UpstreamUnavailable

__all__ = ["CLIENT_ID", "CLIENT_SECRET", "WaitingSignIns", "make_login", "named_project"]

CLIENT_ID: Final = "TOWLINE_GOOGLE_CLIENT_ID"
"""The environment variable that holds the user's own OAuth client."""
CLIENT_SECRET: Final = "TOWLINE_GOOGLE_CLIENT_SECRET"  # noqa: S105 - the name of a variable
"""The one that holds its secret."""

_PROJECTS: Final = ("GOOGLE_CLOUD_PROJECT", "GOOGLE_VERTEX_PROJECT")
_FINISH_S: Final = 25.0
"""Seconds that `finish` waits: less than the 30 s after which a client gives a request up."""


def named_project(environ: Mapping[str, str]) -> str | None:
    """The project that the environment names."""
    held = (environ.get(name, "").strip() for name in _PROJECTS)
    return next(filter(None, held), None)


def make_login(client: OAuthClient, tokens: OAuthTokens, project: str | None) -> Login:
    """What is kept of a consent: the refresh token, or the one access token that came."""
    if tokens.refresh is None:
        return Login(
            client_id=client.id,
            access=tokens.access,
            expires_ms=tokens.expires_ms,
            project=project,
        )
    return Login(
        client_id=client.id, client_secret=client.secret, refresh=tokens.refresh, project=project
    )


class _Waiting:
    """One sign-in that waits for a person."""

    def __init__(self) -> None:
        self.opened: asyncio.Future[OAuthSignIn] = asyncio.get_running_loop().create_future()
        self.task: asyncio.Task[ProviderInfo] | None = None

    @property
    def over(self) -> bool:
        return self.task is not None and self.task.done()


class WaitingSignIns:
    """Sign-ins under way; see `SignIns`. Close it, so that no listener stays open.

    Args:
        environ: The environment of one provider, with its CA file.
        keep: Keeps what a consent gave.
        clock: Time.
        finish_s: Seconds that `finish` waits for a consent.
    """

    def __init__(
        self,
        environ: Callable[[str], Mapping[str, str]],
        keep: Callable[[str, Login], Awaitable[ProviderInfo]],
        *,
        clock: Clock,
        finish_s: float = _FINISH_S,
    ) -> None:
        self._environ = environ
        self._keep = keep
        self._clock = clock
        self._finish_s = finish_s
        self._waiting: dict[str, _Waiting] = {}

    def waits(self, provider: str) -> bool:
        """Whether one waits for a person now."""
        waiting = self._waiting.get(provider)
        return waiting is not None and not waiting.over

    def problem(self, provider: str) -> str | None:
        """Why the last one came to nothing; `None` when it did not, or nobody tried."""
        waiting = self._waiting.get(provider)
        task = None if waiting is None else waiting.task
        if task is None or not task.done() or task.cancelled():
            return None
        error = task.exception()
        return error.message if isinstance(error, TowlineError) else None

    async def start(self, provider: str, asked: StartSignIn) -> SignInStarted:
        """Wait for a consent, in place of one that is waited for already."""
        name = find_provider(provider)
        service = _service(name)
        environ = self._environ(name)
        client = _client(service, asked, environ)
        project = _project(service, asked, environ)
        await self.cancel(name)
        waiting = self._waiting[name] = _Waiting()
        waiting.task = asyncio.create_task(
            self._run(waiting, service, client, project, environ.get(CA_SETTING) or None)
        )
        waiting.task.add_done_callback(_look)
        await asyncio.wait({waiting.task, waiting.opened}, return_when=asyncio.FIRST_COMPLETED)
        if not waiting.opened.done():
            del self._waiting[name]
            waiting.opened.cancel()
            await waiting.task  # it could not listen, and says why
        until_ms = self._clock.now_ms() + round(SIGN_IN_S * 1000)
        return SignInStarted(url=waiting.opened.result().url, expires_at=format_time(until_ms))

    async def finish(self, provider: str, back: FinishSignIn) -> ProviderInfo:
        """Hand in the address at which the browser ended, or wait for it to come back."""
        name = find_provider(provider)
        waiting = self._waiting.get(name)
        if waiting is None or waiting.task is None:
            raise Rejected(
                f"No sign-in for {name!r} waits; start one, then open its page.",
                reason="no_sign_in",
            )
        if back.address is not None and not waiting.over:
            waiting.opened.result().offer(back.address)
        try:
            async with asyncio.timeout(self._finish_s):
                info = await asyncio.shield(waiting.task)
        except TimeoutError as error:
            raise ConsentPending(
                "Nobody has consented so far; open the page of the sign-in, then ask again.",
                reason="consent_pending",
            ) from error
        except ProviderUnavailable as error:
            self._forget(name, waiting)
            raise UpstreamUnavailable(error.message, reason=error.reason) from error
        except ProviderError as error:
            self._forget(name, waiting)
            raise Rejected(error.message, reason=error.reason) from error
        self._forget(name, waiting)
        return msgspec.structs.replace(info, signing_in=False)

    async def cancel(self, provider: str) -> None:
        """Give it up; none at all is fine."""
        waiting = self._waiting.pop(find_provider(provider), None)
        if waiting is not None and waiting.task is not None:
            waiting.task.cancel()
            await asyncio.wait({waiting.task})

    async def aclose(self) -> None:
        """Give all of them up."""
        for provider in tuple(self._waiting):
            await self.cancel(provider)

    async def _run(
        self,
        waiting: _Waiting,
        service: OAuthService,
        client: OAuthClient,
        project: str | None,
        ca_file: str | None,
    ) -> ProviderInfo:
        async with OAuthSignIn(service, client, ca_file=ca_file) as sign_in:
            waiting.opened.set_result(sign_in)
            tokens = await sign_in.tokens()
        return await self._keep(service.provider, make_login(client, tokens, project))

    def _forget(self, name: str, waiting: _Waiting) -> None:
        if self._waiting.get(name) is waiting:
            del self._waiting[name]


def _look(task: asyncio.Task[ProviderInfo]) -> None:
    """Whoever asks is told what went wrong; nobody has to ask."""
    if not task.cancelled():
        task.exception()


def _service(provider: str) -> OAuthService:
    service = OAUTH_SERVICES.get(provider)
    if service is None:
        raise Rejected(
            f"There is no sign-in for {provider!r}; there is one for: {', '.join(OAUTH_SERVICES)}. "
            "Set a key instead.",
            reason="no_sign_in",
        )
    return service


def _client(service: OAuthService, asked: StartSignIn, environ: Mapping[str, str]) -> OAuthClient:
    """The user's own registration: no product's identity is borrowed (A2.69)."""
    named = (asked.client_id or environ.get(CLIENT_ID, "")).strip()
    if not named:
        raise UsageError(
            f"{service.title} wants to know which program signs in. Make an OAuth client of the "
            "kind 'Desktop app' in the Google Cloud console, and send its `client_id` and "
            "`client_secret`."
        )
    own = asked.client_id is None  # a secret goes with its own client alone
    secret = asked.client_secret or (environ.get(CLIENT_SECRET, "") if own else "")
    return OAuthClient(id=check_secret(named), secret=check_secret(secret.strip()) or None)


def _project(service: OAuthService, asked: StartSignIn, environ: Mapping[str, str]) -> str | None:
    project = (asked.project or named_project(environ) or "").strip()
    if service.needs_project and not project:
        raise UsageError(f"{service.provider!r} needs a project; send its name as `project`.")
    return check_secret(project) or None
