"""What a session's readers are shown: the log's view, as they want it, and what is on its way.

A view that was kept from the last time stands in until the log's own has come.
"""

from collections.abc import Callable

import msgspec

from towline_client.courier import Courier
from towline_client.flow import Latest
from towline_protocol import (
    Fault,
    OutgoingPrompt,
    Presentation,
    SessionView,
    Shown,
    empty_view,
    present,
    show_outgoing,
)

__all__ = ["Screen"]

_set = msgspec.structs.replace


class Screen:
    """Makes the view that is shown out of all that has a say in it."""

    def __init__(
        self,
        courier: Courier,
        *,
        presentation: Presentation | None = None,
        keep: Callable[[SessionView | None], None] | None = None,
    ) -> None:
        """Begin with an empty view.

        Args:
            courier: Whose prompts are on their way.
            presentation: How much of what is being written is shown.
            keep: Told the log's view when a message has ended, and `None` when there is no such
                session any more.
        """
        self.views = Latest(empty_view())
        """The newest view as it is shown."""
        self._courier = courier
        self._keep = keep
        courier.on_change = self._heed
        self._log_view: SessionView | None = None
        self._kept: SessionView | None = None
        self._fault: Fault | None = None
        self._outgoing: tuple[OutgoingPrompt, ...] = ()
        self._presentation = presentation or Presentation()
        self._shown = Shown()

    @property
    def presentation(self) -> Presentation:
        """How much of what is being written is shown."""
        return self._presentation

    def choose(self, presentation: Presentation) -> None:
        """Show as much as this from the next block on."""
        self._refresh()  # so that blocks held by now keep what was in force
        self._presentation = presentation
        self._refresh()

    def restore(self, view: SessionView) -> None:
        """Show a view of the last time until the log's own comes."""
        self._kept = view
        self._refresh()

    def show(self, view: SessionView, *, since_ms: int | None = None) -> None:
        """Show the log's newest view.

        Args:
            view: The view.
            since_ms: When it was asked for, if it was fetched whole.
        """
        ended = self._log_view is None or view.messages is not self._log_view.messages
        self._log_view = view
        self._kept = None
        if since_ms is not None:
            self._courier.settle(view, since_ms=since_ms)
        self._refresh()
        if ended and self._keep is not None:
            self._keep(view)

    def show_again(self) -> None:
        """Wake the readers: what the view asks for is answered by others now."""
        self.views.set(self.views.value)

    def saw(self, key: str | None) -> None:
        """Take in that the log has admitted a prompt of this key."""
        self._courier.saw(key)

    def show_fault(self, fault: Fault | None) -> None:
        """Show why the line was given up, as the view's last fault; `None` takes it back."""
        self._fault = fault
        self._refresh()

    def forget(self) -> None:
        """There is no such session any more: keep nothing of it."""
        if self._keep is not None:
            self._keep(None)

    def _heed(self) -> None:
        """Show what is on its way, when that is another by now."""
        if self._courier.outgoing != self._outgoing:
            self._refresh()

    def _refresh(self) -> None:
        view = self._log_view or self._kept or empty_view()
        self._shown, view = present(self._shown, view, self._presentation)
        self._outgoing = self._courier.outgoing
        view = show_outgoing(view, self._outgoing)
        if self._fault is not None:
            view = _set(view, fault=self._fault)
        self.views.set(view)
