"""Calls users who do not look, in a task of its own: no turn ever waits for a push service (C7.1).

What waits for an answer is called for once nobody looks, as long as it waits; news of a turn only
if nobody looks at that moment. A call goes out once to each device; tries that failed are made
again. After a restart the log of outcomes tells what was delivered: what still waits and was not is
called for then.
"""

import asyncio
import logging
from collections import deque
from typing import Final

import msgspec

from towline_agent import Clock
from towline_protocol import Event, format_time
from towline_server.errors import StoreError
from towline_server.push.devices import Devices
from towline_server.push.message import TURN_TTL_S, Call
from towline_server.push.presence import Presence
from towline_server.push.sender import MAX_RETRY_S, PushSender, Reply
from towline_server.push.triggers import REQUESTS, Triggers, still_waits
from towline_server.sessions.deadline import ring_within
from towline_server.sessions.session import Session
from towline_server.store import push
from towline_server.store.push import Device, Told
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["MAX_JOBS", "MAX_TRIES", "WakeUps"]

_log: Final = logging.getLogger("towline.server")

MAX_JOBS: Final = 512
"""Messages that wait to be sent; more come of nothing but a loop, and the newest are dropped."""
MAX_TRIES: Final = 4
"""How often a message is sent to a service that is busy or broken."""

_BACK_OFF_S: Final = (5.0, 30.0, 120.0)  # before the second try, the third, the fourth
_AT_ONCE: Final = 8  # messages on their way at a time
_MAX_TOLD: Final = 4096  # calls that are remembered: those of weeks
_PAUSE_S: Final = 5.0  # after a fault of our own


class _Waiting(msgspec.Struct, frozen=True):
    """A call that nobody was told of yet."""

    session: Session
    call: Call


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """One message to one device."""

    waiting: _Waiting
    device: Device
    due_s: float
    tries: int = 0


