"""One message to one push service, and what it says to that."""

import base64
import email.utils
import hashlib
import re
from pathlib import Path
from typing import Final, NamedTuple

from towline_agent import ToolDenied, WebAnswer, WebClient, WebUrl, read_url
from towline_protocol import TowlineError, UsageError
from towline_server.push.message import TURN_TTL_S, Call, make_payload, tag_of
from towline_server.push.seal import PushKey, load_key
from towline_server.push.threads import PushThreads
from towline_server.store.push import Device

__all__ = ["MAX_ENDPOINT", "MAX_RETRY_S", "SEND_S", "PushSender", "Reply", "check_device"]

SEND_S: Final = 10.0
"""Seconds that a push service has for one message."""
MAX_ENDPOINT: Final = 2048
"""Characters of an endpoint; those of today's push services have some 200 to 600."""
MAX_RETRY_S: Final = 600.0
"""Seconds after which a message is tried again at the latest, whatever a service asks for."""

_MAX_ANSWER: Final = 4096
_SIGNED_S: Final = 12 * 3600  # a day is the most that services take, and clocks differ
_GONE: Final = (404, 410)
_OK: Final = (200, 201, 202, 204)
_AGAIN: Final = 429
_PRIVATE: Final = "The push service's name leads to a private address, to which nothing is sent."
_KEY_CHARS: Final = {"p256dh": 87, "auth": 22}  # 65 and 16 bytes (RFC 8291)


class Reply(NamedTuple):
    """What came of one try."""

    outcome: str
    """`delivered`, `failed` or `gone`."""
    status: int | None
    """The HTTP status; `None` when there was no answer."""
    message: str
    """Why it failed."""
    again: bool = False
    """Whether the same can help later."""
    after_s: float = 0.0
    """Seconds that the service asks to wait."""


class PushSender:
    """Encrypts and posts. The key is read, or made, when it is first needed.

    Args:
        folder: The data folder, which holds the key.
        web: Posts; refuses addresses of one's own network. `None` for the usual one.
        local: Whether a push service may be in one's own network and without TLS: for tests.
    """

    def __init__(self, folder: Path, *, web: WebClient | None = None, local: bool = False) -> None:
        self.local = local
        """Whether a push service may be in one's own network."""
        self._folder = folder
        self._web = web or WebClient(timeout_s=SEND_S, max_bytes=_MAX_ANSWER)
        self._threads = PushThreads()
        self._key: PushKey | None = None

    async def key(self) -> PushKey:
        """The server's key pair.

        Raises:
            PushUnavailable: There is none, and none can be made.
        """
        if self._key is None:
            self._key = await self._threads.run(lambda: load_key(self._folder))
        return self._key

    async def try_keys(self, device: Device) -> None:
        """Encrypt for a device, and throw it away.

        Raises:
            UsageError: Its keys are none.
            PushUnavailable: The server has no key.
        """
        key = await self.key()
        url = check_device(device, local=self.local)
        await self._threads.run(lambda: key.seal(device, b"{}", audience=_origin(url), expires_s=0))

    async def send(self, device: Device, call: Call, *, ttl_s: int, now_ms: int) -> Reply:
        """Send one message; whatever goes wrong is told, never raised.

        Args:
            device: To whom.
            call: What about.
            ttl_s: Seconds that the push service keeps it for a device that cannot be reached.
            now_ms: The time.
        """
        data = make_payload(call, language=device.language, origin=device.origin)
        try:
            key = await self.key()
            url = check_device(device, local=self.local)
            sealed = await self._threads.run(
                lambda: key.seal(
                    device, data, audience=_origin(url), expires_s=now_ms // 1000 + _SIGNED_S
                )
            )
        except TowlineError as error:
            return Reply("failed", None, error.message)
        headers = sealed.headers | {
            "topic": _topic(call),
            "ttl": str(max(0, min(ttl_s, TURN_TTL_S))),
            "urgency": "high" if call.kind == "permission" else "normal",
        }
        try:
            answer = await self._web.ask(url, method="POST", headers=headers, body=sealed.body)
        except ToolDenied:
            return Reply("failed", None, _PRIVATE)
        except TowlineError as error:
            return Reply("failed", None, error.message, again=True)
        return _judge(answer, now_ms)

    def close(self) -> None:
        """Let the thread go."""
        self._threads.close()


def check_device(device: Device, *, local: bool = False) -> WebUrl:
    """The address of a device's push service, if it may be posted to.

    Args:
        device: The device.
        local: Whether it may be in one's own network and without TLS.

    Raises:
        UsageError: It may not, or the keys cannot be any.
    """
    if len(device.endpoint) > MAX_ENDPOINT:
        raise UsageError(
            f"The endpoint has {len(device.endpoint)} characters, and {MAX_ENDPOINT} is the most; "
            "send the one that the browser gives."
        )
    for name, length in _KEY_CHARS.items():
        if re.fullmatch(rf"[A-Za-z0-9_-]{{{length}}}", getattr(device, name)) is None:
            raise UsageError(
                f"The key {name!r} of the subscription is none; send the one that the browser "
                "gives, in base64url."
            )
    try:
        url = read_url(device.endpoint)
    except TowlineError as error:
        raise UsageError(f"The endpoint cannot be used: {error.message}") from error
    if local:
        return url
    if url.url.scheme != "https":
        raise UsageError(
            f"The endpoint at {url.place!r} is not reached by https; push services are. Subscribe "
            "again in the browser."
        )
    if url.private or ":" in url.host:
        raise UsageError(
            f"The endpoint at {url.place!r} lies in a private network, to which nothing is sent. "
            "Subscribe again in the browser."
        )
    return url


def _origin(url: WebUrl) -> str:
    return f"{url.url.scheme}://{url.place}"


def _topic(call: Call) -> str:
    """What a later message replaces while the push service still keeps it: as the tag does."""
    return base64.urlsafe_b64encode(hashlib.sha256(tag_of(call).encode()).digest())[:32].decode()


def _judge(answer: WebAnswer, now_ms: int) -> Reply:
    status = answer.status
    if status in _OK:
        return Reply("delivered", status, "")
    if status in _GONE:
        return Reply("gone", status, "The push service knows this subscription no more.")
    why = f"The push service answered {status}."
    again = status == _AGAIN or status >= 500
    return Reply("failed", status, why, again, _retry_after_s(answer, now_ms) if again else 0.0)


def _retry_after_s(answer: WebAnswer, now_ms: int) -> float:
    """What `Retry-After` asks for, in either of its forms; 0 for nothing that can be read."""
    text = answer.header("retry-after").strip()
    if text.isascii() and text.isdigit():
        return min(float(text[:9]), MAX_RETRY_S)
    try:
        at_s = email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, OverflowError):
        return 0.0
    return min(max(0.0, at_s - now_ms / 1000), MAX_RETRY_S)
