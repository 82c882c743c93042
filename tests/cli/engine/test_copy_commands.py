"""``afresh get`` and ``afresh export``: what they print and write."""

from __future__ import annotations

import json
from pathlib import Path

from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK
from tests.servers.site import Site


def test_get_that_polls_says_nothing_more(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    ran = mirror("get", f"{site.url}/a", "--max-age", "0s", "--allow-private")
    assert (ran.code, ran.out, ran.err) == (0, "a", "")
    ran = mirror("get", f"{site.url}/a", "--max-age", "0s")
    assert ran.out == "a"  # an old copy is more than none
    assert "old: refused: 127.0.0.1 is a loopback address" in ran.err


def test_a_folder_of_copies_says_what_each_file_is(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("export", "--format", "dir", "-o", "copies")
    (row,) = map(json.loads, (tmp_path / "copies" / "index.jsonl").read_text(encoding="utf-8").splitlines())
    assert list(row) == ["item", "source", "file", "polled", "changed", "media_type", "version"]
    assert (tmp_path / "copies" / row["file"]).read_bytes() == b"a"
    assert (row["media_type"], row["version"], row["changed"]) == ("text/html", 1, None)


def test_polls_are_exported_as_estimate_reads_them(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    ran = mirror("export", "--format", "polls", "-o", "polls.csv")
    assert (ran.code, ran.err) == (0, "1 poll\n")
    assert mirror("export", "--format", "polls").out.startswith("item,time,changed,modified,count,source\n")
    found = mirror("estimate", "polls.csv", "--json")
    assert (found.code, json.loads(found.out)["items"]) == (0, 1)
