"""A message for one browser, encrypted (RFC 8291) and signed by this server (RFC 8292).

`pywebpush` does it, of the extra `push`; nothing else of the server needs that.
"""

import binascii
import contextlib
import os
from importlib import import_module
from pathlib import Path
from typing import Any, Final, NamedTuple

from towline_protocol import UsageError
from towline_server.errors import PushUnavailable
from towline_server.store.push import Device

__all__ = ["KEY_FILE", "PushKey", "Sealed", "load_key"]

KEY_FILE: Final = "push_key.pem"
"""The file in the data folder that holds the server's private key. Without it no subscription is
worth anything, so it is made once and never again."""

_HOW: Final = (
    "This server cannot call anybody: install towline-server with its extra 'push' (pip install "
    "'towline-server[push]'), then start it again."
)


class Sealed(NamedTuple):
    """A message as it goes to a push service."""

    headers: dict[str, str]
    """What says who sends it and how it is encrypted."""
    body: bytes
    """What only the browser reads."""


class PushKey:
    """The server's key pair. Its `repr` shows neither.

    Args:
        library: The module `pywebpush`.
        pem: The private key.

    Raises:
        ValueError: The key is none.
    """

    def __init__(self, library: Any, pem: bytes) -> None:
        self._library = library
        self._vapid = library.Vapid.from_pem(pem)
        numbers = self._vapid.public_key.public_numbers()
        point = b"\4" + numbers.x.to_bytes(32, "big") + numbers.y.to_bytes(32, "big")
        self.public = binascii.b2a_base64(point, newline=False).decode().translate(_URL).strip("=")
        """The public key as browsers take it: an uncompressed point, base64url."""

    def seal(self, device: Device, data: bytes, *, audience: str, expires_s: int) -> Sealed:
        """Encrypt a message for a device, and sign for its push service.

        Args:
            device: The device.
            data: The message.
            audience: The origin of the push service.
            expires_s: Seconds since 1970 until which the signature counts; a day ahead at most.

        Raises:
            UsageError: The keys of the device are none.
        """
        keys = {"p256dh": device.p256dh, "auth": device.auth}
        try:
            pusher = self._library.WebPusher({"endpoint": device.endpoint, "keys": keys})
            body: bytes = pusher.encode(data, "aes128gcm")["body"]
        except (ValueError, TypeError, IndexError, self._library.WebPushException) as error:
            raise UsageError(
                "The keys of the subscription are none; send those that the browser gives."
            ) from error
        claims = {"sub": device.subject, "aud": audience, "exp": expires_s}
        self._vapid.conf = {"no-strict": True}  # the subject was checked, by a better rule
        headers: dict[str, str] = self._vapid.sign(claims)
        return Sealed(
            {
                "authorization": headers["Authorization"],
                "content-encoding": "aes128gcm",
                "content-type": "application/octet-stream",
            },
            body,
        )


_URL: Final = str.maketrans("+/", "-_")


def load_key(folder: Path) -> PushKey:
    """The server's key pair, made when there is none; blocks.

    Args:
        folder: The data folder.

    Raises:
        PushUnavailable: The library is not installed, or the key can be neither read nor made.
    """
    try:
        library = import_module("pywebpush")
    except ImportError as error:
        raise PushUnavailable(_HOW, reason="push_extra") from error
    file = folder / KEY_FILE
    try:
        if not file.exists():
            _make(library, file)
        return PushKey(library, file.read_bytes())
    except OSError as error:
        raise PushUnavailable(
            f"The file {str(file)!r}, which holds the key for notifications, cannot be used "
            f"({error.strerror}); make it readable and its folder writable.",
            reason="push_key",
        ) from error
    except (ValueError, TypeError, AttributeError, IndexError) as error:
        raise PushUnavailable(
            f"The file {str(file)!r} holds no key; move it away. A new one is made then, and every "
            "device subscribes again when its page is opened.",
            reason="push_key",
        ) from error


def _make(library: Any, file: Path) -> None:
    """Put a new key where none is; another process that was quicker wins."""
    vapid = library.Vapid()
    vapid.generate_keys()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = file.with_suffix(f".{os.getpid()}")
    descriptor = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(vapid.private_pem())
            opened.flush()
            os.fsync(opened.fileno())
        with contextlib.suppress(FileExistsError):
            os.link(fresh, file)
    finally:
        fresh.unlink()
