"""``afresh probes``: covers, quotas, methods, and bad relations in clear words."""

from __future__ import annotations

import csv
import json
import sqlite3
from pathlib import Path

import numpy as np
import pytest
from tests.cli.conftest import Afresh

COLUMNS = ("--key", "id", "--keywords", "authors:;", "--keywords", "title")


@pytest.fixture
def files(tmp_path: Path) -> tuple[Path, Path]:
    """60 papers of four authors among 600, as a relation and a server."""
    rng = np.random.default_rng(2)
    rows = [
        (
            f"p{place}",
            " ".join(f"w{word}" for word in rng.integers(80, size=4)),
            ";".join(f"Author {name}" for name in rng.integers(40, size=2)),
            str(rng.integers(1, 9)),
        )
        for place in range(600)
    ]
    chosen = {f"Author {name}" for name in range(4)}
    own = [row for row in rows if chosen & set(row[2].split(";"))]
    relation, server = tmp_path / "relation.csv", tmp_path / "server.csv"
    for path, part in ((relation, own), (server, rows)):
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([("id", "title", "authors", "cites"), *part])
    return relation, server


def test_every_record_is_covered_and_the_queries_say_how(afresh: Afresh, files: tuple[Path, Path]) -> None:
    relation, server = files
    ran = afresh("probes", relation, *COLUMNS, "--server", server, "--until-covered", "-o", "q.csv", "--json")
    assert ran.code == 0, ran.err
    summary = json.loads(ran.out)
    count = len(relation.read_text().splitlines()) - 1
    assert summary["covered"] == summary["tuples"] == count
    assert summary["coverage_ratio"] == 1.0
    assert summary["speedup_ratio"] == count / summary["requests"] > 3
    assert summary["requests"] <= summary["planned"]
    rows = list(csv.DictReader(Path("q.csv").read_text().splitlines()))
    assert sum(int(row["requests"]) for row in rows) == summary["requests"]
    assert sum(int(row["new"]) for row in rows) == count
    assert int(rows[-1]["covered"]) == count
    assert any(row["query"].startswith('authors="author ') for row in rows)


@pytest.mark.parametrize("method", ["1", "2"])
def test_the_papers_methods_need_more_or_cover_less(
    afresh: Afresh, files: tuple[Path, Path], method: str
) -> None:
    relation, server = files
    given = ("probes", relation, *COLUMNS, "--server", server, "--json")
    ours = json.loads(afresh(*given).out)
    theirs = json.loads(afresh(*given, "--method", method, "--pool", 5).out)
    assert theirs["bound"] == ours["bound"]
    if method == "1":
        assert theirs["distinct_coverage"] == 1.0
        assert theirs["requests"] > ours["requests"]
    else:
        assert theirs["distinct_coverage"] < 1.0


@pytest.mark.parametrize(
    ("method", "planned", "ratio", "distinct"),
    # Five records have "web", and the server has eight, on two pages: two of ours are on the first. Three
    # have "crawl", which are all that the server has. One of them has both.
    [("1", 3.0, 8 / 7, 1.0), ("2", 2.0, (5 * 5 / 8 + 3) / 7, 4 / 7)],
)
def test_the_papers_measures_of_its_methods(
    afresh: Afresh, tmp_path: Path, method: str, planned: float, ratio: float, distinct: float
) -> None:
    titles = ["web crawl", "crawl", "crawl", "web", "web", "web", "web"]
    own = [f"{place},{title}" for place, title in enumerate(titles)]
    others = [f"x{place},web" for place in range(3)]
    for path, lines in (("own.csv", own), ("server.csv", others + own)):
        (tmp_path / path).write_text("\n".join(["id,title", *lines]) + "\n")
    given = ("probes", "own.csv", "--key", "id", "--keywords", "title", "--server", "server.csv", "--json")
    found = json.loads(afresh(*given, "--page-size", 5, "--method", method, "--pool", 1).out)
    assert (found["planned"], found["requests"]) == (planned, planned)
    assert found["coverage_ratio"] == pytest.approx(ratio)
    assert found["distinct_coverage"] == pytest.approx(distinct)


def test_a_quota_weights_and_a_picture(afresh: Afresh, files: tuple[Path, Path]) -> None:
    relation, server = files
    ran = afresh(
        "probes", relation, *COLUMNS, "--server", server, "--quota", 4, "--weight", "cites", "--plot", "q.svg"
    )
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(ran.out.splitlines()))
    assert sum(int(row["requests"]) for row in rows) == 4
    assert "weight: the most that the quota could bring" in ran.err
    assert Path("q.svg").read_text().startswith("<?xml")


def test_a_proxy_and_any_attribute(afresh: Afresh, files: tuple[Path, Path]) -> None:
    relation, server = files
    given = ("probes", relation, *COLUMNS, "--server", server, "--any-attribute", "--json")
    exact = json.loads(afresh(*given).out)
    lines = server.read_text().splitlines()
    Path("proxy.csv").write_text("\n".join([lines[0], *lines[1::3]]) + "\n")
    guessed = json.loads(afresh(*given, "--proxy", "proxy.csv").out)
    assert guessed["coverage_ratio"] == 1.0
    assert exact["requests"] <= guessed["requests"] <= 1.5 * exact["requests"]


def test_records_gone_from_the_server_are_said_to_be(afresh: Afresh, files: tuple[Path, Path]) -> None:
    relation, server = files
    lost = relation.read_text().splitlines()[1].split(",")[0]
    kept = [line for line in server.read_text().splitlines() if not line.startswith(f"{lost},")]
    server.write_text("\n".join(kept) + "\n")
    ran = afresh("probes", relation, *COLUMNS, "--server", server)
    assert ran.code == 0
    assert "1 record not on the server" in ran.err


