"""``afresh status`` and ``why``: hosts, budgets and items, each described once and completely."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Afresh
from tests.cli.engine.conftest import QUICK, write_settings
from tests.servers.site import Site, page

from afresh.cli.engine.status_commands import describe_audited, describe_view
from afresh.engine.app import open_engine
from afresh.engine.reporting.watched_items import WatchedItem
from afresh.engine.scheduler.audits import wilson_interval
from afresh.values.clock import SystemClock
from afresh.values.outcome import Spent


def test_a_host_of_several_sources_is_counted_once(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    tables = "".join(f'[[source]]\nname = "{name}"\ndelay = "{name}s"\n' for name in (1, 2, 4))
    write_settings(tmp_path, "[budget]\nrequests = '5/s'\n" + tables)
    for name, path in zip((1, 2, 4), "abc", strict=True):
        assert mirror("add", "--source", str(name), f"{site.url}/{path}").code == 0
    status = json.loads(mirror("status", "--json").out)
    (group,) = status["groups"]
    assert (group["source"], group["items"]) == ("1, 2, 4", 3)
    assert status["absorbed_per_s"] == 0.25
    ran = mirror("run", "--once", *QUICK)
    assert (ran.code, site.paths().count("/robots.txt")) == (0, 1)
    assert "items=3 hosts=1" in ran.err


def test_a_known_crawl_delay_counts(mirror: Afresh, site: Site) -> None:
    site.routes["/robots.txt"] = page(b"User-agent: *\nCrawl-delay: 0.2", Content_Type="text/plain")
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    status = json.loads(mirror("status", "--json", "--set", "source.web.delay=0s").out)
    assert status["absorbed_per_s"] == 5.0
    ran = mirror("run", "--for", "0s", "--budget", "9/s", "--host-delay", "0s", "--allow-private")
    assert "absorbed_per_s=5" in ran.err


def test_hosts_without_a_delay_take_what_the_budget_gives(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    assert "no host limit" in mirror("status", "--set", "source.web.delay=0s").out


def test_every_part_of_a_budget_is_shown_with_its_use(mirror: Afresh, tmp_path: Path) -> None:
    budget = 'bytes = "1MB/h"\nmoney = "10/h"\nprice_per_request = 0.5\n'
    write_settings(tmp_path, f'[budget]\n{budget}[[source]]\nname = "web"\n')
    with open_engine() as engine:
        engine.store.ledger.add("web", SystemClock().now_s(), Spent(requests=1, bytes=250_000, money=0.5))
    said = mirror("status").out
    assert re.search(r"bytes +0\.25 MB in the last hour, 25% of the limit", said)
    assert re.search(r"money +0\.5 in the last hour, 5% of the limit", said)
    status = json.loads(mirror("status", "--json").out)
    assert status["limits"]["money"] == pytest.approx(10 / 3600)
    assert status["limits"]["seconds"] is None


def test_a_paused_item_says_only_that(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("set", f"{site.url}/a", "--pause")
    why = json.loads(mirror("why", f"{site.url}/a", "--json").out)
    assert why["reasons"] == [f"paused; polled again after: afresh set {site.url}/a --resume"]
    assert "none while it is paused" in mirror("why", f"{site.url}/a").out


def test_an_item_never_fetched_has_a_wide_rate(mirror: Afresh, site: Site) -> None:
    mirror("add", *(f"{site.url}/{name}" for name in "abc"))
    before = json.loads(mirror("why", f"{site.url}/a", "--json").out)
    assert before["rate_high"] > 1e3 * before["rate_low"] > 0
    assert "not known yet" in mirror("why", f"{site.url}/a").out
    mirror("run", "--once", *QUICK)
    at_once = ("--set", "source.web.min_interval=0")
    after = json.loads(mirror("why", f"{site.url}/a", "--json", *at_once).out)
    assert after["marginal"] < 1e300  # ranked now, and no more before all others
    assert after["next_s"] > after["time_s"] - 60


def test_one_is_not_many(mirror: Afresh, site: Site) -> None:
    assert "1 new, 1 item in all" in mirror("add", f"{site.url}/a").err
    mirror("run", "--once", *QUICK)
    assert "after 1 poll, 0 changes, 0 failed" in " ".join(mirror("status").out.split())
    assert mirror("export", "-o", "copies.jsonl").err == "1 copy\n"
    assert "1 item, 1 version of their copies" in mirror("store", "check").err


def test_status_tells_the_budget_of_the_run_and_that_nothing_is_copied(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    before = mirror("status")
    assert "none has run yet" in before.out
    assert before.out.count("no copies yet") == 3
    assert json.loads(mirror("status", "--json").out)["age_s"] is None
    mirror("run", "--once", *QUICK)
    assert "1/s (the last run had 200/s)" in " ".join(mirror("status").out.split())


def test_polls_made_and_polls_worth_making_are_told_apart(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("set", f"{site.url}/a", "--poll-now")
    mirror("run", "--once", *QUICK)
    words = " ".join(mirror("why", f"{site.url}/a").out.split())
    assert re.search(r"rate no change seen yet, thought to be .* with 90 % probability", words)
    assert re.search(r"polled +planned: every .*; recently: every ", words)


def test_a_least_interval_is_said_once_and_kept(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("set", f"{site.url}/a", "--min-interval", "1w")
    assert mirror("due", "--json").out == mirror("due", "--lease", "1m").out == ""
    words = " ".join(mirror("why", f"{site.url}/a").out.split())
    assert "none: it may not be polled now" in words
    assert "next poll in 7" in words or "next poll in 6" in words
    assert "due now" not in words


def test_views_have_a_line_each_and_why_explains_one(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    items = [f"{site.url}/{name}" for name in "ab"]
    write_settings(
        tmp_path,
        f"[[source]]\nname = 'web'\n[[view]]\nname = 'front page'\nitems = {items}\nweight = 2\n"
        f"[[view]]\nname = 'odd'\nitems = ['{items[0]}', 'https://nowhere/']\n",
    )
    assert mirror("add", *items).code == 0
    assert "view front page 2 items, fresh with 0.000" in " ".join(mirror("status").out.split())
    assert mirror("run", "--once", *QUICK).code == 0
    said = " ".join(mirror("status").out.split())
    assert re.search(r"view front page 2 items, fresh with [01]\.\d+; .* with 90 % probability\)", said)
    assert re.search(r"view odd 2 items, fresh with 0\.000; .* 1 item of it not known", said)
    (front, odd) = json.loads(mirror("status", "--json").out)["item_views"]
    assert (front["name"], front["items"], front["weight"], odd["unknown"]) == ("front page", 2, 2.0, 1)
    why = mirror("why", "front page")
    for words in ("view front page", "2, added to that of each item", items[0], "most probably stale by"):
        assert words in why.out
    found = json.loads(mirror("why", "front page", "--json").out)
    assert {item["key"] for item in found["items"]} == set(items)
    assert "its weight is 3, because views add theirs: 'front page' (2)" in mirror("why", items[0]).out
    assert "did you mean 'front page'" in mirror("why", "front pag").err


def test_an_item_that_is_paused_is_not_asked_for_now(mirror: Afresh, site: Site) -> None:
    """As the API refuses it: the request would wait until the item is resumed."""
    first, second = f"{site.url}/a", f"{site.url}/b"
    mirror("add", first, second)
    mirror("set", second, "--pause")
    refused = mirror("set", first, second, "--poll-now")
    assert refused.code == 2
    assert f"{second} is paused: it is not polled; add --resume to poll it again" in refused.err
    assert mirror("set", second, "--resume", "--poll-now").code == 0


def test_a_single_version_has_nothing_to_compare_with(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    shown = mirror("get", f"{site.url}/a", "--max-age", "0s", "--diff", "--allow-private")
    assert (shown.code, shown.out) == (0, "")
    assert "there is only one version" in shown.err


def _view(**given: Any) -> WatchedItem:
    known = WatchedItem("daily", "house", "stale", 60.0, 0.1, 0.05, 0.2, 2.0, 0.0, 0.0, "")
    return replace(known, **given)


def test_the_turn_of_a_stale_view_is_told() -> None:
    assert "next: after 3 other views" in describe_view(_view(ahead=3))
    assert "next: as soon as the budget allows" in describe_view(_view())
    assert "next: when an engine runs" in describe_view(_view(ahead=3), runs=False)
    fresh = _view(state="fresh", next_s=1e9)
    assert "next: when it changes, about 2001-09-09" in describe_view(fresh)
    assert "next: when an engine runs and it changes;" in describe_view(fresh, runs=False)


@pytest.mark.parametrize(
    ("fresh", "words"),
    [
        (2, "0.342 or more by 2 random polls, which found no change"),
        (0, "0.658 or less by 2 random polls, which all found a change"),
        (1, "0.500 (0.095 … 0.905) by 2 random polls"),
    ],
)
def test_an_interval_that_ends_at_its_estimate_is_told_as_a_bound(fresh: int, words: str) -> None:
    assert describe_audited(wilson_interval(fresh, 2)) == words
