"""What a revert would do: from what was kept and what stands now to steps and conflicts. Pure."""

from collections.abc import Callable, Iterable, Mapping, Sequence

import msgspec

from towline_agent.workspaces.tree import ABSENT_STATE, State, ancestors
from towline_agent.workspaces.turn_diff import told_path
from towline_protocol import FileConflict

__all__ = ["RevertPlan", "Step", "Touch", "order_steps", "plan_revert"]


class Touch(msgspec.Struct, frozen=True):
    """What one turn did to a path, as long as nobody else did anything to it in between."""

    path: str
    """The path."""
    before: State
    """What stood there first."""
    after: State | None
    """What stood there last; `None` when a crash came before that was known."""


class Step(msgspec.Struct, frozen=True):
    """One path that is set."""

    path: str
    """The path."""
    now: State
    """What stands there."""
    target: State
    """What shall stand there."""


class RevertPlan(msgspec.Struct, frozen=True):
    """What a revert would do."""

    steps: tuple[Step, ...]
    """The paths to set, in the order in which it works."""
    conflicts: tuple[FileConflict, ...] = ()
    """The paths that somebody else has changed since."""
    left: tuple[str, ...] = ()
    """What cannot be as it was, a sentence each."""


def plan_revert(
    touches: Mapping[str, Sequence[Touch]],
    look: Callable[[str], State],
    names: Callable[[str], Iterable[str]],
    have: Callable[[str], bool] = lambda hashed: True,
) -> RevertPlan:
    """What it takes to go back to before all of these touches.

    Args:
        touches: Path to its touches, oldest first.
        look: What stands at a path.
        names: The paths right in a folder.
        have: Whether the bytes of a hash are still kept.
    """
    going = _Going(look, names, have)
    for path, chain in touches.items():
        if not all(touch.after is not None and touch.before == touch.after for touch in chain):
            going.take(path, chain)
    while going.settle():
        pass
    return RevertPlan(
        steps=tuple(order_steps(going.steps.values())),
        conflicts=tuple(sorted(going.conflicts.values(), key=lambda conflict: conflict.path)),
        left=tuple(going.left[path] for path in sorted(going.left)),
    )


def order_steps(steps: Iterable[Step]) -> list[Step]:
    """The order that works: what goes first, the deepest first; then what comes, from above."""
    found = sorted(steps, key=lambda step: step.path)
    goes = [step for step in found if _goes(step)]
    return [*reversed(goes), *(step for step in found if not _goes(step))]


def _goes(step: Step) -> bool:
    return step.target.kind == "absent"


class _Going:
    """A plan that is being made: each round takes out what another one's absence forbids."""

    def __init__(
        self,
        look: Callable[[str], State],
        names: Callable[[str], Iterable[str]],
        have: Callable[[str], bool],
    ) -> None:
        self.steps: dict[str, Step] = {}
        self.conflicts: dict[str, FileConflict] = {}
        self.left: dict[str, str] = {}
        self._look = look
        self._names = names
        self._have = have

    def take(self, path: str, chain: Sequence[Touch]) -> None:
        now = self._look(path)
        target = _follow(chain, now)
        if target is None:
            self.conflicts[path] = FileConflict(path=path, what=_what(chain[-1].after, now))
        elif target.kind == "other":
            self.left[path] = (
                f"{told_path(path)}: a pipe, a socket or a device cannot be made again"
            )
        elif target == now or (target.same(now) and now != chain[-1].after):
            pass  # a folder's mode goes back only if it is still the turn's own
        elif target.kind == "file" and not self._have(target.hash):
            self.left[path] = f"{told_path(path)}: what it held before is not kept any more"
        else:
            self.steps[path] = Step(path, now, target)

    def settle(self) -> bool:
        """One round; whether anything changed."""
        before = len(self.steps), len(self.conflicts), len(self.left)
        for step in list(self.steps.values()):
            if step.now.kind == "dir" and step.target.kind != "dir":
                self._check_empty(step)
            if step.target.kind != "absent" and step.path in self.steps:
                self._check_above(step)
        return before != (len(self.steps), len(self.conflicts), len(self.left))

    def _check_empty(self, step: Step) -> None:
        """A folder goes only when nothing stays in it."""
        stays = [path for path in self._names(step.path) if not self._will_be_absent(path)]
        if not stays:
            return
        del self.steps[step.path]
        name = told_path(stays[0].rpartition("/")[2])
        if step.target.kind == "absent":
            self.left[step.path] = f"{told_path(step.path)}: the folder still holds {name!r}"
        else:
            what = f"the folder that stands there now still holds {name!r}"
            self.conflicts[step.path] = FileConflict(path=step.path, what=what)

    def _will_be_absent(self, path: str) -> bool:
        step = self.steps.get(path)
        return step is not None and step.target.kind == "absent"

    def _check_above(self, step: Step) -> None:
        """What comes needs its folders."""
        for above in ancestors(step.path):
            planned = self.steps.get(above)
            kind = self._look(above).kind if planned is None else planned.target.kind
            if kind == "dir":
                return
            if planned is None and kind == "absent" and above not in self.conflicts:
                self.steps[above] = Step(above, ABSENT_STATE, State("dir", 0o755))
                continue
            del self.steps[step.path]
            what = f"there is no folder {told_path(above)!r} any more to put it in"
            self.conflicts[step.path] = FileConflict(path=step.path, what=what)
            return


def _follow(chain: Sequence[Touch], now: State) -> State | None:
    """What stood before the first touch, if all that came since is known; else `None`."""
    if now == chain[0].before:
        return now  # somebody was quicker
    at = now
    for touch in reversed(chain):
        if touch.after is not None and at.same(touch.after):
            at = touch.before
        elif touch.after is not None or not at.same(touch.before):
            return now if now.same(chain[0].before) else None
    return at


def _what(after: State | None, now: State) -> str:
    if after is None:
        return "the server ended while it was being changed"
    if after.kind == "absent":
        return "something was put there since"
    return "it was removed since" if now.kind == "absent" else "it was changed since"
