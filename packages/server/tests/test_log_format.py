"""Log lines for programs."""

import logging
import sys

import msgspec

from towline_server.log_format import LOG_FIELDS, JsonFormatter


def _record(message: str, *values: object, **extra: object) -> logging.LogRecord:
    record = logging.LogRecord(
        "towline.server", logging.WARNING, __file__, 1, message, values, None
    )
    record.__dict__.update(extra)
    return record


def test_a_record_is_one_line_of_json() -> None:
    line = JsonFormatter().format(_record("It broke:\n%s", "a\u2028b\x1b[2J"))
    assert line.isascii()
    assert "\n" not in line
    assert "\x1b" not in line
    found = msgspec.json.decode(line)
    assert (found["level"], found["logger"]) == ("warning", "towline.server")
    assert found["message"] == "It broke:\na\u2028b\x1b[2J"
    assert found["time"].endswith("Z")
    assert set(found) == {"time", "level", "logger", "message"}


def test_what_is_known_of_a_request_are_fields_and_nothing_else_is() -> None:
    known = {name: name for name in LOG_FIELDS}
    record = _record("x", **known, token="secret")
    assert set(msgspec.json.decode(JsonFormatter().format(record))) == {
        "time",
        "level",
        "logger",
        "message",
        *LOG_FIELDS,
    }


def test_a_session_that_a_message_names_can_be_looked_for() -> None:
    found = msgspec.json.decode(JsonFormatter().format(_record("Session %s stopped", "ses_01ab")))
    assert found["session"] == "ses_01ab"


def test_a_fault_of_ours_brings_its_traceback() -> None:
    record = _record("It broke")
    try:
        raise RuntimeError("why")
    except RuntimeError:
        record.exc_info = sys.exc_info()
    found = msgspec.json.decode(JsonFormatter().format(record))
    assert "RuntimeError: why" in found["error"]