class WakeUps:
    """Sees every event that is shown, knows who looks, and sends.

    Args:
        store: Keeps devices and outcomes.
        devices: Knows the devices.
        sender: Sends.
        clock: Time.
        away_s: Seconds that people have for a request once they were called (C5.9).
        shows_text: Whether the session's own words may stand in a message.
    """

    def __init__(
        self,
        store: SqliteStore,
        devices: Devices,
        sender: PushSender,
        *,
        clock: Clock,
        away_s: float,
        shows_text: bool = False,
    ) -> None:
        self.devices = devices
        """The devices that users are called on."""
        self._store = store
        self._sender = sender
        self._clock = clock
        self._away_s = away_s
        self._presence = Presence()
        self._triggers = Triggers(shows_text=shows_text)
        self._waiting: dict[Told, _Waiting] = {}
        self._told: dict[Told, None] = {}
        self._jobs: deque[_Job] = deque()
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Read what was told already, and begin; before any session is taken up.

        Raises:
            StoreError: The store cannot be read.
        """
        await self.devices.start()
        self._told = dict.fromkeys(await self._store.query(push.told))
        self._task = asyncio.create_task(self._run())

    async def close(self) -> None:
        """End; what is on its way counts as not sent. May be called twice."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
            self._task = None
        self._sender.close()

    def see(self, session: Session, event: Event) -> None:
        """Take in an event that has just been shown; never waits."""
        if session.lead.parent is not None:
            return  # what a sub-agent asks is asked in the session that it works for
        user = session.log.user
        time = format_time(self._clock.now_ms())
        call = self._triggers.find(user, session.log.view, event, time=time)
        if call is None or call.session is None or user not in self.devices.called:
            return
        key = Told(call.session, call.kind, call.about)
        if key in self._told:
            return
        if call.kind not in REQUESTS and self._looks(user):
            return
        if len(self._waiting) >= MAX_JOBS:
            _log.warning("Too much waits to be sent, so somebody is not called.")
            return
        self._waiting[key] = _Waiting(session, call)
        self._bell.set()

    def note_presence(self, user: str, client: str, mine: list[Session], *, visible: bool) -> None:
        """Take in whether a client of a user is seen.

        Args:
            user: Whose client it is.
            client: What it calls itself.
            mine: The user's sessions in memory.
            visible: Whether its screen is seen.
        """
        now_s = self._clock.monotonic()
        if self._presence.note(user, client, now_s, visible=visible):
            for session in mine:
                session.waiting.note_visible()
        self._bell.set()

    def call_for_pending(self, mine: list[Session]) -> None:
        """Call for what waits already: a user has a device from now on."""
        for session in mine:
            view = session.log.view
            for event in (*view.permissions, *view.questions):
                self.see(session, event)

    def _looks(self, user: str) -> bool:
        return self._presence.visible(user, self._clock.monotonic())

    async def _run(self) -> None:
        """Send until the end. A rim: a fault of ours is logged, and the next message is sent."""
        while True:
            try:
                while True:
                    self._bell.clear()
                    await self._queue_due()
                    if not await self._send_due():
                        await ring_within(self._clock, self._bell, self._wait_s())
            except Exception:
                _log.exception("Notifications could not be sent.")
                await self._clock.sleep(_PAUSE_S)

    async def _queue_due(self) -> None:
        """Make messages of the calls whose users do not look."""
        for key, waiting in list(self._waiting.items()):
            if not still_waits(waiting.call, waiting.session.log.view):
                del self._waiting[key]
            elif waiting.call.kind not in REQUESTS or not self._looks(waiting.call.user):
                await self._queue(key, waiting)

    async def _queue(self, key: Told, waiting: _Waiting) -> None:
        del self._waiting[key]
        self._told[key] = None
        while len(self._told) > _MAX_TOLD:
            del self._told[next(iter(self._told))]
        try:
            devices = await self.devices.of(waiting.call.user)
        except StoreError as error:
            _log.error("Nobody is called for %s: %s", waiting.call.session, error.message)
            return
        now_s = self._clock.monotonic()
        jobs = [_Job(waiting=waiting, device=device, due_s=now_s) for device in devices]
        room = MAX_JOBS - len(self._jobs)
        if len(jobs) > room:
            _log.warning("Too much waits to be sent, so somebody is not called.")
        self._jobs.extend(jobs[:room])

    async def _send_due(self) -> bool:
        """Send what is due, a few at once; whether there was anything."""
        now_s = self._clock.monotonic()
        due = [job for job in self._jobs if job.due_s <= now_s][:_AT_ONCE]
        if not due:
            return False
        for job in due:
            self._jobs.remove(job)
        async with asyncio.TaskGroup() as group:
            for job in due:
                group.create_task(self._send(job))
        return True

    async def _send(self, job: _Job) -> None:
        session, call = job.waiting.session, job.waiting.call
        if not still_waits(call, session.log.view):
            return  # answered before it was sent, or sent again
        ttl_s = self._away_s if call.kind in REQUESTS else TURN_TTL_S
        reply = await self._sender.send(
            job.device, call, ttl_s=round(ttl_s), now_ms=self._clock.now_ms()
        )
        await self._note(job, reply)
        if reply.outcome == "delivered" and call.kind in REQUESTS:
            session.waiting.note_wake_up()
        elif reply.again and job.tries + 1 < MAX_TRIES:
            self._jobs.append(self._later(job, reply))

    def _later(self, job: _Job, reply: Reply) -> _Job:
        delay_s = min(max(reply.after_s, _BACK_OFF_S[job.tries]), MAX_RETRY_S)
        due_s = self._clock.monotonic() + delay_s
        return msgspec.structs.replace(job, tries=job.tries + 1, due_s=due_s)

    async def _note(self, job: _Job, reply: Reply) -> None:
        try:
            await self.devices.note(job.device, job.waiting.call, reply)
        except StoreError as error:
            _log.error("What became of a notification is not kept: %s", error.message)

    def _wait_s(self) -> float | None:
        """Seconds until something is due by itself; `None` for nothing."""
        now_s = self._clock.monotonic()
        waits = [job.due_s - now_s for job in self._jobs]
        for waiting in self._waiting.values():
            lapse_s = self._presence.lapse_s(waiting.call.user, now_s)
            waits.append(0.0 if lapse_s is None else lapse_s)
        return min(waits, default=None)
