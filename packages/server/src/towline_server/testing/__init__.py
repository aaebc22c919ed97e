"""A whole server for tests: real store, real sessions, real HTTP, a scripted model."""

from towline_server.models.testing import FakeProviders
from towline_server.testing.app import open_test_app, open_test_server
from towline_server.testing.client import AppClient, Reply, Served, ran, sign_in
from towline_server.testing.push import FakePushService, Posted

__all__ = [
    "AppClient",
    "FakeProviders",
    "FakePushService",
    "Posted",
    "Reply",
    "Served",
    "open_test_app",
    "open_test_server",
    "ran",
    "sign_in",
]
