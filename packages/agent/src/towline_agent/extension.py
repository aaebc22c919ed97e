"""What other packages bring along: by entry points, or by a name in the settings (A4.62, A4.63).

A broken one is a notice for people, never an error (A4.65). Nothing is looked for before somebody
asks: reading what is installed takes time.
"""

import importlib
import logging
from collections.abc import Callable, Collection, Iterable
from typing import Any, Final

import msgspec

from towline_protocol import UsageError

__all__ = ["Extension", "Extensions", "installed_extensions", "installed_names", "named_extensions"]

_log: Final = logging.getLogger("towline.extension")


class Extension(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that was loaded."""

    name: str
    """The name of its entry point, or `pkg.module:name`."""
    value: Any
    """What stands there."""


class Extensions(msgspec.Struct, frozen=True, kw_only=True):
    """What was loaded, and what could not be."""

    found: tuple[Extension, ...] = ()
    """In the order of their names, or as they were asked for."""
    notices: tuple[str, ...] = ()
    """For people: what is broken and what to do."""


def installed_names(group: str) -> tuple[str, ...]:
    """The names that installed packages register in a group; nothing is imported for it."""
    from importlib.metadata import entry_points

    return tuple(sorted({point.name for point in entry_points(group=group)}))


def installed_extensions(
    group: str, *, only: Collection[str] | None = None, off: Collection[str] = ()
) -> Extensions:
    """What installed packages register in a group.

    Args:
        group: Such as `towline.tools`.
        only: Names to load; `None` for all.
        off: Names to leave alone (A4.64).
    """
    from importlib.metadata import entry_points

    points = {
        point.name: point
        for point in entry_points(group=group)
        if point.name not in off and (only is None or point.name in only)
    }
    return _load(
        (name, f"the package {point.dist.name!r}" if point.dist else "a package", point.load)
        for name, point in sorted(points.items())
    )


def named_extensions(references: Iterable[str]) -> Extensions:
    """What stands at `pkg.module:name` (A4.63)."""
    return _load((name, "the settings", lambda name=name: _resolve(name)) for name in references)


def _resolve(reference: str) -> Any:
    module, _, path = reference.partition(":")
    value: Any = importlib.import_module(module)
    for part in path.split("."):
        value = getattr(value, part)
    return value


def _load(wanted: Iterable[tuple[str, str, Callable[[], Any]]]) -> Extensions:
    found: list[Extension] = []
    notices: list[str] = []
    for name, owner, load in wanted:
        try:
            found.append(Extension(name=name, value=_loaded(name, owner, load)))
        except UsageError as error:
            notices.append(error.message)
    return Extensions(found=tuple(found), notices=tuple(notices))


def _loaded(name: str, owner: str, load: Callable[[], Any]) -> Any:
    try:
        return load()
    except (Exception, SystemExit) as error:  # other people's modules run here (A4.65)
        _log.info("The extension %r of %s cannot be loaded", name, owner, exc_info=True)
        raise UsageError(
            f"{name!r} of {owner} was left out, since it cannot be loaded ({_explain(error)}); "
            "mend it, or take it out."
        ) from error


def _explain(error: BaseException) -> str:
    """The class of an error, and its words where they only speak of names."""
    kind = type(error).__name__
    return f"{kind}: {error}" if isinstance(error, ImportError | AttributeError) else kind
