"""The whole program run in this process, as a shell would see it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from afresh.cli.app import perform


@dataclass(frozen=True)
class Ran:
    """What a shell sees of a command that has ended."""

    code: int
    out: str
    err: str


Afresh = Callable[..., Ran]


@pytest.fixture
def afresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> Afresh:
    """Runs ``afresh …`` in an empty folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")

    def run(*arguments: object) -> Ran:
        monkeypatch.setattr(sys, "argv", ["afresh", *map(str, arguments)])
        code = 0
        try:
            perform()  # the signals stay those of the tests
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        out, err = capfdbinary.readouterr()
        return Ran(code, out.decode(), err.decode())

    return run


@pytest.fixture
def table_5(tmp_path: Path) -> Path:
    """Cho's Table 5: five items that change 1 to 5 times a day."""
    path = tmp_path / "items.csv"
    path.write_text("item,rate\na,1\nb,2\nc,3\nd,4\ne,5\n")
    return path
