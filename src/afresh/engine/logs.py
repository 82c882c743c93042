"""Logs with named fields, as text (``polled item=a kind=unchanged``) or as one JSON object per line.

Logs contain keys, messages and numbers. They never contain secrets, headers, settings or content.
"""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

from afresh.values.printable_text import printable, printable_json

LOGGER = logging.getLogger("afresh.engine")


def log_event(level: int, event: str, **fields: object) -> None:
    LOGGER.log(level, event, extra={"fields": fields})


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
