"""What can go wrong in the server.

```
TowlineError
├─ SessionError                never raised itself
│  ├─ SessionNotFound          no such session, or not this user's (C2.9)
│  ├─ SessionBusy              the session cannot do that now
│  ├─ SessionGone              closed or deleted: it takes no more prompts (C2.10)
│  ├─ AlreadyAnswered          somebody decided otherwise, or the digest does not fit
│  ├─ InboxFull                too many prompts wait
│  ├─ Rejected                 a well-formed wish that cannot be granted
│  ├─ RootForbidden            a folder outside the server's roots (D2)
│  ├─ CursorExpired            the list cannot go on from that cursor
│  ├─ SessionLimit             as many of the user's sessions are live as may be (C6)
│  └─ TooManyReaders           all reader places of the session are taken (C6)
├─ StoreError                  the store could not do its work
│  ├─ StoreFull                no room on the disk
│  ├─ StoreCorrupt             what is stored is not what was written
│  └─ StoreLocked              another process owns the data folder (C5.3)
├─ AccessDenied                no credential, or an unknown one
├─ TooManyTries                too many wrong codes or passwords
├─ WrongPassword               the old password that a new one needs is another one
├─ UserNotFound, TokenNotFound nobody of that name, no token of that id
├─ UserConflict                the name is taken, or the user must stay
├─ TrustRefused                a folder's files are others than those a person saw (A5.51)
├─ TooManyTokens               a user has as many as there may be
├─ NotOffered                  the server is part of another one, which knows who is who
├─ KeyReused                   one idempotency key, two bodies
├─ StillRunning                the first request of an idempotency key takes too long
├─ FileNotFound              no such file, or not this user's (C2.9)
├─ UploadsFull                 too many bytes wait for prompts that name them
├─ BodyTooLarge, MediaUnsupported, RouteNotFound, MethodRefused, Draining
├─ DeadlineExceeded            a request took longer than it gave itself (C2.7)
├─ Starting                    the server is not up yet
├─ AdminOnly                   only an admin may do it
├─ BudgetSpent                 the user's day has cost what it may
├─ ProviderNotFound            no such provider
├─ ProvidersAbsent             this server keeps no keys for anybody
├─ PushUnavailable             this server cannot call anybody (C7.1)
├─ PushNotFound                no such device that is called, or not this user's
├─ ConsentPending              nobody has consented to a sign-in so far
├─ UpstreamUnavailable         a provider does not answer
├─ Stale                       what was read has changed since (C2.6)
├─ HostRefused                 a host or origin that is not ours
└─ AddressInUse                another program listens there
```
"""

from typing import ClassVar

from towline_protocol import TowlineError

__all__ = [
    "AccessDenied",
    "AddressInUse",
    "AdminOnly",
    "AlreadyAnswered",
    "BodyTooLarge",
    "BudgetSpent",
    "ConsentPending",
    "CursorExpired",
    "DeadlineExceeded",
    "Draining",
    "FileNotFound",
    "HostRefused",
    "InboxFull",
    "KeyReused",
    "MediaUnsupported",
    "MethodRefused",
    "ProviderNotFound",
    "ProvidersAbsent",
    "PushNotFound",
    "PushUnavailable",
    "Rejected",
    "RootForbidden",
    "RouteNotFound",
    "SessionBusy",
    "SessionError",
    "SessionGone",
    "SessionLimit",
    "SessionNotFound",
    "Stale",
    "Starting",
    "StillRunning",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "TooManyReaders",
    "TooManyTries",
    "TrustRefused",
    "UploadsFull",
    "UpstreamUnavailable",
]


class SessionError(TowlineError):
    """Something about one session. Never raised itself."""


class SessionNotFound(SessionError):
    """There is no such session, or it is not this user's; both look the same (C2.9)."""

    code: ClassVar[str] = "not_found"


class SessionBusy(SessionError):
    """The session cannot do that now; `reason` says why, such as `turn_active`."""

    code: ClassVar[str] = "conflict"


class SessionGone(SessionError):
    """The session is closed or deleted. It can perhaps be read, never prompted (C2.10)."""

    code: ClassVar[str] = "gone"


class CursorExpired(SessionError):
    """A page of the session list cannot go on from that cursor: ask for the first page."""

    code: ClassVar[str] = "precondition_failed"


class SessionLimit(SessionError):
    """As many of the user's sessions are live as may be (C6); try again when one is not."""

    code: ClassVar[str] = "capacity_exceeded"
    usual_scope: ClassVar[str | None] = "limit"


class TooManyReaders(SessionError):
    """All reader places of the session are taken (C6); try again when one has left."""

    code: ClassVar[str] = "capacity_exceeded"
    usual_scope: ClassVar[str | None] = "limit"


class AlreadyAnswered(SessionError):
    """A decision that comes second, or that was made on something else (C5.10)."""

    code: ClassVar[str] = "conflict"


class InboxFull(SessionError):
    """Too many prompts wait in the session (C6)."""

    code: ClassVar[str] = "capacity_exceeded"
    usual_scope: ClassVar[str | None] = "limit"


class Rejected(SessionError):
    """The request is well formed, but what it names is not on offer."""

    code: ClassVar[str] = "rejected"


class RootForbidden(SessionError):
    """The folder lies outside those that the server may work in (D2)."""

    code: ClassVar[str] = "forbidden"


