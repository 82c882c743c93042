"""Prints the lowest versions that pyproject.toml promises to work with, as constraints for pip (``make
lowest``)."""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parent.parent
EXTRAS = (
    *("web", "plots", "parquet", "fast", "postgres", "scrapy", "duckdb", "sqlalchemy"),
    *("browser", "text", "notify", "objects"),
)
"""The extras that users install. The tools of developers are always new."""


def lowest_versions(project: Path = ROOT / "pyproject.toml", extras: Sequence[str] = EXTRAS) -> list[str]:
    """Return ``name==version`` for each dependency, with the version after its ``>=``."""
    table = tomllib.loads(project.read_text())["project"]
    wanted = [
        *table["dependencies"],
        *(line for name in extras for line in table["optional-dependencies"][name]),
    ]
    found = []
    for line in wanted:
        parts = re.fullmatch(r"(?P<name>[\w.-]+)(?:\[[\w,]+\])?>=(?P<version>[\w.]+)(?:;.*)?", line)
        if parts is None:
            raise SystemExit(f"{project}: {line!r} states no lowest version: write name>=version")
        found.append(f"{parts['name']}=={parts['version']}")
    return found


if __name__ == "__main__":
    sys.stdout.write("\n".join(lowest_versions()) + "\n")
