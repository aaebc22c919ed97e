"""Whether an address or a CA file can be used, found out before it is kept (A2.77 to A2.80)."""

import ssl
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from towline_agent import (
    CA_SETTING,
    VENDORS,
    HttpAnswer,
    HttpCall,
    Request,
    StepFailed,
    TransportFailed,
    connect,
)
from towline_protocol import Message, SseEvent, Text, UsageError
from towline_server import Rejected

__all__ = ["check_ca_file", "check_url"]

_REASONS: Final = ("address", "plain_http")
_NO_KEY: Final = "no-key-goes-anywhere"


class _Shut:
    """A transport that sends nothing; see `Transport`."""

    async def sse(self, call: HttpCall, on_event: Callable[[SseEvent], bool]) -> HttpAnswer:
        """Fail."""
        del call, on_event
        raise TransportFailed("refused")

    async def json(self, call: HttpCall) -> HttpAnswer:
        """Fail."""
        del call
        raise TransportFailed("refused")

    async def aclose(self) -> None:
        """Nothing is open."""


async def check_url(provider: str, pasted: str, environ: Mapping[str, str]) -> str:
    """The address, if a request to the provider could go there; empty for its own one.

    It is judged as a request is, and nothing is sent.

    Raises:
        UsageError: It holds no URL, or one that is not safe.
        Rejected: This provider is at its own address alone.
    """
    text = pasted.strip()
    if not text:
        return ""
    setting = VENDORS[provider].url_setting
    if setting is None:
        raise Rejected(
            f"{provider!r} is asked at its own address alone; take 'custom' for another one.",
            reason="fixed_address",
        )
    asked = {**environ, setting: text, CA_SETTING: ""}
    made = connect(f"{provider}/any", asked, api_key=_NO_KEY, transport=_Shut())
    request = Request(model="any", messages=(Message("user", (Text(text="-"),)),))
    result = await made.step(request, lambda _: None)
    if isinstance(result, StepFailed) and result.error.reason in _REASONS:
        raise UsageError(result.error.message)
    return text


def check_ca_file(path: str) -> str:
    """The path, if certificates can be read there; empty for none. Blocks.

    Raises:
        UsageError: They cannot.
    """
    text = path.strip()
    if not text:
        return ""
    file = Path(text)
    try:
        if not file.is_absolute() or not file.is_file():  # a pipe would keep us waiting
            raise UsageError(
                f"{text[:200]!r} is no file on the server; name a PEM file by its whole path."
            )
        ssl.create_default_context(cafile=file)
    except (OSError, ValueError) as error:  # an SSLError is an OSError
        raise UsageError(
            f"{text[:200]!r} holds no certificates that can be read; name a PEM file."
        ) from error
    return text
