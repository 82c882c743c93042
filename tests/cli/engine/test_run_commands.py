"""``afresh run``: what it says of closed windows, moved, refused and missing pages, and of wrong settings."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh, Ran
from tests.cli.engine.conftest import QUICK, closed_window, write_settings
from tests.servers.site import Site, redirect

from afresh.engine.app import open_engine
from afresh.values.errors import UsageError


def test_closed_windows_are_said_everywhere(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    window = closed_window()
    opens = f"{window[:5]}:00 UTC"
    write_settings(tmp_path, f'[[source]]\nname = "web"\nwindows = ["{window}"]\n')
    key = f"{site.url}/a"
    mirror("add", key)
    why = mirror("why", key).out
    assert f"{opens}" in why.split("next poll")[1].splitlines()[0]
    assert "its source is polled only in its windows" in why
    assert mirror("due").out == mirror("due", "--lease", "1m").out == ""
    assert "outside its windows until" in mirror("status").out
    ran = mirror("run", "--for", "0.2s", *QUICK)
    assert f"every source is outside its windows until {datetime.now(UTC):%Y-}" in ran.err
    assert opens in ran.err
    assert site.paths() == []


def test_where_a_page_moved_for_good_is_said_once_and_kept_over_runs(mirror: Afresh, site: Site) -> None:
    site.routes["/old"] = redirect("/a", 301)
    key = f"{site.url}/old"
    mirror("add", key)
    mirror("run", "--once", *QUICK)
    said = []
    for _ in range(2):
        assert mirror("set", key, "--poll-now").code == 0
        said.append(mirror("run", "--once", *QUICK, "--set", "plan.audit_share=0").err)
    assert not any("moved permanently" in words for words in said)
    assert site.paths() == ["/robots.txt", "/old", "/a", "/a", "/a"]
    assert mirror("get", key).out == "a"


def refused(mirror: Afresh, site: Site) -> Ran:
    """A run that may ask nothing."""
    assert mirror("add", *(f"{site.url}/{name}" for name in "abc")).code == 0
    return mirror("run", "--once", "--json")


def test_what_is_refused_is_said_with_its_remedy_and_costs_nothing(mirror: Afresh, site: Site) -> None:
    ran = refused(mirror, site)
    done = json.loads(ran.out)
    assert (ran.code, done["failures"], done["requests"]) == (1, 3, 0)
    last = ran.err.splitlines()[-1]
    assert "3 items" in last
    assert "--allow-private" in last
    status = json.loads(mirror("status", "--json").out)
    assert status["spent_last_hour"]["requests"] == 0
    (problem,) = status["problems"]
    assert problem["items"] == 3
    for words in (mirror("status").out, mirror("why", f"{site.url}/a").out):
        assert "127.0.0.1 is a loopback address (allowed by --allow-private" in " ".join(words.split())
    assert site.seen == []


def test_what_was_refused_is_polled_at_once_when_it_is_allowed(mirror: Afresh, site: Site) -> None:
    refused(mirror, site)
    done = json.loads(mirror("run", "--once", "--json", *QUICK).out)
    assert (done["polls"], done["failures"]) == (3, 0)
    assert json.loads(mirror("status", "--json").out)["problems"] == []


def test_what_was_refused_waits_while_nothing_is_different(mirror: Afresh, site: Site) -> None:
    refused(mirror, site)
    assert json.loads(mirror("run", "--once", "--json").out)["polls"] == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('headers = { Authorization = "Bearer env:AFRESH_TEST_UNSET" }', "AFRESH_TEST_UNSET"),
        ('on_change = "no_such_module:told"', "on_change 'no_such_module:told' cannot be found"),
    ],
)
def test_a_run_that_cannot_start_does_not_say_that_it_has(
    mirror: Afresh, tmp_path: Path, line: str, words: str
) -> None:
    (tmp_path / "afresh.toml").write_text(f'[[source]]\nname = "web"\n{line}\n', encoding="utf-8")
    ran = mirror("run", "--once")
    assert ran.code == 2
    assert words in ran.err
    assert "started" not in ran.err


def test_what_is_not_there_is_missing_before_it_is_gone(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/nowhere")
    ran = mirror("run", "--once", *QUICK)
    assert "kind=missing" in ran.err
    assert "kind=gone" not in ran.err


def test_a_time_before_now_is_refused(mirror: Afresh) -> None:
    with open_engine() as engine, pytest.raises(UsageError, match="for_s is -1: give seconds from 0 on"):
        engine.run(for_s=-1)
    assert mirror("status").code == 0


def test_a_run_without_items_names_the_command_that_adds_them(mirror: Afresh, site: Site) -> None:
    assert "no items yet: add some with 'afresh add'" in mirror("run", "--for", "0.1s", *QUICK).err
    mirror("add", f"{site.url}/a")
    assert "no items yet" not in mirror("run", "--for", "0.1s", *QUICK).err


def test_every_command_shows_the_same_budget_for_each_item(
    mirror: Afresh, site: Site, tmp_path: Path
) -> None:
    site.routes["/list"] = site.routes["/a"]
    write_settings(tmp_path, '[budget]\nrequests = "2/item/s"\n[[source]]\nname = "web"\n')
    added = mirror("add", f"{site.url}/a", f"{site.url}/b", "--sitemap", f"{site.url}/list")
    assert "/item/" in added.err
    assert "for 2 items; to read now, give --set budget.requests=1/s" in added.err
    whole = "4/s"
    assert f"{whole} for 2 items" in mirror("run", "--for", "0.1s").err
    assert whole in mirror("status").out
    assert "2/item/s in requests" in mirror("config", "check").out
