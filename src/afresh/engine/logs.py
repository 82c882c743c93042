"""Logs with named fields, as text (``polled item=a kind=unchanged``) or as one JSON object per line.

Logs contain keys, messages and numbers. They never contain secrets, headers, settings or content.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from afresh.values.formatting import format_count
from afresh.values.printable_text import printable, printable_json

_SHOWN_FAILURES = 3
_MINUTE_S = 60.0

LOGGER = logging.getLogger("afresh.engine")


def log_event(level: int, event: str, **fields: object) -> None:
    LOGGER.log(level, event, extra={"fields": fields})


class EqualFailures:
    """Counts failures of polls that are equal, so that people read one line and not a thousand.

    Of failures with one problem, the first three of each minute pass; the others are counted. The count is
    said when the minute is over and something else is logged, or when the run stops."""

    def __init__(self) -> None:
        self._seen: dict[tuple[object, object], int] = {}
        self._since_s = 0.0

    def pass_on(self, record: logging.LogRecord) -> list[logging.LogRecord]:
        """Return the records to write in place of ``record``."""
        said = []
        if record.created - self._since_s >= _MINUTE_S or record.getMessage() == "stopped":
            said = [_counted(record, *entry) for entry in self._seen.items() if entry[1] > _SHOWN_FAILURES]
            self._seen, self._since_s = {}, record.created
        if record.getMessage() != "poll failed":
            return [*said, record]
        fields = getattr(record, "fields", {})
        problem = (fields.get("kind"), fields.get("problem"))
        self._seen[problem] = self._seen.get(problem, 0) + 1
        return said if self._seen[problem] > _SHOWN_FAILURES else [*said, record]


def _counted(record: logging.LogRecord, problem: tuple[object, object], times: int) -> logging.LogRecord:
    """Return a record that says how many failures were not written, at the time of ``record``."""
    words = f"{format_count(times - _SHOWN_FAILURES, 'further poll')} failed"
    found = logging.LogRecord(record.name, logging.INFO, "", 0, words, None, None)
    found.created = record.created
    found.__dict__["fields"] = {"kind": problem[0], "problem": problem[1]}
    return found


class PlainLines(logging.Formatter):
    """Formats a line like ``2026-11-15T22:10:51Z polled item=a kind=unchanged``."""

    def format(self, record: logging.LogRecord) -> str:
        level = f"{record.levelname.lower()}: " if record.levelno >= logging.WARNING else ""
        words = [f"{name}={_shown(value)}" for name, value in getattr(record, "fields", {}).items()]
        return printable(" ".join([_moment(record), level + record.getMessage(), *words]))


class JsonLines(logging.Formatter):
    """Formats a line as a JSON object with ``time``, ``level``, ``event`` and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        head = {"time": _moment(record), "level": record.levelname.lower(), "event": record.getMessage()}
        return printable_json(
            json.dumps(head | getattr(record, "fields", {}), ensure_ascii=False, default=str)
        )


def _moment(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _shown(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return json.dumps(text, ensure_ascii=False) if any(char in text for char in ' "=\n') or not text else text
