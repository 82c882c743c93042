"""``afresh probes`` against a server that is asked itself."""

from __future__ import annotations

import csv
import itertools
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import monotonic

import numpy as np
import psycopg
import pytest
from fastapi.responses import HTMLResponse, JSONResponse
from tests.cli.conftest import Afresh
from tests.servers.api_site import served_api
from tests.servers.search_site import SearchSite
from tests.servers.shaped_apis import SHAPES, Shelf
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


def test_look_ups_of_many_keys_compete_with_queries(afresh: Afresh, world: World) -> None:
    shelf = Shelf.of(60)
    with Path("own.csv").open("w", newline="") as file:
        rows = [(number, shelf.rows[number]["author"]) for number in range(1, 41)]
        csv.writer(file).writerows([("id", "author"), *rows])
    with served_api(SHAPES["Datasette"](shelf)) as site:
        table = site.url + "/data/papers.json"
        server = ("--server", table + "?author={author}&_size={size}&_next={next}", "--next", "next")
        paths = ("--total", "filtered_table_rows_count", "--rows", "rows", "--allow-private", "--delay", "0s")
        asked = ("probes", "own.csv", "--key", "id", "--keywords", "author:;", *server, *paths, "--json")
        alone = json.loads(afresh(*asked).out)
        bulk = ("--bulk-look-up", table + "?id__in={keys}&_size={size}", "--bulk", "25")
        together = json.loads(afresh(*asked, *bulk, "--keys-joined-by", ",", "-o", "q.csv").out)
        refused = afresh(*asked, "--bulk", "25")
    assert alone["covered"] == together["covered"] == 40
    assert alone["requests"] >= 4  # two authors, pages of ten, by their tokens
    assert (together["requests"], together["bulk_look_ups"], together["bound"]) == (2, 2, 2)
    assert [row["kind"] for row in csv.DictReader(Path("q.csv").read_text().splitlines())] == [
        "bulk look-up"
    ] * 2
    assert refused.code == 2
    assert "--bulk: a live server needs --bulk-look-up" in refused.err
    simulated = json.loads(
        afresh("probes", world.relation, *COLUMNS, "--server", world.relation, "--bulk", "20", "--json").out
    )
    assert simulated["covered"] == len(world.own)
    assert simulated["requests"] == simulated["bound"] == -(-len(world.own) // 20)


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
    assert "after 5 requests the server stopped: HTML instead of JSON: a captcha" in ran.err
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
    ran = afresh(
        "probes", world.relation, *COLUMNS, "--server", "http://127.0.0.1:1/?q={query}&p={page}", *PATHS
    )
    assert ran.code == 1
    assert "the server gave nothing: " in ran.err
    assert "cannot connect" in ran.err
    assert monotonic() - begun_s < 5  # a wrong address is said at once, not after patient tries
    ran = afresh("probes", world.relation, *COLUMNS, "--server", "https://a.test/?q={quary}")
    assert ran.code == 2
    assert "server: {quary} is not known, only {query}, {authors}" in ran.err


def test_a_much_larger_server_costs_hardly_more_than_look_ups(afresh: Afresh) -> None:
    """Title words alone, a server far larger than the relation: no word is worth asking for."""
    rng = np.random.default_rng(4)
    titles = [" ".join(f"w{word}" for word in rng.zipf(1.3, size=6) % 300) for _ in range(8_000)]
    with sqlite3.connect("server.db") as database:
        database.execute("CREATE VIRTUAL TABLE papers USING fts5(id UNINDEXED, title)")
        database.executemany("INSERT INTO papers VALUES (?, ?)", enumerate(titles))
    database.close()
    own = rng.choice(len(titles), 80, replace=False).tolist()
    lines = [f"{place},{titles[place]}" for place in own]
    Path("own.csv").write_text("\n".join(["id,title", *lines]) + "\n")
    server = ("--server", "sqlite:server.db", "--table", "papers", "--delay", "0s")
    ran = afresh("probes", "own.csv", "--key", "id", "--keywords", "title", *server, "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    assert summary["covered"] == 80
    assert summary["requests"] <= 1.05 * 80 + 3
    assert summary["totals"] == "estimated"
    ran = afresh("probes", "own.csv", "--key", "id", "--keywords", "title", *server)
    assert "by estimated totals, no proof" in ran.err


def asked(afresh: Afresh, world: World, site: SearchSite, *options: str) -> dict[str, float]:
    address = site.url + "/search?q={query}&page={page}"
    look_up = ("--look-up", site.url + "/papers/{key}")
    ran = afresh(
        "probes", world.relation, *COLUMNS, "--server", address, *look_up, *PATHS, *options, "--json"
    )
    assert ran.code == 0, ran.err
    found: dict[str, float] = json.loads(ran.out)
    return found


def pages_of(
    answer: Callable[[dict[str, str]], object],
) -> Callable[[str, dict[str, str]], JSONResponse | None]:
    return lambda path, values: JSONResponse(answer(values)) if path == "/search" else None


@pytest.mark.parametrize("method", ["auto", "1"])
@pytest.mark.parametrize(
    "rows",
    [
        lambda _: [],  # empty pages
        lambda _: [{"id": f"x{at}"} for at in range(10)],  # foreign records, always the same
    ],
)
def test_pages_without_end_or_records_end_their_query(
    afresh: Afresh, world: World, method: str, rows: Callable[[dict[str, str]], list[dict[str, str]]]
) -> None:
    with SearchSite(world.papers, lambda: 0.0) as site:
        site.trouble = pages_of(lambda values: {"count": 10**9, "data": rows(values)})
        summary = asked(afresh, world, site, "--method", method)
    if method == "auto":
        assert summary["covered"] == len(world.own)
        assert summary["requests"] <= 1.05 * len(world.own) + 3
    else:
        assert summary["covered"] == 0
        assert summary["cut_short"] > 0


def test_two_records_of_one_key_count_once_and_are_said(afresh: Afresh, world: World) -> None:
    keys = [key for key, _, _ in world.papers.rows(world.own)][:5]
    with SearchSite(world.papers, lambda: 0.0) as site:
        rows = [{"id": key, "cites": version} for key in keys for version in (1, 1, 2)]
        site.trouble = pages_of(lambda _: {"count": "5", "data": rows})
        summary = asked(afresh, world, site)
    assert summary["covered"] == summary["tuples"]
    assert summary["coverage_ratio"] == 1.0
    assert summary["doubled"] == 5
    assert summary["untold"] == 0


def test_who_asks_to_be_asked_later_is_waited_for(afresh: Afresh, world: World) -> None:
    with SearchSite(world.papers, lambda: 0.0) as site:
        # Refused after ten quick answers, so that the pace which is learned from it is not slow.
        tenth = itertools.count(1)
        site.trouble = lambda path, _: (
            JSONResponse({}, 429, {"Retry-After": "1"}) if path == "/search" and next(tenth) == 10 else None
        )
        summary = asked(afresh, world, site)
        assert next(tenth) > 11
    assert summary["covered"] == len(world.own)


def test_totals_that_never_come_are_said(afresh: Afresh, world: World) -> None:
    with SearchSite(world.papers, lambda: 0.0) as site:
        assert asked(afresh, world, site, "--total", "number")["untold"] > 0
    ran = afresh("probes", world.relation, *COLUMNS, "--server", "https://a.test/?q={query}")
    assert ran.code == 2
    assert "server: needs {page} or {offset}" in ran.err
