"""One sign-in of a person at a provider: consent, the way back, the tokens (A2.66, A2.67, A2.71).

```python
async with OAuthSignIn(OAUTH_SERVICES["gemini"], client) as sign_in:
    print(sign_in.url)
    tokens = await sign_in.tokens()
```
"""

import asyncio
import re
import secrets
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self
from urllib.parse import parse_qs, urlsplit

from towline_agent.errors import AuthenticationFailed, ProviderError
from towline_agent.host import Clock, SystemClock
from towline_agent.providers.loopback import LoopbackListener, LoopbackPage
from towline_agent.providers.oauth import (
    OAuthClient,
    OAuthService,
    OAuthTokens,
    consent_url,
    redeem_code,
    sign_in_again,
)
from towline_agent.providers.transport import Transport
from towline_protocol import UsageError

__all__ = ["SIGN_IN_S", "OAuthSignIn"]

SIGN_IN_S: Final = 300.0
"""Seconds for a person to consent (A2.67)."""

_STATE_BYTES: Final = 32
_VERIFIER_BYTES: Final = 64
"""Gives 86 characters; PKCE allows 43 to 128."""
_MAX_FIELDS: Final = 32
"""Parameters of one way back; services send fewer than ten."""
_AROUND: Final = " \t\r\n'\"<>"
"""What people copy along with an address."""
_DENIED: Final = "access_denied"
_ERROR_CODE: Final = re.compile(r"[a-z_]{1,40}")

_RECEIVED: Final = LoopbackPage(
    status=200,
    title="Received",
    text="towline has your consent. Close this page and go back to where you started; it says "
    "there whether all went well.",
)
_REFUSED: Final = LoopbackPage(
    status=200,
    title="Not signed in",
    text="The consent was not given, so nothing was kept. Close this page; to try again, start "
    "over where you began.",
)
_STRANGE: Final = LoopbackPage(
    status=400,
    title="Not this sign-in",
    text="This does not belong to the sign-in that waits here, so it changes nothing. Use the page "
    "that the sign-in itself opened.",
)
_USED: Final = LoopbackPage(
    status=410,
    title="Already used",
    text="This sign-in has had its answer, and a second one is not taken. Close this page.",
)


