"""The devices that a user is called on: added, listed, tried out, forgotten."""

import hashlib
import sqlite3
from functools import partial
from typing import Final

import msgspec

from towline_agent import Clock, Mint
from towline_protocol import (
    PushOffer,
    PushOutcome,
    PushSubscription,
    PushSubscriptionList,
    SubscribePush,
    UsageError,
    format_time,
)
from towline_server.errors import AccessDenied, PushNotFound, Rejected
from towline_server.push.message import LANGUAGES, Call
from towline_server.push.sender import PushSender, Reply, check_device
from towline_server.store import push
from towline_server.store.push import Device, Outcome
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["TEST_TTL_S", "Devices"]

TEST_TTL_S: Final = 60
"""Seconds after which a test that did not arrive shall not come any more."""

_MAX_NAME: Final = 200
_MAX_LANGUAGE: Final = 35  # the longest tag that anybody need take (RFC 5646)


class Devices:
    """Knows the devices; `PushSender` reaches them.

    Args:
        store: Keeps them.
        sender: Sends.
        clock: Time.
        mint: Ids.
        subject: Whom a push service may write to about this server; `None` for nobody in general.
    """

    def __init__(
        self,
        store: SqliteStore,
        sender: PushSender,
        *,
        clock: Clock,
        mint: Mint,
        subject: str | None = None,
    ) -> None:
        self._store = store
        self._sender = sender
        self._clock = clock
        self._mint = mint
        self._subject = subject
        self.called: set[str] = set()
        """The users who have a device, or had one since the start."""

    async def start(self) -> None:
        """Read who is called.

        Raises:
            StoreError: The store cannot be read.
        """
        self.called = await self._store.query(push.called)

    async def offer(self) -> PushOffer:
        """What a browser needs to subscribe.

        Raises:
            PushUnavailable: This server cannot call anybody.
        """
        return PushOffer(key=(await self._sender.key()).public, languages=LANGUAGES)

    async def subscribe(
        self, user: str, asked: SubscribePush, *, origin: str, token: str | None
    ) -> PushSubscription:
        """Keep a device; the same endpoint again replaces what is kept of it.

        Args:
            user: Whose it is.
            asked: What the browser gave.
            origin: The origin of the page that asks.
            token: The digest of the token that it asks with; `None` for none that can end.

        Raises:
            AccessDenied: The token has ended meanwhile.
            UsageError: The endpoint, the keys or the words do not hold.
            Rejected: There is nobody whom the push service could write to.
            PushUnavailable: This server cannot call anybody.
            StoreError: It could not be kept.
        """
        if len(asked.name) > _MAX_NAME or len(asked.language) > _MAX_LANGUAGE:
            raise UsageError(
                f"name has at most {_MAX_NAME} characters and language {_MAX_LANGUAGE}; send "
                "shorter ones."
            )
        device = Device(
            id=self._mint("psh"),
            user=user,
            endpoint=asked.endpoint.strip(),
            p256dh=asked.keys.p256dh.rstrip("="),
            auth=asked.keys.auth.rstrip("="),
            subject=self._find_subject(origin),
            origin=origin,
            language=asked.language,
            name=asked.name,
            created_ms=self._clock.now_ms(),
        )
        check_device(device, local=self._sender.local)
        await self._sender.try_keys(device)
        put = partial(_put, device=device, token=token)
        row = await self._store.write(put)
        if row is None:  # its token ended while the keys were tried
            raise AccessDenied(
                "This device is not let in any more; pair it again.", reason="unknown_token"
            )
        kept, last = row
        self.called.add(user)
        return _shown(kept, last)

    async def list_devices(self, user: str) -> PushSubscriptionList:
        """The devices of a user.

        Raises:
            StoreError: The store cannot be read.
        """
        rows = await self._store.query(partial(_rows, user=user, now_ms=self._clock.now_ms()))
        return PushSubscriptionList(subscriptions=tuple(_shown(*row) for row in rows))

    async def of(self, user: str) -> list[Device]:
        """The devices of a user, to send to.

        Raises:
            StoreError: The store cannot be read.
        """
        return await self._store.query(
            partial(push.devices_of, user=user, now_ms=self._clock.now_ms())
        )

    async def remove(self, user: str, id_: str) -> None:
        """Forget a device.

        Raises:
            PushNotFound: The user has none of that id.
            StoreError: It is still there.
        """
        if not await self._store.write(lambda connection: push.remove(connection, id_, user)):
            raise _not_found(id_)

    async def test(self, user: str, id_: str) -> PushOutcome:
        """Send a device a message now.

        Raises:
            PushNotFound: The user has none of that id.
            PushUnavailable: This server cannot call anybody.
            StoreError: The store cannot be read, or the outcome not be kept.
        """
        await self._sender.key()
        device = next((device for device in await self.of(user) if device.id == id_), None)
        if device is None:
            raise _not_found(id_)
        call = Call(user=user, kind="test", time=format_time(self._clock.now_ms()))
        reply = await self._sender.send(device, call, ttl_s=TEST_TTL_S, now_ms=self._clock.now_ms())
        return _told(await self.note(device, call, reply))

    async def note(self, device: Device, call: Call, reply: Reply) -> Outcome:
        """Keep what came of a message.

        Raises:
            StoreError: It could not be kept.
        """
        outcome = Outcome(
            kind=call.kind,
            session=call.session,
            about=call.about,
            outcome=reply.outcome,
            status=reply.status,
            message=reply.message,
            time_ms=self._clock.now_ms(),
        )
        await self._store.write(partial(push.note, device=device, outcome=outcome))
        return outcome

    def _find_subject(self, origin: str) -> str:
        if self._subject is not None:
            return self._subject
        if origin.startswith("https://"):
            return origin
        raise Rejected(
            "Push services want to know whom to write to about this server: set 'push_subject' in "
            "config.toml to 'mailto:you@example.org' or an https address, then start it again.",
            reason="push_subject",
        )


_Row = tuple[Device, Outcome | None]


def _rows(connection: sqlite3.Connection, *, user: str, now_ms: int) -> list[_Row]:
    devices = push.devices_of(connection, user, now_ms=now_ms)
    return [(device, push.last_outcome(connection, device.id)) for device in devices]


def _put(connection: sqlite3.Connection, *, device: Device, token: str | None) -> _Row | None:
    id_ = push.put(connection, device, token=token)
    if id_ is None:
        return None
    return msgspec.structs.replace(device, id=id_), push.last_outcome(connection, id_)


def _shown(device: Device, last: Outcome | None) -> PushSubscription:
    return PushSubscription(
        id=device.id,
        service=device.endpoint.split("/")[2],
        endpoint_sha256=hashlib.sha256(device.endpoint.encode()).hexdigest(),
        language=device.language,
        name=device.name,
        created=format_time(device.created_ms),
        last=None if last is None else _told(last),
    )


def _told(outcome: Outcome) -> PushOutcome:
    return PushOutcome(
        kind=outcome.kind,
        outcome=outcome.outcome,
        status=outcome.status,
        message=outcome.message,
        session=outcome.session,
        time=format_time(outcome.time_ms),
    )


def _not_found(id_: str) -> PushNotFound:
    return PushNotFound(
        f"There is no subscription {id_[:80]!r} of yours; list them, or subscribe again."
    )
