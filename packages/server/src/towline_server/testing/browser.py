"""A browser for tests: decrypts by hand (RFC 8188, 8291) and checks signatures (RFC 8292).

It shares nothing with what encrypts but `cryptography`, which the extra `push` brings.
"""

import base64
import hashlib
import hmac
import json
from typing import Any

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from towline_protocol import PushKeys, PushSubscription, SubscribePush
from towline_server.testing.client import AppClient
from towline_server.testing.push import FakePushService, Posted

__all__ = ["Browser", "check_signature"]


def _encode64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode64(text: str) -> bytes:
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


class Browser:
    """One device: its keys, and what it makes of a message.

    Args:
        service: Where it is reached.
        name: What tells it from others.
    """

    def __init__(self, service: FakePushService, name: str = "phone") -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._point = self._key.public_key().public_bytes(
            Encoding.X962, PublicFormat.UncompressedPoint
        )
        self._secret = hashlib.sha256(name.encode()).digest()[:16]
        self.path = f"/push/{name}"
        """Where its messages arrive."""
        self.asked = SubscribePush(
            endpoint=service.endpoint(name),
            keys=PushKeys(p256dh=_encode64(self._point), auth=_encode64(self._secret)),
            name=name,
        )
        """What it subscribes with."""

    async def subscribe(self, client: AppClient) -> PushSubscription:
        """Have this device called from now on."""
        reply = await client.ask("POST", "/api/push/subscriptions", self.asked)
        assert reply.status == 201, reply.body
        return reply.read(PushSubscription)

    def read(self, posted: Posted) -> dict[str, Any]:
        """The message, decrypted."""
        assert posted.path == self.path
        assert posted.headers["content-encoding"] == "aes128gcm"
        salt, size, length = posted.body[:16], posted.body[16:20], posted.body[20]
        sender, data = posted.body[21 : 21 + length], posted.body[21 + length :]
        assert len(data) <= int.from_bytes(size, "big")  # one record
        assert len(posted.body) <= 4096
        theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), sender)
        shared = self._key.exchange(ec.ECDH(), theirs)
        mixed = _derive(self._secret, shared, b"WebPush: info\0" + self._point + sender, 32)
        key = _derive(salt, mixed, b"Content-Encoding: aes128gcm\0", 16)
        nonce = _derive(salt, mixed, b"Content-Encoding: nonce\0", 12)
        plain = AESGCM(key).decrypt(nonce, data, None).rstrip(b"\0")
        assert plain.endswith(b"\2")
        return json.loads(plain[:-1])


def _derive(salt: bytes, secret: bytes, info: bytes, length: int) -> bytes:
    """HKDF with SHA-256, for one block at most."""
    key = hmac.digest(salt, secret, "sha256")
    return hmac.digest(key, info + b"\1", "sha256")[:length]


def check_signature(posted: Posted, key: str) -> dict[str, Any]:
    """The claims of a message's signature, which is by that key."""
    scheme, _, rest = posted.headers["authorization"].partition(" ")
    parts = dict(part.strip().split("=", 1) for part in rest.split(","))
    assert (scheme, parts["k"]) == ("vapid", key)
    signed, _, signature = parts["t"].rpartition(".")
    raw = _decode64(signature)
    point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), _decode64(key))
    point.verify(
        encode_dss_signature(int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big")),
        signed.encode(),
        ec.ECDSA(hashes.SHA256()),
    )
    head, _, claims = signed.partition(".")
    assert json.loads(_decode64(head))["alg"] == "ES256"
    return json.loads(_decode64(claims))
