"""Datasette as it is installed from PyPI: its rows are refreshed with the settings of docs/apis.md."""

from __future__ import annotations

import asyncio
import csv
import json
import re
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.servers.api_site import ApiSite
from tests.sources.polling import SetClock
from tests.sources.searching import Desk
from tests.sources.web_api.test_documented_apis import BLOCKS, on_site

from afresh.sources.api.settings import ApiSettings
from afresh.sources.api.source import ApiSource
from afresh.sources.context import SourceContext
from afresh.sources.search.settings import SearchSettings
from afresh.sources.search.source import SearchSource
from afresh.sources.settings import read_settings
from afresh.values.fetched import Fetched

ROWS, OWN, AUTHORS = 20_000, 606, 60
QUICK = {"delay": 0, "allow_private": True, "respect_robots": False}


@pytest.fixture
def database(tmp_path: Path) -> Path:
    path = tmp_path / "data.db"
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("CREATE TABLE papers (id INTEGER PRIMARY KEY, title, author, cites INTEGER)")
        rows = ((n, f"paper word{n % 97}", f"Author {n % (ROWS // 100)}", n % 50) for n in range(1, ROWS + 1))
        connection.executemany("INSERT INTO papers VALUES (?, ?, ?, ?)", rows)
        connection.execute("CREATE VIRTUAL TABLE papers_fts USING fts5(title, content='papers')")
        connection.execute("INSERT INTO papers_fts (rowid, title) SELECT id, title FROM papers")
        connection.execute("CREATE INDEX by_author ON papers (author)")
    return path


@pytest.fixture
def site(database: Path, programs: Path) -> Iterator[ApiSite]:
    command = [str(programs / "datasette"), "serve", str(database), "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        lines = []
        for line in server.stdout:
            lines.append(line)
            if found := re.search(r"running on (http://\S+)", line):
                break
        else:
            raise AssertionError("".join(lines))
        try:
            yield ApiSite(found[1])
        finally:
            server.terminate()


def write_relation(database: Path, folder: Path) -> list[str]:
    """All papers of some authors are ours; return their keys."""
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT id, author, title FROM papers ORDER BY author, id LIMIT ?", (OWN,))
        found = rows.fetchall()
    with (folder / "papers.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("id", "authors", "title"), *found])
    return [str(row[0]) for row in found]


@pytest.mark.parametrize(("bulk", "most"), [(100, 7), (0, 60)])
def test_records_of_a_relation_come_by_queries_or_by_bulk_look_ups(
    database: Path, site: ApiSite, tmp_path: Path, bulk: int, most: int
) -> None:
    keys, clock = write_relation(database, tmp_path), SetClock(0.0)
    own: dict[str, Any] = {"relation": str(tmp_path / "papers.csv"), "bulk": bulk or 1, **QUICK}
    table = on_site(BLOCKS["Datasette"], site) | own
    if not bulk:
        del table["bulk_look_up"]

    async def run() -> Desk:
        source = SearchSource(read_settings(SearchSettings, table), SourceContext(clock=clock))
        desk = Desk(keys, clock)
        while len(desk.fetched) < OWN and desk.requests < 2 * most:
            clock.time_s += 1.0
            await desk.ask(source)
        one = await source.poll(desk.leases[keys[0]])
        assert one.is_successful, one
        await source.close()
        return desk

    desk = asyncio.run(run())
    assert len(desk.fetched) == OWN
    assert all(one.is_successful for one in desk.fetched.values())
    assert desk.requests <= most


def test_a_whole_table_is_listed_and_changes_are_found(database: Path, site: ApiSite) -> None:
    clock, settings = SetClock(0.0), on_site(BLOCKS["Datasette: a whole table"], site)

    settings |= QUICK | {"page_size": 1000}

    async def run() -> None:
        source = ApiSource(read_settings(ApiSettings, settings), SourceContext(clock=clock))
        (listing,) = [one async for one in source.listings()]
        assert (len(listing.entries), listing.complete, listing.requests) == (ROWS, True, ROWS // 1000)
        desk = Desk([entry.key for entry in listing.entries], clock)
        while len(desk.fetched) < ROWS and desk.requests == 0:
            await desk.ask(source)
        assert len(desk.fetched) == ROWS  # the contents came with the list
        with closing(sqlite3.connect(database)) as connection, connection:
            connection.execute("UPDATE papers SET cites = 777 WHERE id IN (5, 19999)")
            connection.execute("DELETE FROM papers WHERE id = 9")
        changed: dict[str, Fetched] = {}
        deleted, desk.requests = desk.leases.pop("9"), 0
        while desk.requests < ROWS // 1000:  # a row that moved to another page is handed out by itself
            clock.time_s += 10.0
            found = await desk.ask(source)
            changed |= {key: one for key, one in found.items() if one.kind == "content"}
        assert set(changed) == {"5", "19999"}
        assert json.loads(changed["5"].content or b"")["cites"] == 777
        assert (await source.poll(deleted)).kind == "gone"
        await source.close()

    asyncio.run(run())
