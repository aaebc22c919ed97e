"""Durable agent sessions: an event log, a live stream, recovery."""

from towline_server.api.access import Authenticate, Caller
from towline_server.api.accounts import OWNER, Accounts
from towline_server.auth.hosts import is_loopback
from towline_server.auth.password import check_new_password, check_user_name
from towline_server.build import BuiltApp, build_app
from towline_server.config import Config, load_config
from towline_server.doctor.examine import examine_store
from towline_server.doctor.finding import Finding
from towline_server.doctor.machine import check_page, check_port
from towline_server.doctor.repair import Repaired, repair_store
from towline_server.doctor.store_file import copy_store
from towline_server.embed import EmbeddedApp, create_app
from towline_server.errors import (
    AccessDenied,
    AddressInUse,
    AlreadyAnswered,
    BodyTooLarge,
    BudgetSpent,
    ConsentPending,
    CursorExpired,
    DeadlineExceeded,
    Draining,
    HostRefused,
    InboxFull,
    KeyReused,
    MediaUnsupported,
    MethodRefused,
    NotOffered,
    ProviderNotFound,
    ProvidersAbsent,
    Rejected,
    RootForbidden,
    RouteNotFound,
    SessionBusy,
    SessionError,
    SessionGone,
    SessionNotFound,
    Starting,
    StillRunning,
    StoreCorrupt,
    StoreError,
    StoreFull,
    StoreLocked,
    TokenNotFound,
    TooManyReaders,
    TooManyTokens,
    TooManyTries,
    TrustRefused,
    UpstreamUnavailable,
    UserConflict,
    UserNotFound,
    WrongPassword,
)
from towline_server.log_format import JsonFormatter
from towline_server.main import Ready, RunFile, serve
from towline_server.models.providers import Providers, SignIns
from towline_server.sessions.agents import DEFAULT_AGENT, Agents, AgentSpec, Connect, Connection
from towline_server.sessions.budget import Budget
from towline_server.sessions.catalog import list_stored_sessions
from towline_server.sessions.connection import PlainConnect
from towline_server.sessions.own import notes_of, tell_notes
from towline_server.sessions.policies import Policies, Trust
from towline_server.store.sqlite_store import SqliteStore, open_memory_store, open_store

__all__ = [
    "DEFAULT_AGENT",
    "OWNER",
    "AccessDenied",
    "Accounts",
    "AddressInUse",
    "AgentSpec",
    "Agents",
    "AlreadyAnswered",
    "Authenticate",
    "BodyTooLarge",
    "Budget",
    "BudgetSpent",
    "BuiltApp",
    "Caller",
    "Config",
    "Connect",
    "Connection",
    "ConsentPending",
    "CursorExpired",
    "DeadlineExceeded",
    "Draining",
    "EmbeddedApp",
    "Finding",
    "HostRefused",
    "InboxFull",
    "JsonFormatter",
    "KeyReused",
    "MediaUnsupported",
    "MethodRefused",
    "NotOffered",
    "PlainConnect",
    "Policies",
    "ProviderNotFound",
    "Providers",
    "ProvidersAbsent",
    "Ready",
    "Rejected",
    "Repaired",
    "RootForbidden",
    "RouteNotFound",
    "RunFile",
    "SessionBusy",
    "SessionError",
    "SessionGone",
    "SessionNotFound",
    "SignIns",
    "SqliteStore",
    "Starting",
    "StillRunning",
    "StoreCorrupt",
    "StoreError",
    "StoreFull",
    "StoreLocked",
    "TokenNotFound",
    "TooManyReaders",
    "TooManyTokens",
    "TooManyTries",
    "Trust",
    "TrustRefused",
    "UpstreamUnavailable",
    "UserConflict",
    "UserNotFound",
    "WrongPassword",
    "build_app",
    "check_new_password",
    "check_page",
    "check_port",
    "check_user_name",
    "copy_store",
    "create_app",
    "examine_store",
    "is_loopback",
    "list_stored_sessions",
    "load_config",
    "notes_of",
    "open_memory_store",
    "open_store",
    "repair_store",
    "serve",
    "tell_notes",
]
