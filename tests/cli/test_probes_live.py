"""``afresh probes`` against a server that is asked itself."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path
from time import monotonic

import psycopg
import pytest
from fastapi.responses import HTMLResponse, JSONResponse
from tests.cli.conftest import Afresh
from tests.servers.search_site import SearchSite
from tests.sources.searching import World, make_world

COLUMNS = ("--key", "id", "--keywords", "authors:;", "--keywords", "title")
PATHS = ("--total", "count", "--rows", "data", "--allow-private", "--delay", "0s")


@pytest.fixture
def world(tmp_path: Path) -> World:
    return make_world(tmp_path, count=300, own=30)


def test_a_web_address_is_asked_until_all_is_covered(afresh: Afresh, world: World) -> None:
    with SearchSite(world.papers, lambda: 0.0) as site:
        address = site.url + "/search?q={query}&page={page}"
        look_up = ("--look-up", site.url + "/papers/{key}")
        ran = afresh(
            "probes", world.relation, *COLUMNS, "--server", address, *look_up, *PATHS, "-o", "q.csv", "--json"
        )
        assert ran.code == 0, ran.err
        summary = json.loads(ran.out)
        assert summary["covered"] == summary["tuples"] == len(world.own)
        assert summary["requests"] == len(site.requests) < 0.7 * len(world.own)
        rows = list(csv.DictReader(Path("q.csv").read_text().splitlines()))
        assert sum(int(row["new"]) for row in rows) == len(world.own)


def test_a_full_text_table_is_asked(afresh: Afresh, world: World) -> None:
    with sqlite3.connect("server.db") as database:
        database.execute("CREATE VIRTUAL TABLE papers USING fts5(id UNINDEXED, title, authors)")
        database.executemany(
            "INSERT INTO papers VALUES (?, ?, ?)", world.papers.rows(range(len(world.papers)))
        )
    database.close()
    server = ("--server", "sqlite:server.db", "--table", "papers")
    ran = afresh("probes", world.relation, *COLUMNS, *server, "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["covered"] == summary["tuples"] == len(world.own)
    assert summary["missing"] == 0


def test_postgres_is_asked_and_holds_the_relation(afresh: Afresh, world: World, postgres_url: str) -> None:
    with psycopg.connect(postgres_url, autocommit=True) as connection, connection.cursor() as cursor:
        cursor.execute("DROP SCHEMA IF EXISTS probed CASCADE")
        cursor.execute("CREATE SCHEMA probed")
        for table, papers in (("every", range(len(world.papers))), ("own", world.own)):
            cursor.execute(f"CREATE TABLE probed.{table} (id text, title text, authors text)".encode())
            cursor.executemany(
                f"INSERT INTO probed.{table} VALUES (%s, %s, %s)".encode(), world.papers.rows(papers)
            )
        server = ("--server", postgres_url, "--table", "probed.every")
        ran = afresh("probes", f"{postgres_url}#probed.own", *COLUMNS, *server, "--json")
        assert ran.code == 0, ran.err
        summary = json.loads(ran.out)
        assert summary["covered"] == summary["tuples"] == len(world.own)
        wrong = afresh("probes", f"{postgres_url}#probed.none", *COLUMNS, *server, "--json")
        assert wrong.code == 1
        assert "table probed.none: there is no such table" in wrong.err
        cursor.execute("DROP SCHEMA probed CASCADE")


def test_a_server_that_turns_us_away_ends_it_in_words_and_loses_nothing(afresh: Afresh, world: World) -> None:
    with SearchSite(world.papers, lambda: 0.0) as site:
        site.trouble = lambda _path, _values: (
            HTMLResponse("<html>Are you a robot?</html>") if len(site.requests) >= 5 else None
        )
        address = site.url + "/search?q={query}&page={page}"
        ran = afresh("probes", world.relation, *COLUMNS, "--server", address, *PATHS, "-o", "q.csv", "--json")
    assert ran.code == 1
    assert "after 5 requests the server stopped: HTML where JSON was due: a captcha" in ran.err
    assert json.loads(ran.out)["requests"] == 5
    assert Path("q.csv").read_text().count("\n") > 1


def test_a_wrong_path_or_template_is_said(afresh: Afresh, world: World) -> None:
    with SearchSite(world.papers, lambda: 0.0) as site:
        address = site.url + "/search?q={query}&page={page}"
        ran = afresh(
            "probes", world.relation, *COLUMNS, "--server", address, "--allow-private", "--delay", "0s"
        )
        assert ran.code == 1
        assert "rows: 'results' is no list in the answer, which has count, data" in ran.err
        site.trouble = lambda _path, _values: JSONResponse({}, 500)
        ran = afresh("probes", world.relation, *COLUMNS, "--server", address, *PATHS)
        assert ran.code == 1
        assert "the server gave nothing: 500 Internal Server Error" in ran.err
    begun_s = monotonic()
    ran = afresh("probes", world.relation, *COLUMNS, "--server", "http://127.0.0.1:1/?q={query}", *PATHS)
    assert ran.code == 1
    assert "the server gave nothing: " in ran.err
    assert "cannot connect" in ran.err
    assert monotonic() - begun_s < 5  # a wrong address is said at once, not after patient tries
    ran = afresh("probes", world.relation, *COLUMNS, "--server", "https://a.test/?q={quary}")
    assert ran.code == 2
    assert "server: {quary} is not known, only {query}, {page}" in ran.err
