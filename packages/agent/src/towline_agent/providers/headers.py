"""Headers that a person adds for a gateway: `Name: value` lines, or a JSON object."""

import re
from collections.abc import Mapping
from typing import Final

import msgspec

from towline_agent.providers.vendors import Vendor
from towline_protocol import UsageError

__all__ = ["named_headers"]

_NAME: Final = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_VALUE: Final = r"[!-~]+(?:[ \t]+[!-~]+)*"


def named_headers(vendor: Vendor, env: Mapping[str, str]) -> dict[str, str]:
    """The headers that a vendor's setting names, in lower case; none when it is not set.

    Raises:
        UsageError: It holds what is no header. The message shows no value: one may be a secret.
    """
    setting = vendor.header_setting
    text = env.get(setting, "").strip() if setting else ""
    if not text:
        return {}
    headers = _read(text)
    if headers is None or not all(re.fullmatch(_NAME, name) for name in headers):
        raise UsageError(
            f"{setting} holds something else than headers; write 'Name: value' lines, or a JSON "
            "object of texts."
        )
    for name, value in headers.items():
        if not re.fullmatch(_VALUE, value):
            raise UsageError(
                f"The value of {name!r} in {setting} is empty or holds characters that no header "
                "can; correct it."
            )
    return {name.lower(): value for name, value in headers.items()}


def _read(text: str) -> dict[str, str] | None:
    if text.startswith("{"):
        try:
            return msgspec.json.decode(text, type=dict[str, str])
        except (msgspec.DecodeError, UnicodeEncodeError):
            return None
    pairs = [line.partition(":") for line in text.splitlines() if line.strip()]
    if not all(colon for _, colon, _ in pairs):
        return None
    return {name.strip(): value.strip() for name, _, value in pairs}
