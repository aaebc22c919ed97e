"""The numbers of the contract: other tests name the constants, this one what they are."""

from pathlib import Path

import pytest

from towline_server.api import accounts, deadline, guard, remember
from towline_server.api.handlers import call
from towline_server.auth import codes
from towline_server.config import Config
from towline_server.main import GRACE_S
from towline_server.sessions import bulk, client_tool, feed, inbox, live, recovery
from towline_server.sessions.deadline import Patience
from towline_server.store import idempotency, tombstones
from towline_server.stream import follow, hub, listener, pump

KIB, MIB = 1024, 1024 * 1024
DAY_S = 24 * 3600
CONFIG = Config(data_dir=Path())


@pytest.mark.rules("C6")
def test_the_limits() -> None:
    assert (live.MAX_LIVE, CONFIG.live_sessions, live.IDLE_S) == (8, 8, 5 * 60)
    assert (hub.MAX_READERS, inbox.MAX_INBOX, call.MAX_BLOCKS) == (16, 32, 64)
    assert (guard.MAX_PROMPT_BODY, guard.MAX_BODY) == (28 * MIB, MIB)
    assert (client_tool.MAX_CLIENT_TOOLS, client_tool.MAX_SCHEMA_BYTES) == (32, 32 * KIB)
    assert bulk.MAX_EVENT == MIB


@pytest.mark.rules("C1.10")
def test_what_stands_in_an_event_and_what_beside_it() -> None:
    assert (bulk.MAX_PART, bulk.MAX_FILE) == (64 * KIB, 20 * MIB)


@pytest.mark.rules("C2.5", "C2.10", "C2.12")
def test_how_long_answers_and_tombstones_are_kept_and_what_a_feed_begins_with() -> None:
    assert (idempotency.KEPT_MS, remember.WAIT_S) == (DAY_S * 1000, 30)
    assert tombstones.KEPT_MS == DAY_S * 1000
    assert feed.FEED_ROWS == 50
    assert deadline.MAX_TIMEOUT_S == DAY_S


def test_how_long_credentials_hold() -> None:
    assert (accounts.LOGIN_LIFE_S, accounts.DEVICE_LIFE_S) == (DAY_S, 180 * DAY_S)
    assert codes.CODE_LIFE_S == 10 * 60


@pytest.mark.rules("C3.2", "C3.5", "C3.7", "C3.8")
def test_the_stream() -> None:
    assert (follow.RETRY_MS, follow.MAX_REPLAY) == (3000, 10_000)
    assert (pump.HEARTBEAT_S, pump.STALL_S) == (15, 10)
    assert (hub.MAX_FRAMES, hub.MAX_QUEUE_BYTES, hub.CHUNK_BYTES) == (4096, 2 * MIB, 64 * KIB)
    assert (listener.SEND_BUFFER_BYTES, listener.USER_TIMEOUT_MS) == (256 * KIB, 30_000)


@pytest.mark.rules("C5.4", "C5.9", "C5.14")
def test_how_often_is_tried_again_and_how_long_is_waited() -> None:
    patience = Patience()
    assert (patience.permission_s, patience.away_s, patience.question_s) == (120, 30 * 60, 60)
    assert (CONFIG.permission_window_s, CONFIG.orphan_turn) == (120, "continue")
    assert recovery.MAX_ATTEMPTS == 3
    assert GRACE_S == 30
