"""Calls about people who do not look: web push to browsers, and who looks."""

from typing import Unpack

from towline_client.caller import Caller
from towline_client.options import CallOptions
from towline_protocol import (
    NotePresence,
    PushOffer,
    PushOutcome,
    PushSubscription,
    PushSubscriptionList,
    SubscribePush,
)

__all__ = ["Push"]


class Push:
    """The browsers that a user is called on, and whether somebody looks; see `Client.push`."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller

    async def key(self, **options: Unpack[CallOptions]) -> PushOffer:
        """What a browser needs to subscribe.

        Raises:
            CommandRejected: This server sends no push; `detail` says what it lacks.
        """
        return await self._caller.call("get_push_key", PushOffer, options=options)

    async def subscriptions(self, **options: Unpack[CallOptions]) -> PushSubscriptionList:
        """The caller's devices that are called, and what became of the last message to each."""
        return await self._caller.call(
            "list_push_subscriptions", PushSubscriptionList, options=options
        )

    async def subscribe(
        self, browser: SubscribePush, **options: Unpack[CallOptions]
    ) -> PushSubscription:
        """Call a browser from now on when nobody looks; the same endpoint is replaced.

        Args:
            browser: What its `PushSubscription` says.
            options: As for any call.

        Raises:
            CommandRejected: This server sends no push, or not to such an endpoint.
        """
        return await self._caller.call(
            "subscribe_push", PushSubscription, body=browser, options=options
        )

    async def unsubscribe(self, subscription: str, **options: Unpack[CallOptions]) -> None:
        """Call a device no more.

        Args:
            subscription: Its id.
            options: As for any call.

        Raises:
            CommandRejected: There is no such subscription.
        """
        params = {"subscription": subscription}
        await self._caller.tell("unsubscribe_push", params=params, options=options)

    async def test(self, subscription: str, **options: Unpack[CallOptions]) -> PushOutcome:
        """Send a device a message now, and say what became of it.

        Args:
            subscription: Its id.
            options: As for any call.

        Raises:
            CommandRejected: There is no such subscription.
        """
        params = {"subscription": subscription}
        return await self._caller.call("test_push", PushOutcome, params=params, options=options)

    async def presence(
        self, client: str, *, visible: bool = True, **options: Unpack[CallOptions]
    ) -> None:
        """Say whether a person looks at this client: it counts for 45 s, so repeat it every 20 s.

        Args:
            client: What tells this client from the user's other ones, up to 64 characters.
            visible: Whether its screen is seen right now.
            options: As for any call.
        """
        body = NotePresence(client=client, visible=visible)
        await self._caller.tell("note_presence", body=body, options=options)
