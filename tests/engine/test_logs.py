"""Log lines: one line each, and nothing in them that a terminal would obey."""

from __future__ import annotations

import json
import logging

import pytest

from afresh.engine.logs import JsonLines, PlainLines

KEY = "https://a.test/\x1b[2J\u202e\x9b\n2026 forged line"


@pytest.mark.parametrize("lines", [PlainLines(), JsonLines()])
def test_texts_from_outside_are_escaped(lines: logging.Formatter) -> None:
    record = logging.LogRecord("afresh", logging.INFO, "", 1, "polled", None, None)
    record.__dict__["fields"] = {"item": KEY}
    line = lines.format(record)
    assert not {"\x1b", "\u202e", "\x9b", "\n"} & set(line)
    if isinstance(lines, JsonLines):
        assert json.loads(line)["item"] == KEY