class AccessDenied(TowlineError):
    """No credential, or one that is not known here; `reason` says which."""

    code: ClassVar[str] = "unauthorized"


class KeyReused(TowlineError):
    """An `Idempotency-Key` came again with another body (C2.5)."""

    code: ClassVar[str] = "idempotency_conflict"


class StillRunning(TowlineError):
    """The first request with this `Idempotency-Key` takes too long; ask again (C2.5)."""

    code: ClassVar[str] = "upstream_unavailable"


class FileNotFound(TowlineError):
    """There is no file of that hash, or it is not this user's; both look the same (C2.9)."""

    code: ClassVar[str] = "not_found"


class UploadsFull(TowlineError):
    """The user's uploads that no prompt names yet hold as many bytes as they may."""

    code: ClassVar[str] = "capacity_exceeded"
    usual_scope: ClassVar[str | None] = "limit"


class BodyTooLarge(TowlineError):
    """The body is larger than the operation takes (C6)."""

    code: ClassVar[str] = "payload_too_large"


class MediaUnsupported(TowlineError):
    """The body is not JSON."""

    code: ClassVar[str] = "unsupported_media"


class RouteNotFound(TowlineError):
    """There is nothing at that path."""

    code: ClassVar[str] = "not_found"


class MethodRefused(TowlineError):
    """The path is there, but not with that method."""

    code: ClassVar[str] = "method_not_allowed"


class Draining(TowlineError):
    """The server shuts down and takes nothing new (C5.14)."""

    code: ClassVar[str] = "draining"


class TooManyTries(TowlineError):
    """Too many wrong codes or passwords in a short time; wait before the next one."""

    code: ClassVar[str] = "rate_limited"
    usual_scope: ClassVar[str | None] = "limit"


class WrongPassword(TowlineError):
    """The old password, which a change of one's own needs, is missing or another one."""

    code: ClassVar[str] = "rejected"


class UserNotFound(TowlineError):
    """There is no user of that name, or it is not the caller's to know (C2.9)."""

    code: ClassVar[str] = "not_found"


class TokenNotFound(TowlineError):
    """The caller has no token of that id; another user's looks the same (C2.9)."""

    code: ClassVar[str] = "not_found"


class UserConflict(TowlineError):
    """The name is taken, was taken once, or belongs to a user who must stay."""

    code: ClassVar[str] = "conflict"


class TrustRefused(TowlineError):
    """The files of a folder are others than those that were seen, or can't be read whole."""

    code: ClassVar[str] = "conflict"


class TooManyTokens(TowlineError):
    """The user has as many tokens for programs as there may be; revoke one first."""

    code: ClassVar[str] = "capacity_exceeded"
    usual_scope: ClassVar[str | None] = "limit"


class NotOffered(TowlineError):
    """This server does not do that: it is part of another one, which knows who is who."""

    code: ClassVar[str] = "capability_unavailable"


class DeadlineExceeded(TowlineError):
    """The request took longer than its `towline-timeout` (C2.7)."""

    code: ClassVar[str] = "deadline_exceeded"


class Starting(TowlineError):
    """The server is not up yet; come back in a moment."""

    code: ClassVar[str] = "upstream_unavailable"


class AdminOnly(TowlineError):
    """The operation is for admins."""

    code: ClassVar[str] = "forbidden"


class BudgetSpent(TowlineError):
    """The user's day has cost what it may (`daily_cost`); the next one begins at midnight, UTC."""

    code: ClassVar[str] = "rate_limited"
    usual_scope: ClassVar[str | None] = "limit"


class ProviderNotFound(TowlineError):
    """There is no provider of that name."""

    code: ClassVar[str] = "not_found"


class ProvidersAbsent(TowlineError):
    """This server was started without anybody who knows models and keeps keys."""

    code: ClassVar[str] = "capability_unavailable"


class PushUnavailable(TowlineError):
    """This server cannot call anybody; `reason` says what is missing."""

    code: ClassVar[str] = "capability_unavailable"


class PushNotFound(TowlineError):
    """There is no such device, or it is not this user's; both look the same (C2.9)."""

    code: ClassVar[str] = "not_found"


class ConsentPending(TowlineError):
    """A sign-in still waits for a person; ask again once they have consented."""

    code: ClassVar[str] = "conflict"


class UpstreamUnavailable(TowlineError):
    """A provider, or a store of keys, does not answer; the same request may work in a moment."""

    code: ClassVar[str] = "upstream_unavailable"


class Stale(TowlineError):
    """What the caller has read is no longer so; `details.etag` says what counts now (C2.6)."""

    code: ClassVar[str] = "precondition_failed"


class HostRefused(TowlineError):
    """The request names a host or an origin that is not this server's."""

    code: ClassVar[str] = "forbidden"


class StoreError(TowlineError):
    """The store could not do its work; nothing of what was asked is half written.

    With `reason="stale"` somebody else appended first: load the session again.
    """

    code: ClassVar[str] = "internal_error"
    usual_scope: ClassVar[str | None] = "store"


class StoreFull(StoreError):
    """The disk of the data folder has no room; the same request works once there is some."""

    code: ClassVar[str] = "store_full"


class StoreCorrupt(StoreError):
    """What is stored is not what was written: a damaged file, or no file of towline."""


class StoreLocked(StoreError):
    """Another process owns the data folder; the message names it and its address (C5.3)."""


class AddressInUse(TowlineError):
    """Another program listens at the address; the message says how to take another."""