class OAuthSignIn:
    """Waits for one consent; an async context manager that listens as long as it is open.

    The browser comes back to a listener on this machine. Where it runs on another one, such as a
    phone, the address at which it ended can be handed in with `offer` instead (A2.71). Only an
    answer with the state of this very sign-in counts, and only the first one. Leaving the block,
    by a cancel too, closes the listener.

    Args:
        service: Where to sign in.
        client: The user's own registration there (A2.69).
        transport: Who carries the requests; `None` for the process's own.
        ca_file: A PEM file to trust besides the system's certificates (A2.79).
        clock: Time.
        limit_s: Seconds for the person to consent, from the moment the block is entered.
        random_text: Makes unguessable text out of so many random bytes.
    """

    def __init__(
        self,
        service: OAuthService,
        client: OAuthClient,
        *,
        transport: Transport | None = None,
        ca_file: str | None = None,
        clock: Clock | None = None,
        limit_s: float = SIGN_IN_S,
        random_text: Callable[[int], str] = secrets.token_urlsafe,
    ) -> None:
        self._service = service
        self._client = client
        self._given_transport = transport
        self._ca_file = ca_file
        self._clock = clock or SystemClock()
        self._limit_s = limit_s
        self._state = random_text(_STATE_BYTES)
        self._verifier = random_text(_VERIFIER_BYTES)
        self._listener = LoopbackListener(self._take)
        self._outcome: str | ProviderError | None = None
        self._settled = asyncio.Event()
        self._until_s = 0.0

    def __repr__(self) -> str:
        return f"OAuthSignIn({self._service.provider!r})"

    @property
    def url(self) -> str:
        """The page to consent on; known inside the block."""
        return consent_url(
            self._service,
            self._client,
            redirect_uri=self._listener.url,
            state=self._state,
            verifier=self._verifier,
        )

    async def __aenter__(self) -> Self:
        try:
            await self._listener.open()
        except OSError as error:
            raise UsageError(
                f"Nothing can listen on this machine's own address ({error.strerror}), so a "
                f"browser cannot come back; paste a token instead: "
                f"`towline login {self._service.provider} --token`."
            ) from error
        self._until_s = self._clock.monotonic() + self._limit_s
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._listener.close()

    def offer(self, pasted: str) -> None:
        """Hand in the address at which the browser ended (A2.71).

        Raises:
            UsageError: It does not belong to this sign-in; another one may be offered.
        """
        try:
            query = urlsplit(pasted.strip(_AROUND)).query
        except ValueError:
            query = ""
        if not query:
            raise UsageError(
                "What was pasted is no address with an answer in it; paste the whole address that "
                f"the browser shows at the end: it begins with {self._listener.url!r}."
            )
        if self._take(query) is _STRANGE:
            raise UsageError(
                "The pasted address does not belong to this sign-in; open the page that was "
                "printed just now and paste the address at which it ends."
            )

    async def tokens(self) -> OAuthTokens:
        """The tokens, once the person has consented.

        Raises:
            AuthenticationFailed: The person refused or took too long, or the code is not accepted.
            ProviderError: The token endpoint could not be asked.
        """
        code = await self._consent()
        return await redeem_code(
            self._service,
            self._client,
            code=code,
            verifier=self._verifier,
            redirect_uri=self._listener.url,
            transport=self._transport(),
            clock=self._clock,
        )

    async def _consent(self) -> str:
        limit = asyncio.create_task(self._clock.sleep(self._until_s - self._clock.monotonic()))
        answer = asyncio.create_task(self._settled.wait())
        try:
            await asyncio.wait({limit, answer}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            limit.cancel()
            answer.cancel()
            await asyncio.wait({limit, answer})
        if self._outcome is None:
            self._outcome = AuthenticationFailed(
                f"No consent for {self._service.provider!r} came within {self._limit_s:g} s; "
                f"{sign_in_again(self._service)} again.",
                provider=self._service.provider,
                reason="sign_in_timeout",
            )
        if isinstance(self._outcome, ProviderError):
            raise self._outcome
        return self._outcome

    def _take(self, query: str) -> LoopbackPage:
        """Take in one answer; the page says what became of it."""
        try:
            fields = parse_qs(query, keep_blank_values=True, max_num_fields=_MAX_FIELDS)
        except ValueError:
            return _STRANGE
        state, code, error = (fields.get(name, []) for name in ("state", "code", "error"))
        if len(state) != 1 or not secrets.compare_digest(state[0].encode(), self._state.encode()):
            return _STRANGE
        if self._outcome is not None:
            return _USED
        if error:
            self._settle(self._denial(error[0]))
            return _REFUSED
        if len(code) != 1 or not code[0]:
            return _STRANGE
        self._settle(code[0])
        return _RECEIVED

    def _settle(self, outcome: str | ProviderError) -> None:
        self._outcome = outcome
        self._settled.set()

    def _denial(self, said: str) -> ProviderError:
        code = said if _ERROR_CODE.fullmatch(said) else "refused"
        why = "You did not allow it" if code == _DENIED else f"{self._service.title} refused it"
        return AuthenticationFailed(
            f"There is no sign-in for {self._service.provider!r}: {why} ({code}). To try again, "
            f"{sign_in_again(self._service)}.",
            provider=self._service.provider,
            reason=code,
        )

    def _transport(self) -> Transport:
        if self._given_transport is None:
            # aiohttp is imported with the first request, not with the library.
            from towline_agent.providers.http import shared_transport

            self._given_transport = shared_transport(self._ca_file)
        return self._given_transport
