"""Files of a command: what is refused before the work begins, and lines of text."""

from __future__ import annotations

import io
from pathlib import Path

import pytest

from afresh.cli.files import check_files, read_lines
from afresh.values.errors import AfreshError, InputError


@pytest.mark.parametrize(
    ("inputs", "output", "picture", "as_json", "words"),
    [
        (["-", "-"], None, None, False, "standard input"),
        (["items.csv"], "-", None, True, "--json and -o -"),
        (["items.csv"], "./items.csv", None, False, "is also an input"),
        (["items.csv"], None, "items.csv", False, "is also an input"),
        (["items.csv"], "plan.txt", None, False, "plan.txt"),
        (["items.csv"], None, "plan.pdfx", False, "plan.pdfx"),
        (["items.csv"], "nowhere/plan.csv", None, False, "nowhere"),
    ],
)
def test_files_that_would_fail_at_the_end_are_refused_at_the_start(
    inputs: list[str | None], output: str | None, picture: str | None, as_json: bool, words: str,
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "items.csv").write_text("item,rate\na,1\n")
    with pytest.raises(AfreshError, match=words):
        check_files(inputs, output, picture, as_json=as_json)


def test_files_that_can_be_used_are_left_as_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    check_files(["-", "items.csv", None], "plan.csv", "plan.svg")
    check_files(["-"], "-")
    assert list(tmp_path.iterdir()) == []


def test_lines_come_with_their_numbers_and_without_blank_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "keys.txt").write_text("a\n\n  b \n")
    assert list(read_lines(str(tmp_path / "keys.txt"), "an item")) == [(1, "a"), (3, "b")]
    monkeypatch.setattr("sys.stdin", io.StringIO("c\n"))
    assert list(read_lines("-", "an item")) == [(1, "c")]


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "keys.txt").write_bytes(b"\xff\n")
    with pytest.raises(InputError, match=r"keys\.txt: is not UTF-8 text with an item a line"):
        list(read_lines(str(tmp_path / "keys.txt"), "an item"))
    with pytest.raises(InputError, match=r"none\.txt: cannot be read"):
        list(read_lines(str(tmp_path / "none.txt"), "an item"))
