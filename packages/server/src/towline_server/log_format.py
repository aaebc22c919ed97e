"""Log lines for programs: one JSON object a record."""

import json
import logging
import re
from typing import Any, Final

from towline_protocol import format_time

__all__ = ["LOG_FIELDS", "JsonFormatter"]

LOG_FIELDS: Final = ("request_id", "trace", "session", "method", "path", "status", "duration_ms")
"""What a record may say beside its message, as `extra`. Never a query, a header or a body: tokens,
codes and what people say stand there."""

_SESSION: Final = re.compile(r"\bses_\w+")


class JsonFormatter(logging.Formatter):
    """One line of ASCII a record: `time`, `level`, `logger`, `message`, then what is known.

    A session that the message names is a field of its own, so that its lines can be found.
    """

    def format(self, record: logging.LogRecord) -> str:
        """The record as one line."""
        message = record.getMessage()
        line: dict[str, Any] = {
            "time": format_time(round(record.created * 1000)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": message,
        }
        for name in LOG_FIELDS:
            value = getattr(record, name, None)
            if value is not None:
                line[name] = value
        named = _SESSION.search(message)
        if named is not None:
            line.setdefault("session", named[0])
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=True, default=str)
