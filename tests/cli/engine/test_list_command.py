"""``afresh list``, and ``--match``, ``--source`` and ``--status`` of ``set``, ``remove`` and ``export``."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK
from tests.servers.site import Site


@pytest.fixture
def polled(mirror: Afresh, site: Site) -> Afresh:
    """A project with copies of ``/a`` and ``/b``, a missing page ``/docs/x`` and a paused ``/c``."""
    assert mirror("add", *(f"{site.url}/{path}" for path in ("a", "b", "c", "docs/x"))).code == 0
    assert mirror("set", f"{site.url}/c", "--pause").code == 0
    assert mirror("run", "--once", *QUICK).code == 0
    return mirror


def keys(mirror: Afresh, site: Site, *options: str) -> list[str]:
    ran = mirror("list", "--columns", "item", *options)
    assert ran.code == 0
    return [line.removeprefix(site.url) for line in ran.out.splitlines()]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ((), ["/a", "/b", "/c", "/docs/x"]),
        (("--match", "*/docs/*"), ["/docs/x"]),
        (("--match", "*/[ab]"), ["/a", "/b"]),
        (("--match", "/docs/*"), []),
        (("--status", "paused"), ["/c"]),
        (("--status", "new"), ["/c", "/docs/x"]),
        (("--status", "failing"), ["/docs/x"]),
        (("--source", "web", "--status", "active", "--match", "*/[abc]"), ["/a", "/b"]),
        (("--sort", "key", "--descending", "--limit", "2"), ["/docs/x", "/c"]),
    ],
)
def test_filters_and_order(polled: Afresh, site: Site, options: tuple[str, ...], expected: list[str]) -> None:
    assert keys(polled, site, *options) == expected


def test_json_has_the_columns_and_times_in_unix_seconds(polled: Afresh, site: Site) -> None:
    found = json.loads(polled("list", "--json", "--columns", "item,polled,rate,fresh,plan").out)
    assert found["count"] == 4
    first, last = found["items"][0], found["items"][-1]
    assert first["item"] == f"{site.url}/a"
    assert first["polled"] > 1e9
    assert first["rate"] > 0
    assert 0 <= first["fresh"] <= 1
    assert (last["polled"], last["plan"]) == (None, "new")


def test_lines_have_titles_and_ages(polled: Afresh, site: Site) -> None:
    title, first, *_ = polled("list").out.splitlines()
    assert title.split() == ["status", "polled", "changed", "due", "polls", "changes", "failures", "item"]
    assert first.split()[0] == "active"
    assert " ago" in first
    assert first.endswith(f"{site.url}/a")


def test_rates_have_their_unit(polled: Afresh) -> None:
    cell = polled("list", "--columns", "rate,status").out.splitlines()[1]
    assert re.match(r" *[0-9.e+]+ an? (second|hour|day|week|year)  active", cell)


def test_a_table_of_all_items_and_of_none(polled: Afresh, tmp_path: Path) -> None:
    assert polled("list", "-o", "items.csv").code == 0
    rows = list(csv.DictReader(io.StringIO((tmp_path / "items.csv").read_text())))
    assert [row["status"] for row in rows] == ["active", "active", "paused", "active"]
    assert polled("list", "-o", "none.csv", "--match", "x").code == 0
    assert (tmp_path / "none.csv").read_text().startswith("status,polled")
    assert json.loads(polled("list", "--json", "--match", "x").out) == {"items": [], "count": 0}


def test_set_and_remove_take_the_same_filters(polled: Afresh, site: Site) -> None:
    assert "2 items changed" in polled("set", "--match", "*/[ab]", "--weight", "3").err
    assert keys(polled, site, "--sort", "weight", "--descending", "--limit", "2") == ["/b", "/a"]
    assert polled("set", "--status", "paused", "--resume").code == 0
    assert keys(polled, site, "--status", "paused") == []
    assert "1 item removed" in polled("remove", "--status", "failing").err
    assert keys(polled, site) == ["/a", "/b", "/c"]
    assert "0 items removed" in polled("remove", "--match", "nothing").err
    assert "3 items removed" in polled("remove", "--source", "web", "--match", "*").err
    assert keys(polled, site) == []


def test_a_list_of_no_item_may_be_piped_to_remove(
    polled: Afresh, site: Site, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO(""))
    assert "0 items removed" in polled("remove", "--file", "-").err
    (tmp_path / "empty").touch()
    assert "names no item" in polled("remove", "--file", tmp_path / "empty").err
    assert len(keys(polled, site)) == 4


def test_export_writes_what_is_selected(polled: Afresh, site: Site, tmp_path: Path) -> None:
    lines = polled("export", "--match", "*/b").out.splitlines()
    assert [json.loads(line)["item"] for line in lines] == [f"{site.url}/b"]
    assert polled("export", "--format", "polls", "-o", "polls.csv", "--match", "*/a").code == 0
    assert (tmp_path / "polls.csv").read_text().count(site.url) == 1
    assert polled("export", "--format", "dir", "-o", "out", "--status", "paused").code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["index.jsonl"]


@pytest.mark.parametrize(
    ("command", "words"),
    [
        (("remove", "--source", "web"), "give URLs, --file, --match or --status (--match '*' for all"),
        (("remove", "x", "--match", "*"), "--match and --status select items: not with URLs or --file"),
        (("list", "--status", "lost"), "unknown status 'lost'"),
        (("list", "--columns", "item,size"), "unknown column 'size'"),
        (("list", "--sort", "size"), "unknown sort 'size'"),
        (("list", "--limit", "0"), "--limit 0: give 1 or more"),
        (("list", "--json", "-o", "x.csv"), "not with --output"),
        (("export", "--source", "wbe"), "unknown source 'wbe': did you mean 'web'?"),
    ],
)
def test_wrong_options(mirror: Afresh, command: tuple[str, ...], words: str) -> None:
    ran = mirror(*command)
    assert ran.code == 2
    assert words in ran.err


def test_a_pattern_without_stars_that_matches_nothing_is_told_how_to_match(
    mirror: Afresh, site: Site
) -> None:
    mirror("add", f"{site.url}/a")
    assert "must match the whole key, as '*/a*' does" in mirror("list", "--match", "/a").err
    assert "whole key" not in mirror("list", "--match", "*/b*").err


def test_a_mistyped_key_and_cursor_are_helped(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/page1.html")
    for command in ("get", "why"):
        assert f"did you mean '{site.url}/page1.html'?" in mirror(command, f"{site.url}/page1.htm").err
    words = mirror("changes", "--since", "yesterday").err
    assert "a cursor is a place in the feed, and comes with each change (afresh changes --json)" in words
