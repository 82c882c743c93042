"""What the commands say of hosts, windows and budgets: each host once, every part of a budget."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.cli.conftest import Afresh
from tests.servers.site import Site, page, redirect
from tests.servers.threaded import served

from afresh.engine.app import open_engine
from afresh.engine.logs import LOGGER
from afresh.stores.sqlite.database import SqliteDatabase
from afresh.stores.sqlite.errors import translate_error
from afresh.values.clock import SystemClock
from afresh.values.errors import StoreReadOnlyError, UsageError
from afresh.values.outcome import Spent

QUICK = ("--budget", "200/s", "--host-delay", "0.001s", "--allow-private")


@pytest.fixture
def site() -> Iterator[Site]:
    with served({f"/{name}": page(name.encode()) for name in "abc"}) as found:
        yield found


@pytest.fixture
def mirror(afresh: Afresh) -> Iterator[Afresh]:
    """A shell in a new project."""
    assert afresh("init").code == 0
    yield afresh
    LOGGER.handlers.clear()


def settings(folder: Path, text: str) -> None:
    (folder / "afresh.toml").write_text(text)


def closed_window() -> str:
    """A window of an hour that opens in three hours."""
    opens = datetime.now(UTC) + timedelta(hours=3)
    return f"{opens:%H:%M}-{opens + timedelta(hours=1):%H:%M}"


def test_a_host_of_several_sources_is_counted_once(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    tables = "".join(f'[[source]]\nname = "{name}"\ndelay = "{name}s"\n' for name in (1, 2, 4))
    settings(tmp_path, "[budget]\nrequests = '5/s'\n" + tables)
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
    assert "whatever the budget is" in mirror("status", "--set", "source.web.delay=0s").err


def test_closed_windows_are_said_everywhere(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    window = closed_window()
    opens = f"{window[:5]}:00 UTC"
    settings(tmp_path, f'[[source]]\nname = "web"\nwindows = ["{window}"]\n')
    key = f"{site.url}/a"
    mirror("add", key)
    why = mirror("why", key).err
    assert f"{opens}" in why.split("next poll")[1].splitlines()[0]
    assert "its source is polled only in its windows" in why
    assert mirror("due").out == mirror("due", "--lease", "1m").out == ""
    assert "outside its windows until" in mirror("status").err
    ran = mirror("run", "--for", "0.2s", *QUICK)
    assert f"every source is outside its windows until {datetime.now(UTC):%Y-}" in ran.err
    assert opens in ran.err
    assert site.paths() == []


def test_only_items_of_open_sources_are_lent(mirror: Afresh, site: Site, tmp_path: Path) -> None:
    shut = f'windows = ["{closed_window()}"]\n'
    settings(tmp_path, f'[[source]]\nname = "web"\n{shut}[[source]]\nname = "open"\n')
    mirror("add", *(f"{site.url}/{name}" for name in "ab"))
    mirror("add", "--source", "open", f"{site.url}/c")
    assert mirror("due", "--k", "1").out.split() == [f"{site.url}/c"]
    assert mirror("due", "--k", "5", "--lease", "1m").out.split() == [f"{site.url}/c"]
    assert mirror("due").out == ""  # it is lent
    assert "source=web" in mirror("run", "--for", "0s", *QUICK).err


def test_every_part_of_a_budget_is_shown_with_its_use(mirror: Afresh, tmp_path: Path) -> None:
    budget = 'bytes = "1MB/h"\nmoney = "10/h"\nprice_per_request = 0.5\n'
    settings(tmp_path, f'[budget]\n{budget}[[source]]\nname = "web"\n')
    with open_engine() as engine:
        engine.store.ledger.add("web", SystemClock().now_s(), Spent(requests=1, bytes=250_000, money=0.5))
    said = mirror("status").err
    assert re.search(r"bytes +0\.25 MB in the last hour, 25% of what it allows", said)
    assert re.search(r"money +0\.5 in the last hour, 5% of what it allows", said)
    status = json.loads(mirror("status", "--json").out)
    assert status["limits"]["money"] == pytest.approx(10 / 3600)
    assert status["limits"]["seconds"] is None


def test_where_a_page_moved_for_good_is_said_once_and_kept_over_runs(mirror: Afresh, site: Site) -> None:
    site.routes["/old"] = redirect("/a", 301)
    key = f"{site.url}/old"
    mirror("add", key)
    mirror("run", "--once", *QUICK)
    said = []
    for _ in range(2):
        assert mirror("set", key, "--poll-now").code == 0
        said.append(mirror("run", "--once", *QUICK, "--set", "plan.audit_share=0").err)
    assert not any("moved for good" in words for words in said)
    assert site.paths() == ["/robots.txt", "/old", "/a", "/a", "/a"]
    assert mirror("get", key).out == "a"


def test_a_store_that_may_only_be_read_answers_questions(
    mirror: Afresh, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"{site.url}/a"
    mirror("add", key)
    mirror("run", "--once", *QUICK)
    whole = SqliteDatabase.__init__

    def refused(database: SqliteDatabase, path: Path, *, read_only: bool = False, **given: Any) -> None:
        if not read_only:  # root may write everything: rights would not do
            raise StoreReadOnlyError(f"{path} may be read but not written")
        whole(database, path, read_only=read_only, **given)

    monkeypatch.setattr(SqliteDatabase, "__init__", refused)
    assert mirror("get", key).out == "a"
    assert json.loads(mirror("status", "--json").out)["copies"] == 1
    assert "1 item" in mirror("status").err
    assert mirror("why", key).code == mirror("export").code == mirror("due").code == 0
    ran = mirror("set", key, "--pause")
    assert (ran.code, "may be read but not written" in ran.err) == (1, True)


def test_a_backup_goes_over_nothing(mirror: Afresh, tmp_path: Path) -> None:
    (tmp_path / "dear.db").write_text("dear")
    ran = mirror("store", "backup", "dear.db")
    assert (ran.code, "dear.db is there already" in ran.err) == (2, True)
    assert (tmp_path / "dear.db").read_text() == "dear"
    assert mirror("store", "backup", "new.db").code == 0


def test_a_locked_store_says_what_helps(mirror: Afresh, tmp_path: Path) -> None:
    words = str(translate_error(_locked(tmp_path / "afresh.db"), tmp_path / "afresh.db"))
    assert words.endswith("is locked by another process: try again when that one is done")
    assert mirror("status").code == 0


def _locked(path: Path) -> sqlite3.Error:
    with closing(sqlite3.connect(path, timeout=0)) as one, closing(sqlite3.connect(path, timeout=0)) as two:
        one.execute("BEGIN IMMEDIATE")
        with pytest.raises(sqlite3.OperationalError) as found:
            two.execute("BEGIN IMMEDIATE")
    return found.value


def test_a_time_before_now_is_refused(mirror: Afresh) -> None:
    with open_engine() as engine, pytest.raises(UsageError, match="for_s is -1: give seconds from 0 on"):
        engine.run(for_s=-1)
    assert mirror("status").code == 0