def test_a_table_of_a_database_is_a_relation(afresh: Afresh, files: tuple[Path, Path]) -> None:
    relation, server = files
    rows = list(csv.reader(relation.read_text().splitlines()))
    with sqlite3.connect("local.db") as database:
        database.execute("CREATE TABLE papers (id TEXT, title TEXT, authors TEXT, cites INTEGER)")
        database.executemany("INSERT INTO papers VALUES (?, ?, ?, ?)", rows[1:])
    database.close()
    given = ("--server", server, "--weight", "cites", "--json")
    from_file = afresh("probes", relation, *COLUMNS, *given)
    from_table = afresh("probes", "local.db#papers", *COLUMNS, *given)
    assert json.loads(from_table.out) == json.loads(from_file.out)
    missing = afresh("probes", "local.db#paper", *COLUMNS, *given)
    assert missing.code == 1
    assert "local.db: has no table 'paper': did you mean 'papers'?" in missing.err


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("title,authors\nweb,x\n", "relation.csv: no column 'id'. It has title, authors"),
        (
            "id,title,authors\n1,web,x\n1,net,y\n",
            "row 2 (line 3), column id: '1' occurs twice, first in row 1",
        ),
        ("id,title,authors\n,web,x\n", "row 1 (line 2), column id: is empty"),
        ("id,title,authors\n1,,\n2,the,;\n", "no record has a keyword in authors, title"),
        ("id,authors\n1,x\n", "relation.csv: no column 'title'. It has id, authors"),
        (
            f"id,title,authors\n1,web,x\n2,{'w ' * 5_000_000},y\n",
            "row 2 (line 3): a cell is very long, or a quote opened here is never closed",
        ),
        (
            f"id,title,authors\n1,web,x\n2,{'w ' * 600_000},y\n",
            "row 2 (line 3), column title: holds 1,200,000 characters",
        ),
    ],
)
def test_a_bad_relation_is_named(afresh: Afresh, files: tuple[Path, Path], content: str, words: str) -> None:
    relation, server = files
    relation.write_text(content)
    ran = afresh("probes", relation, *COLUMNS, "--server", server, "-o", "q.csv")
    assert ran.code == 1
    assert words in ran.err
    assert ran.err.count("\n") == 1
    assert not Path("q.csv").exists()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--quota", "3", "--until-covered"), "give one, either ends the asking"),
        (("--method", "3"), "unknown method '3'"),
        (("--rate", "cites"), "--rate and --elapsed belong together"),
        (("--keywords", "title:;"), "each column once"),
    ],
)
def test_wrong_usage_is_refused(
    afresh: Afresh, files: tuple[Path, Path], options: tuple[str, ...], words: str
) -> None:
    relation, server = files
    ran = afresh("probes", relation, *COLUMNS, "--server", server, *options)
    assert ran.code == 2
    assert words in ran.err


def test_an_address_needs_a_place_for_the_query(afresh: Afresh, files: tuple[Path, Path]) -> None:
    ran = afresh("probes", files[0], *COLUMNS, "--server", "https://example.org/search")
    assert ran.code == 2
    assert "--server': server: needs {query}, as in https://example.org/search?q={query}" in ran.err


@pytest.mark.parametrize("method", ["auto", "1", "2"])
def test_a_bound_says_what_it_is_of(afresh: Afresh, files: tuple[Path, Path], method: str) -> None:
    relation, server = files
    given = ("probes", relation, *COLUMNS, "--server", server, "--json", "--method", method)
    whole, some, more = (
        json.loads(afresh(*given, *quota).out) for quota in ((), ("--quota", 3), ("--quota", 999))
    )
    assert (whole["bound_of"], some["bound_of"], more["bound_of"]) == ("requests", "records", "records")
    assert some["covered"] <= 1.2 * some["bound"] + 3
    assert more["bound"] == more["tuples"]
    weighed = json.loads(afresh(*given, "--quota", 3, "--weight", "cites").out)
    assert weighed["bound_of"] == "weight"
    assert weighed["bound"] > some["bound"]


@pytest.mark.parametrize("options", [("--weight", "title"), ("--rate", "cites", "--elapsed", "title")])
def test_words_are_no_numbers(afresh: Afresh, files: tuple[Path, Path], options: tuple[str, ...]) -> None:
    relation, server = files
    ran = afresh("probes", relation, *COLUMNS, "--server", server, *options)
    assert ran.code == 1
    assert "relation.csv, row 1 (line 2), column title" in ran.err
    assert "column title: is 'w" in ran.err
    assert "must be a number of 0 or more" in ran.err


def test_no_records_and_records_of_no_weight_are_said(afresh: Afresh, files: tuple[Path, Path]) -> None:
    relation, server = files
    given = ("probes", relation, *COLUMNS, "--server", server)
    lines = relation.read_text().splitlines()
    zero = [line.rpartition(",")[0] + ",0" for line in lines[1:4]]
    relation.write_text("\n".join([lines[0], *zero, *lines[4:]]) + "\n")
    assert "3 records of weight 0 not asked for" in afresh(*given, "--weight", "cites").err
    relation.write_text(lines[0] + "\n")
    assert "nothing: the relation has no records" in afresh(*given).err


def test_a_misspelt_option_is_not_blamed_on_the_file(afresh: Afresh, tmp_path: Path) -> None:
    (tmp_path / "papers.csv").write_text("id,title\n1,a b\n")
    ran = afresh("probes", "papers.csv", "--key", "id", "--keywords", "titel", "--server", "papers.csv")
    assert ran.code == 1
    assert "no column 'titel': did you mean 'title'?" in ran.err
