"""The search for costly inputs finds what is there: parsers that hang, crash or raise, and nothing else."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.sources.parsing import fuzz


@pytest.mark.parametrize(
    ("parser", "words"),
    [("refuse", "KeyError"), ("crash", "ends the process: -11"), ("hoard", "MemoryError")],
)
def test_what_breaks_a_parser_is_found_and_kept(
    parser: str, words: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert fuzz.main(["0.001", parser, "--seed", "1"], tmp_path) == 1
    assert words in capfd.readouterr().out
    assert next(tmp_path.iterdir()).read_bytes()


def test_a_parser_that_keeps_its_limits_has_no_findings(tmp_path: Path) -> None:
    assert fuzz.main(["0.001", "describe", "--seed", "1"], tmp_path) == 0
