"""What commands print: whatever stands in a key or a message, the terminal obeys none of it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

import afresh
from afresh.cli.summary import print_data, print_error, print_json, print_note, print_report, print_summary

BAD = "\x1b]0;title\x07 \x9b2J \u202egnp.exe \u2066 \r\b\x7f \udc80"
UNSAFE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
CLI = Path(str(afresh.__file__)).parent / "cli"


def test_no_control_or_direction_of_outside_reaches_the_terminal(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    print_summary(BAD, [(BAD, BAD)])
    print_error(BAD)
    print_note(BAD)
    print_json({"key": BAD})
    monkeypatch.setattr("sys.stdout.isatty", lambda: True)
    print_data(BAD)
    shown = capsys.readouterr()
    assert UNSAFE.findall(shown.out + shown.err) == []
    assert json.loads(shown.out.splitlines()[0]) == {"key": BAD}
    assert "\\x1b]0;title\\x07" in shown.err
    assert shown.out.splitlines()[1].startswith("\\x1b]0;title")


def test_what_looks_like_markup_is_printed_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    print_summary("[/a] [bold]", [("[::1]:8080", "[/b]"), ("  [red]host", "[link=x]y")])
    shown = capsys.readouterr().err
    for text in ("[/a] [bold]", "[::1]:8080", "[/b]", "[red]host", "[link=x]y"):
        assert text in shown


def test_a_report_has_no_blanks_at_the_ends_of_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    print_report("title", [("name", "value " * 40), ("other", "")])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "title"
    assert len(lines) > 3
    assert [line for line in lines if line != line.rstrip()] == []


def test_data_for_programs_is_verbatim(capsys: pytest.CaptureFixture[str]) -> None:
    print_data("a\x1bb")
    assert capsys.readouterr().out == "a\x1bb\n"


def test_commands_print_only_by_the_functions_that_make_texts_safe() -> None:
    own = ("summary.py", "app.py")  # the second prints its version
    files = [path for path in CLI.rglob("*.py") if path.name not in own]
    wrong = [path.name for path in files if re.search(r"typer\.s?echo|(?<![.\w])print\(", path.read_text())]
    assert len(files) > 20
    assert wrong == []
