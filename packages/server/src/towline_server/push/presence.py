"""Which users look at a client right now (C5.16). It knows no clock."""

from typing import Final

__all__ = ["MAX_CLIENTS", "VISIBLE_S", "Presence"]

VISIBLE_S: Final = 45.0
"""Seconds for which a beacon counts: two that come every 20 s may be late or lost."""
MAX_CLIENTS: Final = 64
"""Clients of a user that are remembered; with one more, the one that was seen longest ago goes."""


class Presence:
    """The newest beacon of each client; nothing is kept of who does not look."""

    def __init__(self) -> None:
        self._seen: dict[str, dict[str, float]] = {}

    def note(self, user: str, client: str, now_s: float, *, visible: bool) -> bool:
        """Take in a beacon.

        Args:
            user: Whose client it is.
            client: What the client calls itself.
            now_s: Seconds that never go back.
            visible: Whether its screen is seen.

        Returns:
            Whether the user looks from now on and did not before.
        """
        before = self.visible(user, now_s)
        clients = self._seen.setdefault(user, {})
        clients.pop(client, None)  # the newest stands last
        if visible:
            clients[client] = now_s
        for name in list(clients)[:-MAX_CLIENTS]:
            del clients[name]
        if not clients:
            del self._seen[user]
        return visible and not before

    def visible(self, user: str, now_s: float) -> bool:
        """Whether a client of the user is seen."""
        return self.lapse_s(user, now_s) is not None

    def lapse_s(self, user: str, now_s: float) -> float | None:
        """Seconds until nobody counts as looking unless a beacon comes; `None` when nobody does."""
        clients = self._seen.get(user)
        if not clients:
            return None
        left_s = max(clients.values()) + VISIBLE_S - now_s
        if left_s <= 0:
            del self._seen[user]
            return None
        return left_s
