"""Parsers that only parser processes call, because they may take long for small inputs too."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from afresh.cli.engine.imports.changedetection import read_backup, read_changedetection
from afresh.cli.engine.imports.csv_list import read_csv
from afresh.cli.engine.imports.opml import read_opml
from afresh.cli.engine.imports.urlwatch import read_urlwatch
from afresh.sources.change_detection import Recipe, normalise
from afresh.sources.texts.main_text import extract_text
from afresh.values.errors import AfreshError

_XPATH = Recipe(selectors=("//main", "//p/ancestor::div", "xpath:count(//*)"), drop=("//b",))


def _imported(read: Callable[[bytes, str], Any]) -> Callable[[bytes], None]:
    def work(data: bytes) -> None:
        with suppress(AfreshError):
            read(data, "given")

    return work


def _pdf(data: bytes) -> None:
    extract_text(b"%PDF-1.4\n" + data, "application/pdf")


PARSERS_BESIDE: Mapping[str, Callable[[bytes], Any]] = {
    "main text": lambda data: extract_text(data, "text/html"),
    "markdown": lambda data: extract_text(data, "text/html", "markdown"),
    "PDF": _pdf,
    "XPath": lambda data: normalise(data, "text/html", _XPATH),
    "urlwatch": _imported(read_urlwatch),
    "changedetection": _imported(read_changedetection),
    "changedetection backup": _imported(read_backup),
    "OPML": _imported(read_opml),
    "CSV": _imported(read_csv),
}


def peak_memory_beside_kb(data: bytes, parser: str) -> int:
    """Call one of these parsers; return the most memory that this process has used, in KB."""
    with suppress(Exception):  # whatever it raises becomes words where it is called
        PARSERS_BESIDE[parser](data)
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
