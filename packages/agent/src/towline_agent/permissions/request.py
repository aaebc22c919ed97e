"""A permission request, and what an answer to it means."""

from collections.abc import Mapping
from typing import Final

import msgspec

from towline_agent.permissions.gate import Case, Verdict, offered_options
from towline_agent.permissions.rules import Rule, parse_rule
from towline_protocol import (
    DENY,
    CallId,
    Option,
    PermissionId,
    PermissionRequested,
    PermissionResolved,
    Preview,
    permission_digest,
)

__all__ = [
    "Asked",
    "bind",
    "bound_preview",
    "make_request",
    "read_denial",
    "read_rule",
    "tell_denial",
]

_PREVIEW_CHARS: Final = 65_536
"""A preview longer than this is cut, and says so: what is not seen is not approved (W07)."""
_DENIALS: Final = {
    "deadline": "Nobody answered in time, so it was denied.",
    "nobody": "Nobody is there to allow it, so it was denied.",
}
"""What the model is told of a denial that no person gave, by who gave it."""
_NO_WAY_ROUND: Final = "Do not try to get round it."


class Asked(msgspec.Struct, frozen=True, kw_only=True):
    """What a person is asked about."""

    call: CallId
    """The call."""
    title: str
    """One line for a person."""
    arguments: str
    """The JSON text as the model proposed it."""
    preview: Preview
    """What a person sees."""
    bases: Mapping[str, str]
    """Path to hash of each file that the preview shows."""
    expires_at: str
    """Until when it can be answered; whoever asks sets the real moment."""


def make_request(
    permission: PermissionId, case: Case, verdict: Verdict, asked: Asked
) -> PermissionRequested:
    """The request for a call that a person must allow."""
    options = offered_options(
        case.tool, verdict.asking, whole=case.whole, stores=case.policy.stores
    )
    return PermissionRequested(
        permission=permission,
        call=asked.call,
        tool=case.tool,
        title=asked.title,
        preview=bound_preview(asked.preview),
        digest=bind(permission, case, asked, options),
        options=options,
        reason=verdict.reason,
        expires_at=asked.expires_at,
    )


def bind(permission: PermissionId, case: Case, asked: Asked, options: tuple[Option, ...]) -> str:
    """The digest that binds an answer to exactly this call in this state of the files (A5.61).

    Beside the files that the preview shows goes in which places outside the root are opened.
    """
    hashes = [asked.bases[path] for path in sorted(asked.bases)]
    places = sorted({place for part in case.parts for place in part.grants})
    hashes += [f"outside {place}" for place in places]
    return permission_digest(
        permission=permission,
        tool=case.tool,
        arguments=asked.arguments,
        cwd=case.root,
        base_hashes=tuple(hashes),
        options=tuple(option.id for option in options),
    )


def bound_preview(preview: Preview) -> Preview:
    """A preview within its bound; it says when it is cut."""
    if len(preview.text) <= _PREVIEW_CHARS:
        return preview
    return Preview(kind=preview.kind, text=preview.text[:_PREVIEW_CHARS], truncated=True)


def _chosen(decision: PermissionResolved, request: PermissionRequested) -> Option | None:
    found = (option for option in request.options if option.id == decision.option)
    option = next(found, None)
    return None if option is None or option.id == DENY else option


def read_denial(decision: PermissionResolved, request: PermissionRequested) -> str | None:
    """What the model is told of an answer that does not allow; `None` for one that does."""
    if _chosen(decision, request) is not None:
        return None
    why = _DENIALS.get(decision.by, "A person denied it.")
    note = f" They say: {decision.note}" if decision.note else ""
    return f"{why}{note} {_NO_WAY_ROUND}"


def read_rule(decision: PermissionResolved, request: PermissionRequested) -> Rule | None:
    """The rule that an answer stores: exactly the one that was shown (R39)."""
    option = _chosen(decision, request)
    return None if option is None or option.rule is None else parse_rule(option.rule)


def tell_denial(verdict: Verdict) -> str:
    """What the model is told of a call that rules or the mode deny."""
    return f"Denied by {verdict.reason}. {_NO_WAY_ROUND}"
