"""What a user's day may cost, and what it has cost."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Final

import msgspec

from towline_protocol import Limits, UsageError, UsageReport
from towline_server.errors import BudgetSpent
from towline_server.store import usage
from towline_server.store.records import UsageCount
from towline_server.store.sqlite_store import SqliteStore

__all__ = ["Budget"]

_DAYS: Final = 30  # of a report that names no first day
_BY: Final = ("day", "model", "session")


class Budget:
    """Holds turns to what a day may cost. Days are those of UTC.

    Only known prices count. Turns that run at the same time share what is left: each begins no
    further step once it is gone, so that a day costs more by at most one step of each of them.

    Args:
        store: Keeps what was used.
        now_ms: The time, in milliseconds since 1970.
        daily_cost: US dollars that a user's day may cost; `None` for no bound.
    """

    def __init__(
        self, store: SqliteStore, *, now_ms: Callable[[], int], daily_cost: float | None = None
    ) -> None:
        self._store = store
        self._now_ms = now_ms
        self._daily_cost = daily_cost
        self._known: dict[str, tuple[str, float]] = {}  # of each user the newest day, and its cost

    def today(self) -> date:
        """The day that counts now."""
        return self._now().date()

    async def check(self, user: str) -> None:
        """Refuse a prompt once the day has cost what it may.

        Raises:
            BudgetSpent: It has; it says when the next day begins.
            StoreError: What was used cannot be read.
        """
        if self._daily_cost is None:
            return
        spent = await self._spent(user)
        if spent >= self._daily_cost:
            now = self._now()
            midnight = datetime.combine(now.date(), datetime.min.time(), UTC) + timedelta(days=1)
            raise BudgetSpent(
                f"Today has cost {spent:.2f} of the {self._daily_cost:.2f} US dollars that a day "
                "may cost; go on after midnight (UTC), or raise `daily_cost` in the settings.",
                retry_after_s=(midnight - now).total_seconds(),
                reason="budget",
            )

    async def bound(self, user: str, limits: Limits) -> Limits:
        """The bounds of a turn that begins now, with no more money than the day has left.

        Raises:
            StoreError: What was used cannot be read.
        """
        if self._daily_cost is None:
            return limits
        left = max(0.0, self._daily_cost - await self._spent(user))
        most = left if limits.max_cost is None else min(left, limits.max_cost)
        return msgspec.structs.replace(limits, max_cost=most)

    def note(self, count: UsageCount) -> None:
        """Take note of what one request cost; it may not be committed yet."""
        if self._daily_cost is not None:
            spent = self._cost(count.user, count.day) + (count.cost or 0.0)
            self._known[count.user] = (count.day, spent)

    def used_up(self, user: str) -> str | None:
        """Why no further step of a user's turns may begin today; `None` while one may.

        It knows what a day had cost when a turn of the user last began, and all since.
        """
        if self._daily_cost is None:
            return None
        spent = self._cost(user, self.today().isoformat())
        return "budget" if spent >= self._daily_cost else None

    async def report(
        self, user: str, by: str, *, first: str | None = None, last: str | None = None
    ) -> UsageReport:
        """What a user has used.

        Args:
            user: Whose.
            by: What a row is: `day`, `model` or `session`.
            first: The first day, `YYYY-MM-DD`; `None` for 30 days.
            last: The last one; `None` for today.

        Raises:
            UsageError: There is no such day, or no such way to part it.
            StoreError: It cannot be read.
        """
        if by not in _BY:
            raise UsageError(f"There is no by={by[:20]!r}; it is one of: {', '.join(_BY)}.")
        end = self.today() if last is None else _read_day(last, "to")
        begin = _days_before(end) if first is None else _read_day(first, "from")
        if begin > end:
            raise UsageError(f"from={begin} lies behind to={end}; swap them.")
        span = (begin.isoformat(), end.isoformat())
        rows, total = await self._store.query(
            partial(usage.report, user=user, first=span[0], last=span[1], by=by)
        )
        return UsageReport(
            by=by,
            first=span[0],
            last=span[1],
            rows=tuple(rows),
            total=total,
            today_cost=await self._spent(user),
            daily_cost=self._daily_cost,
        )

    async def _spent(self, user: str) -> float:
        day = self.today().isoformat()
        stored = await self._store.query(partial(usage.cost_of_day, user=user, day=day))
        # What was noted meanwhile may not be in the store yet.
        spent = max(stored, self._cost(user, day))
        self._known[user] = (day, spent)
        return spent

    def _cost(self, user: str, day: str) -> float:
        """What is known of a day without the store."""
        known = self._known.get(user)
        return known[1] if known is not None and known[0] == day else 0.0

    def _now(self) -> datetime:
        return datetime.fromtimestamp(self._now_ms() / 1000, UTC)


def _days_before(last: date) -> date:
    """The first day of a report of the usual length, or the first that there is."""
    try:
        return last - timedelta(days=_DAYS - 1)
    except OverflowError:
        return date.min


def _read_day(text: str, name: str) -> date:
    try:
        found = date.fromisoformat(text)
    except ValueError:
        found = None
    if found is None or found.isoformat() != text:  # other ways to write a day sort otherwise
        raise UsageError(f"{name}={text[:20]!r} is no day; write it as 2026-01-31.")
    return found
