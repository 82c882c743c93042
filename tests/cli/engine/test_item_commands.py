"""What the engine's commands say to a stranger: refusals and missing documents in words, with what to do."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.cli.conftest import Afresh, Ran
from tests.servers.site import Site, page
from tests.servers.threaded import served, sitemap

from afresh.engine.logs import LOGGER

QUICK = ("--budget", "200/s", "--host-delay", "0.001s", "--allow-private")


@pytest.fixture
def site() -> Iterator[Site]:
    with served({f"/{name}": page(name.encode()) for name in "abc"}) as found:
        found.routes["/map.xml"] = page(sitemap(found.url, "a", "b"), Content_Type="application/xml")
        found.routes["/closed/map.xml"] = found.routes["/map.xml"]
        found.routes["/robots.txt"] = page(b"User-agent: *\nDisallow: /closed")
        yield found


@pytest.fixture
def mirror(afresh: Afresh) -> Iterator[Afresh]:
    """A shell in a new project."""
    assert afresh("init").code == 0
    yield afresh
    LOGGER.handlers.clear()


def items(mirror: Afresh) -> int:
    return int(json.loads(mirror("status", "--json").out)["items"])


@pytest.mark.parametrize(
    ("path", "options", "words"),
    [
        ("/missing.xml", ("--allow-private",), "404 Not Found"),
        ("/closed/map.xml", ("--allow-private",), "robots.txt forbids it"),
        ("/a", ("--allow-private",), "neither XML nor a list of addresses"),
        ("/map.xml", (), "127.0.0.1 is a loopback address (allowed by --allow-private"),
    ],
)
def test_a_document_that_cannot_be_read_is_an_error_and_not_kept(
    mirror: Afresh, site: Site, path: str, options: tuple[str, ...], words: str
) -> None:
    ran = mirror("add", "--sitemap", site.url + path, *options)
    assert ran.code == 1
    assert f"{site.url}{path} cannot be read: " in ran.err
    assert words in ran.err
    assert items(mirror) == 0
    asked = len(site.seen)
    assert mirror("run", "--once", *QUICK).code == 0  # nothing is remembered of it
    assert len(site.seen) == asked


def test_what_can_be_read_is_added_beside_what_cannot(mirror: Afresh, site: Site) -> None:
    documents = ("--sitemap", f"{site.url}/map.xml", "--feed", f"{site.url}/feed")
    ran = mirror("add", f"{site.url}/c", *documents, "--allow-private", "--json")
    assert ran.code == 1
    assert json.loads(ran.out) == {"new": 3, "items": 3, "unread": {f"{site.url}/feed": "404 Not Found"}}


def test_only_what_is_new_is_read(mirror: Afresh, site: Site) -> None:
    site.routes["/more.xml"] = page(sitemap(site.url, "c"), Content_Type="application/xml")
    for name in ("map", "more"):
        assert mirror("add", "--sitemap", f"{site.url}/{name}.xml", "--allow-private").code == 0
    assert [path for path in site.paths() if path.endswith(".xml")] == ["/map.xml", "/more.xml"]
    assert items(mirror) == 3


def test_add_says_that_run_must_be_allowed_too(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    assert "needs --allow-private too" in mirror("add", f"{site.url}/a", "--allow-private").err
    settings = tmp_path / "afresh.toml"
    settings.write_text(settings.read_text() + "allow_private = true\n")
    assert "needs --allow-private" not in mirror("add", f"{site.url}/b", "--allow-private").err


def refused(mirror: Afresh, site: Site) -> Ran:
    """A run that may ask nothing."""
    assert mirror("add", *(f"{site.url}/{name}" for name in "abc")).code == 0
    return mirror("run", "--once", "--json")


def test_what_is_refused_is_said_with_its_remedy_and_costs_nothing(mirror: Afresh, site: Site) -> None:
    ran = refused(mirror, site)
    done = json.loads(ran.out)
    assert (ran.code, done["failures"], done["requests"]) == (0, 3, 0)
    last = ran.err.splitlines()[-1]
    assert "3 items" in last
    assert "--allow-private" in last
    status = json.loads(mirror("status", "--json").out)
    assert status["spent_last_hour"]["requests"] == 0
    (problem,) = status["problems"]
    assert problem["items"] == 3
    for words in (mirror("status").err, mirror("why", f"{site.url}/a").err):
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


def test_a_paused_item_says_only_that(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("set", f"{site.url}/a", "--pause")
    why = json.loads(mirror("why", f"{site.url}/a", "--json").out)
    assert why["reasons"] == [f"paused; polled again after: afresh set {site.url}/a --resume"]
    assert "none while it is paused" in mirror("why", f"{site.url}/a").err


def test_get_that_polls_says_nothing_more(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    ran = mirror("get", f"{site.url}/a", "--max-age", "0s", "--allow-private")
    assert (ran.code, ran.out, ran.err) == (0, "a", "")
    ran = mirror("get", f"{site.url}/a", "--max-age", "0s")
    assert ran.out == "a"  # an old copy is more than none
    assert "old: refused: 127.0.0.1 is a loopback address" in ran.err


def test_an_item_never_fetched_has_a_wide_rate(mirror: Afresh, site: Site) -> None:
    mirror("add", *(f"{site.url}/{name}" for name in "abc"))
    before = json.loads(mirror("why", f"{site.url}/a", "--json").out)
    assert before["rate_high"] > 1e3 * before["rate_low"] > 0
    assert "not known yet" in mirror("why", f"{site.url}/a").err
    mirror("run", "--once", *QUICK)
    after = json.loads(mirror("why", f"{site.url}/a", "--json").out)
    assert after["marginal"] < 1e300  # ranked now, and no more before all others
    assert after["next_s"] > after["time_s"] - 60


def test_one_is_not_many(mirror: Afresh, site: Site) -> None:
    assert "1 new, 1 item in all" in mirror("add", f"{site.url}/a").err
    mirror("run", "--once", *QUICK)
    assert "after 1 poll, 0 changes, 0 failed" in " ".join(mirror("status").err.split())
    assert mirror("export", "-o", "copies.jsonl").err == "1 copy\n"
    assert "1 item, 1 version of their copies" in mirror("store", "check").err


def test_status_tells_the_budget_of_the_run_and_that_nothing_is_copied(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    before = mirror("status")
    assert "none has run yet" in before.err
    assert before.err.count("no copies yet") == 2
    assert json.loads(mirror("status", "--json").out)["age_s"] is None
    mirror("run", "--once", *QUICK)
    assert "1/s (the last run had 200/s)" in " ".join(mirror("status").err.split())


def test_polls_made_and_polls_worth_making_are_told_apart(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("set", f"{site.url}/a", "--poll-now")
    mirror("run", "--once", *QUICK)
    words = " ".join(mirror("why", f"{site.url}/a").err.split())
    assert re.search(r"rate no change seen yet, thought to be .* with 90 % probability", words)
    assert re.search(r"polled every .*, by its worth as things are; every .* of late", words)


def test_a_least_interval_is_said_once_and_kept(mirror: Afresh, site: Site) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("set", f"{site.url}/a", "--min-interval", "1w")
    assert mirror("due", "--json").out == mirror("due", "--lease", "1m").out == ""
    words = " ".join(mirror("why", f"{site.url}/a").err.split())
    assert "none: it may not be polled now" in words
    assert "next poll in 7" in words or "next poll in 6" in words
    assert "due now" not in words


def test_a_key_of_another_source_is_told_how_it_is_added(mirror: Afresh, tmp_path: Path) -> None:
    with (tmp_path / "afresh.toml").open("a", encoding="utf-8") as file:
        file.write('[[source]]\nname = "prices"\nkind = "python"\ncall = "math:sqrt"\n')
    ran = mirror("add", "tea")
    assert ran.code == 2
    assert "not an http or https address" in ran.err
    assert "for a source other than 'web' say --source prices" in ran.err
    assert mirror("add", "tea", "--source", "prices").code == 0


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


def test_a_folder_of_copies_says_what_each_file_is(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    mirror("add", f"{site.url}/a")
    mirror("run", "--once", *QUICK)
    mirror("export", "--format", "dir", "-o", "copies")
    (row,) = map(json.loads, (tmp_path / "copies" / "index.jsonl").read_text(encoding="utf-8").splitlines())
    assert list(row) == ["item", "file", "polled", "changed", "media_type", "version"]
    assert (tmp_path / "copies" / row["file"]).read_bytes() == b"a"
    assert (row["media_type"], row["version"], row["changed"]) == ("text/html", 1, None)
