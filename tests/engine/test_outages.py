"""Real outages under an engine: a full disk, names that cannot be looked up, a store from the future."""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from tests.engine.living import LivingSite, engine_for
from tests.engine.virtual_site import VirtualSite
from tests.servers.quick_afresh import QuickAfresh
from tests.stores.sqlite.test_database import files_no_larger_than
from tests.waiting import LIMIT_S

from afresh.engine.logs import LOGGER
from afresh.sources.http.fetcher import Reply
from afresh.values.items import ItemQuery


class LargePages(LivingSite):
    """Pages that do not get smaller when they are compressed."""

    def content(self, page: int, version: int) -> bytes:
        return np.random.default_rng([page, version]).bytes(2_000_000)


@pytest.fixture
def heard() -> Iterator[Callable[[str], threading.Event]]:
    """Tells when the engine says some words."""
    waiting: dict[str, threading.Event] = {}

    class Ear(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            for words, event in waiting.items():
                if words in f"{record.getMessage()} {getattr(record, 'fields', {})}":
                    event.set()

    ear, before = Ear(), LOGGER.level
    LOGGER.addHandler(ear)
    LOGGER.setLevel(logging.INFO)
    yield lambda words: waiting.setdefault(words, threading.Event())
    LOGGER.removeHandler(ear)
    LOGGER.setLevel(before)


def test_a_disk_that_is_full_for_a_while(tmp_path: Path, heard: Callable[[str], threading.Event]) -> None:
    full, again = heard("no space left"), heard("works again")
    with LargePages([0.0] * 3) as site, engine_for(tmp_path) as engine:
        engine.add(site.urls())
        running = threading.Thread(target=lambda: engine.run(once=True))
        with files_no_larger_than(1_000_000):
            running.start()
            assert full.wait(LIMIT_S)
        running.join(LIMIT_S)
        assert again.is_set()
        copies = [engine.get(url) for url in site.urls()]
        assert [copy and copy.content for copy in copies] == [site.content(page, 0) for page in range(3)]
        assert len(site.requests) == 3  # nothing was asked for again
        assert engine.store.upkeep.check() == []


def test_names_that_cannot_be_looked_up_for_a_while(tmp_path: Path) -> None:
    problem = "no address found for site.test: Temporary failure in name resolution"
    more = '[run]\nretry_first = "0.2s"\nretry_longest = "0.4s"'
    site = VirtualSite([0.0] * 2)
    with site.engine(tmp_path, more=more, source="respect_robots = false") as engine:
        engine.add(f"http://site.test/p/{page}" for page in range(2))
        site.down = Reply(trouble="dns", problem=problem)
        engine.run(for_s=1.0)
        items = engine.store.items.page(ItemQuery(), 9).items
        assert [(item.problem, item.status, item.version) for item in items] == [(problem, "active", 0)] * 2
        site.down = None
        engine.run(for_s=3.0)
        items = engine.store.items.page(ItemQuery(), 9).items
        assert [(item.problem, item.failures, item.version) for item in items] == [("", 0, 1)] * 2


@pytest.mark.parametrize("command", [["status"], ["run", "--once"]])
def test_a_store_from_the_future_is_refused_in_one_line(
    quick_afresh: QuickAfresh, tmp_path: Path, command: list[str]
) -> None:
    with engine_for(tmp_path):
        (tmp_path / "afresh.toml").write_text("")
    with closing(sqlite3.connect(tmp_path / "afresh.db")) as connection:
        connection.execute("PRAGMA user_version = 999")
    before = (tmp_path / "afresh.db").read_bytes()
    told = quick_afresh.run(*command, folder=tmp_path)
    assert told.returncode == 1
    assert "was written by a newer afresh (schema 999" in told.stderr
    assert len(told.stderr.splitlines()) == 1
    assert (tmp_path / "afresh.db").read_bytes() == before
