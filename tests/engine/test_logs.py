"""Log lines: one line each, and nothing in them that a terminal would obey."""

from __future__ import annotations

import json
import logging

import pytest

from afresh.engine.logs import EqualFailures, JsonLines, PlainLines

KEY = "https://a.test/\x1b[2J\u202e\x9b\n2026 forged line"


@pytest.mark.parametrize("lines", [PlainLines(), JsonLines()])
def test_texts_from_outside_are_escaped(lines: logging.Formatter) -> None:
    record = logging.LogRecord("afresh", logging.INFO, "", 1, "polled", None, None)
    record.__dict__["fields"] = {"item": KEY}
    line = lines.format(record)
    assert not {"\x1b", "\u202e", "\x9b", "\n"} & set(line)
    if isinstance(lines, JsonLines):
        assert json.loads(line)["item"] == KEY


def _record(message: str, created: float, **fields: object) -> logging.LogRecord:
    record = logging.LogRecord("afresh", logging.INFO, "", 1, message, None, None)
    record.created = created
    record.__dict__["fields"] = fields
    return record


def test_a_thousand_equal_failures_are_three_lines_and_a_count() -> None:
    failures, lines = EqualFailures(), PlainLines()
    given = [
        _record(
            "poll failed", 100.0 + n / 1000, item=f"a{n}", kind="refused", problem="robots.txt forbids it"
        )
        for n in range(1000)
    ]
    given += [_record("poll failed", 101.5, item="b", kind="failed", problem="503 Service Unavailable")]
    given += [_record("stopped", 102.0, polls=1001)]
    said = [lines.format(each) for record in given for each in failures.pass_on(record)]
    assert [line.split(" ", 1)[1] for line in said[3:]] == [
        'poll failed item=b kind=failed problem="503 Service Unavailable"',
        '997 further polls failed kind=refused problem="robots.txt forbids it"',
        "stopped polls=1001",
    ]


def test_each_minute_has_its_own_count() -> None:
    failures = EqualFailures()
    given = [_record("poll failed", 100.0 + 15 * n, kind="failed", problem="x") for n in range(9)]
    said = [each.getMessage() for record in given for each in failures.pass_on(record)]
    assert said == [
        *["poll failed"] * 3,
        "1 further poll failed",
        *["poll failed"] * 3,
        "1 further poll failed",
        "poll failed",
    ]
