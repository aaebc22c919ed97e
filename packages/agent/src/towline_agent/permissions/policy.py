"""What stands beside a session's own rules: the user's file, the project's, and the trust in it."""

from typing import Final

import msgspec

from towline_agent.permissions.rules import Rule

__all__ = ["MODES", "Policy"]

MODES: Final = ("ask", "accept_edits", "auto", "plan")
"""`ask`: reads pass, all else asks. `accept_edits`: changes of files in the root pass too. `auto`:
all passes. `plan`: reads pass, all else is refused, and the model describes what it would do. In
every mode a denial denies, and what calls for caution asks (A5.44)."""


class Policy(msgspec.Struct, frozen=True, kw_only=True):
    """Rules that outlive a session, in the order in which they count (A5.48)."""

    mode: str | None = None
    """The mode as it is now; `None` for the one that the turn began with."""
    user: tuple[Rule, ...] = ()
    """The user's rules, those that were stored with "always" among them (A5.58)."""
    project: tuple[Rule, ...] = ()
    """The rules that the project's own file gives."""
    trusted: bool = False
    """Whether a person trusts the folder; else its rules only make things stricter (A5.49)."""
    broken: tuple[str, ...] = ()
    """Sentences about rules that can't be read: while there are any, everything asks, since one of
    them may have been a denial."""
    stores: bool = False
    """Whether whoever runs the turn keeps the rule of `allow_always`."""
