"""A program ``dbt`` for the tutorial: it writes what the real dbt wrote for the same project, as of now.

``make interop`` types the same tutorial through with the real dbt.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

from tests.sources.recorded_dbt import DATA

TARGET = Path("target")
_LONG_AGO = timedelta(days=1)


def build(selected: list[str]) -> None:
    """Write the results of a build of these models that ended now; without any, of all of them."""
    TARGET.mkdir(exist_ok=True)
    shutil.copy(DATA / "1-built" / "manifest.json", TARGET)
    text = (DATA / "1-built" / "run_results.json").read_text()
    found = json.loads(re.sub(r"\d{4}-\d\d-\d\dT[\d:.]+", _now().isoformat()[:26], text))
    found["metadata"]["invocation_id"] = str(uuid4())
    if selected:
        found["results"] = [
            one for one in found["results"] if one["unique_id"].rpartition(".")[2] in selected
        ]
    (TARGET / "run_results.json").write_text(json.dumps(found))


def source_freshness() -> None:
    """Write when each source was loaded last: at first long ago, and afterwards orders just now."""
    again = (TARGET / "sources.json").exists()
    found: dict[str, Any] = json.loads((DATA / "2-loaded" / "sources.json").read_text())
    found["metadata"]["generated_at"] = _now().isoformat()
    for one in found["results"]:
        is_new = again and one["unique_id"].endswith(".orders")
        one["max_loaded_at"] = (_now() if is_new else _now() - _LONG_AGO).isoformat()
        one["snapshotted_at"] = _now().isoformat()
    (TARGET / "sources.json").write_text(json.dumps(found))


def _now() -> datetime:
    return datetime.now(UTC)


def main(words: list[str]) -> None:
    command = [word for word in words if word != "--quiet"]
    if command == ["source", "freshness"]:
        source_freshness()
    else:
        assert command[0] == "build", words
        build(command[2:] if command[1:2] == ["--select"] else [])


if __name__ == "__main__":
    main(sys.argv[1:])
