"""The model of new sessions, as an admin chooses it while the server runs."""

import asyncio

from towline.models import Choice, Models, choose_model, find_model
from towline.picks import Picks
from towline.providers.reach import Reach
from towline_server import Rejected, StoreError

__all__ = ["DefaultChoice"]


class DefaultChoice:
    """Called with a model, or with `None` for what is there.

    Args:
        models: Has the model of new sessions.
        picks: Keeps the choice for the next start.
        reach: What is there to choose from.
        configured: The model that the settings name: they count at each start, so no other one is
            taken here. `None` when they name none, or only this start's own command line does.
    """

    def __init__(
        self, models: Models, picks: Picks, reach: Reach, configured: str | None = None
    ) -> None:
        self._models = models
        self._picks = picks
        self._reach = reach
        self._configured = configured
        self._choosing = asyncio.Lock()

    async def __call__(self, model: str | None) -> None:
        """Take a model, and keep it.

        Raises:
            Rejected: The settings name another one.
            StoreError: It could not be kept.
        """
        if self._configured is not None:
            raise Rejected(
                f"The settings of this server name {self._configured!r} as the model of new "
                "sessions. Change `model` in config.toml, or take it out to choose here.",
                reason="configured",
            )
        async with self._choosing:
            choice = await self._find(model)
            try:
                self._picks.choose(model)
            except OSError as error:
                raise StoreError(
                    f"The choice could not be kept ({error.strerror}); see that the data folder "
                    "is writable."
                ) from error
            self._models.choice = choice

    async def _find(self, model: str | None) -> Choice:
        if model is not None:
            return choose_model(model)
        return await find_model(
            None, self._reach.environ, picks=self._picks, stored=self._reach.stored
        )
