"""``afresh changes`` and ``afresh consumers``: what they print, and which places they save."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK
from tests.servers.site import Site, page


def polled(mirror: Afresh, site: Site, *names: str) -> None:
    mirror("add", *(f"{site.url}/{name}" for name in names))
    assert mirror("run", "--once", *QUICK).code == 0


def rows(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_changes_are_lines_for_people_and_objects_for_programs(mirror: Afresh, site: Site) -> None:
    polled(mirror, site, "a", "b")
    start = mirror("changes", "--cursor").out.strip()
    assert json.loads(mirror("changes", "--cursor", "--json").out) == {"cursor": start}
    site.routes["/a"] = page(b"other")
    mirror("get", f"{site.url}/a", "--max-age", "0s", "--allow-private")
    mirror("remove", f"{site.url}/b")
    lines = mirror("changes").out.splitlines()
    assert [line.split()[3] for line in lines] == ["new", "new", "changed", "removed"]
    assert lines[2].endswith(f"web  {site.url}/a  version 2  5 B (+4)")
    found = rows(mirror("changes", "--json", "--since", start).out)
    assert [(row["kind"], row["size"], row["previous_size"]) for row in found] == [
        ("changed", 5, 1),
        ("removed", None, 1),
    ]
    assert "content" not in found[0]
    found = rows(mirror("changes", "--json", "--content", "raw", "--source", "web").out)
    assert [row.get("content") for row in found] == ["a", None, "other", None]
    assert len(mirror("changes", "--limit", "3").out.splitlines()) == 3
    assert mirror("changes", "--since", "now").out == ""


def test_wrong_options_and_cursors_say_what_would_be_right(mirror: Afresh, site: Site) -> None:
    polled(mirror, site, "a")
    ran = mirror("changes", "--since", "1-1-00000000")
    assert (ran.code, ran.out) == (1, "")
    assert "not of this feed" in ran.err
    assert "start again: take a new cursor (afresh changes --cursor)" in ran.err
    assert mirror("changes", "--since", "yesterday").code == 1
    for wrong, words in (
        (("--content", "raw"), "--content needs --json or --exec"),
        (("--json", "--content", "pdf"), "unknown form of content 'pdf'"),
        (("--source", "wbe"), "did you mean 'web'"),
    ):
        ran = mirror("changes", *wrong)
        assert ran.code == 2
        assert words in ran.err


def test_a_consumer_continues_where_it_stopped(mirror: Afresh, site: Site) -> None:
    polled(mirror, site, "a", "b", "c")
    assert mirror("consumers").err.startswith("there are no consumers")
    first = rows(mirror("changes", "--consumer", "index", "--limit", "2", "--json").out)
    rest = rows(mirror("changes", "--consumer", "index", "--json").out)
    assert [len(first), len(rest)] == [2, 1]
    assert mirror("changes", "--consumer", "index").out == ""
    (shown,) = json.loads(mirror("consumers", "list", "--json").out)["consumers"]
    assert (shown["name"], shown["source"], shown["behind"]) == ("index", None, 0)
    assert mirror("consumers", "reset", "index", "--to", first[0]["cursor"]).code == 0
    assert "2 changes behind" in mirror("consumers").out
    assert len(rows(mirror("changes", "--consumer", "index", "--json").out)) == 2
    mirror("consumers", "reset", "index")
    assert len(rows(mirror("changes", "--consumer", "index", "--json").out)) == 3
    assert mirror("consumers", "remove", "index").code == 0
    for wrong in (("remove", "index"), ("reset",), ("list", "index"), ("list", "--to", "now"), ("drop", "x")):
        assert mirror("consumers", *wrong).code == 2


def test_a_command_that_fails_gets_its_changes_again(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    polled(mirror, site, "a", "b")
    program = tmp_path / "index.py"
    program.write_text("import sys, pathlib\npathlib.Path('got').write_text(sys.stdin.read())\nsys.exit(3)\n")
    run = ("--consumer", "index", "--content", "raw", "--exec", f"{sys.executable} {program}")
    ran = mirror("changes", *run)
    assert ran.code == 1
    assert "ended with exit code 3: its changes come again" in ran.err
    assert mirror("consumers").err.startswith("there are no consumers")
    program.write_text(program.read_text().replace("exit(3)", "exit(0)"))
    assert mirror("changes", *run).code == 0
    assert sorted(str(row["content"]) for row in rows((tmp_path / "got").read_text())) == ["a", "b"]
    assert "0 changes behind" in mirror("consumers").out
    assert "no-such-program" in mirror("changes", "--exec", "no-such-program").err
