"""A search site on loopback: FastAPI over FTS5 of SQLite or full text of PostgreSQL, its records changing.

Citation counts grow by Poisson processes drawn beforehand, so the site knows the truth at every moment, and
its log of what it served when gives the exact content lag of whoever relies on it. It can also misbehave.
"""

from __future__ import annotations

import json
import re
import socket
import sqlite3
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import numpy as np
import numpy.typing as npt
import psycopg
import uvicorn
from fastapi import FastAPI, Response
from fastapi.responses import JSONResponse

PAGE = 10
_BOTH = "title || ' ' || authors"
_TERM = re.compile(r'(?:(?P<attribute>\w+):)?(?:"(?P<phrase>[^"]*)"|(?P<word>\S+))')


@dataclass(frozen=True)
class Papers:
    """The site's records, and when each is cited again."""

    titles: Sequence[str]
    authors: Sequence[str]
    rates: npt.NDArray[np.float64]
    changes: Sequence[npt.NDArray[np.float64]]

    def __len__(self) -> int:
        return len(self.titles)

    def citations(self, paper: int, now_s: float) -> int:
        """How often a paper has been cited by then."""
        return int(np.searchsorted(self.changes[paper], now_s, side="right"))

    def rows(self, papers: Sequence[int]) -> list[tuple[str, str, str]]:
        """Key, title and authors."""
        return [(f"p{at}", self.titles[at], self.authors[at]) for at in papers]


def draw_papers(count: int, seed: int, *, begin_s: float, lasts_s: float, mean_rate: float) -> Papers:
    """Papers by authors of uneven fame, with rates of a power law."""
    rng = np.random.default_rng(seed)
    fame = rng.zipf(1.6, size=(count, 2)) % (count // 6)
    titles = [" ".join(f"word{word}" for word in rng.zipf(1.4, size=5) % 900) for _ in range(count)]
    authors = [";".join(dict.fromkeys(f"Ann A{name}" for name in pair)) for pair in fame.tolist()]
    rates = rng.pareto(1.5, size=count) + 0.05
    rates *= mean_rate / rates.mean()
    changes = [
        begin_s + np.sort(rng.uniform(0, lasts_s, rng.poisson(rate * lasts_s))) for rate in rates.tolist()
    ]
    return Papers(titles, authors, rates, changes)


class Finder(Protocol):
    """Full-text search: attribute (or none) and text of each term."""

    def find(self, terms: Sequence[tuple[str, str]], offset: int, count: int) -> tuple[int, list[str]]:
        """The total, and the keys of a part of the results."""

    def close(self) -> None: ...


class Fts5Finder:
    """SQLite."""

    def __init__(self, papers: Papers) -> None:
        self._database = sqlite3.connect(":memory:", check_same_thread=False)
        self._lock = threading.Lock()
        self._database.execute("CREATE VIRTUAL TABLE papers USING fts5(id UNINDEXED, title, authors)")
        self._database.executemany("INSERT INTO papers VALUES (?, ?, ?)", papers.rows(range(len(papers))))

    def find(self, terms: Sequence[tuple[str, str]], offset: int, count: int) -> tuple[int, list[str]]:
        query = " AND ".join(f'{name} : "{text}"' if name else f'"{text}"' for name, text in terms)
        with self._lock:
            where = "FROM papers WHERE papers MATCH ?"
            total = self._database.execute(f"SELECT count(*) {where}", (query,)).fetchone()[0]
            text = f"SELECT id {where} ORDER BY rank, rowid LIMIT {count} OFFSET {offset}"
            return total, [row[0] for row in self._database.execute(text, (query,))]

    def close(self) -> None:
        self._database.close()


class PostgresFinder:
    """PostgreSQL."""

    def __init__(self, papers: Papers, url: str) -> None:
        self._connection = psycopg.connect(url, autocommit=True)
        self._lock = threading.Lock()
        self._connection.execute("CREATE TABLE papers (id text PRIMARY KEY, title text, authors text)")
        with self._connection.cursor() as cursor:
            cursor.executemany("INSERT INTO papers VALUES (%s, %s, %s)", papers.rows(range(len(papers))))
        for column in ("title", "authors"):
            index = f"CREATE INDEX ON papers USING gin (to_tsvector('simple', {column}))"
            self._connection.execute(index.encode())

    def find(self, terms: Sequence[tuple[str, str]], offset: int, count: int) -> tuple[int, list[str]]:
        parts = [
            f"to_tsvector('simple', {name or _BOTH}) @@ phraseto_tsquery('simple', %s)" for name, _ in terms
        ]
        where = f"FROM papers WHERE {' AND '.join(parts)}"
        values = [text for _, text in terms]
        with self._lock:
            found = self._connection.execute(f"SELECT count(*) {where}".encode(), values).fetchone()
            assert found is not None
            text = f"SELECT id {where} ORDER BY id LIMIT {count} OFFSET {offset}"
            return found[0], [row[0] for row in self._connection.execute(text.encode(), values)]

    def close(self) -> None:
        self._connection.close()


@dataclass
class SearchSite:
    """Serves ``/search?q=…&page=…`` and ``/papers/{key}`` from a thread until its ``with`` ends.

    ``now`` is its clock. ``trouble``, if set, makes the answer instead, of path and parameters.
    """

    papers: Papers
    now: Callable[[], float]
    finder: Finder | None = None
    trouble: Callable[[str, dict[str, str]], Response | None] | None = None
    hidden: set[str] = field(default_factory=set)
    requests: list[tuple[float, str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.served: list[list[float]] = [[] for _ in range(len(self.papers))]

    def searches(self, finder: Finder) -> None:
        """Answer by this finder, without serving."""
        self._found = finder

    def __enter__(self) -> Self:
        self.searches(self.finder or Fts5Finder(self.papers))
        self._socket = socket.socket()
        self._socket.bind(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        config = uvicorn.Config(self._app(), log_level="critical", access_log=False, lifespan="off")
        self._server = uvicorn.Server(config)
        self._socket.listen(64)
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._socket]})
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()
        self._found.close()

    def _app(self) -> FastAPI:
        app = FastAPI()

        @app.get("/search")
        async def search(q: str, page: int = 1) -> Response:
            odd = self.trouble("/search", {"q": q, "page": str(page)}) if self.trouble else None
            return odd or JSONResponse(self.search(q, page))

        @app.get("/papers/{key}")
        async def paper(key: str) -> Response:
            odd = self.trouble("/papers", {"key": key}) if self.trouble else None
            found = None if odd else self.paper(key)
            return odd or JSONResponse(found or {"error": "no such paper"}, 200 if found else 404)

        return app

    def search(self, query: str, page: int, now_s: float | None = None) -> dict[str, Any]:
        """A page of results, as the site shows it at ``now_s``."""
        at_s = self.now() if now_s is None else now_s
        self.requests.append((at_s, f"{query} {page}"))
        terms = [
            (one["attribute"] or "", one["phrase"] or one["word"] or "") for one in _TERM.finditer(query)
        ]
        total, keys = self._found.find(terms, (page - 1) * PAGE, PAGE)
        shown = [key for key in keys if key not in self.hidden]
        return {"count": total, "data": [self._shown(key, at_s) for key in shown]}

    def paper(self, key: str, now_s: float | None = None) -> dict[str, Any] | None:
        """One paper by its key."""
        at_s = self.now() if now_s is None else now_s
        self.requests.append((at_s, key))
        known = re.fullmatch(r"p\d+", key) and int(key[1:]) < len(self.papers) and key not in self.hidden
        return self._shown(key, at_s) if known else None

    def _shown(self, key: str, now_s: float) -> dict[str, Any]:
        paper = int(key[1:])
        self.served[paper].append(now_s)
        cited = {"cites": self.papers.citations(paper, now_s)}
        return {"id": key, "title": self.papers.titles[paper], "metrics": cited}

    def lag(self, own: Sequence[int], begin_s: float, end_s: float) -> float:
        """The time-average content lag of a copy that holds what was served: the mean over ``own`` papers.

        A change at c that is next served at s adds ∫ (t − c) dt from c to s, within the window.
        """
        total = 0.0
        for paper in own:
            served = np.array(sorted(self.served[paper]))
            changes = self.papers.changes[paper]
            changes = changes[changes < end_s]
            after = np.searchsorted(served, changes, side="left")
            until = np.minimum(np.append(served, end_s)[after], end_s)
            since = np.maximum(begin_s - changes, 0.0)
            total += float((0.5 * (np.square(until - changes) - np.square(since)))[until > begin_s].sum())
        return total / (end_s - begin_s) / len(own)


def search_source(url: str, relation: Path, more: str = "") -> str:
    """The ``[[source]]`` that keeps a relation of papers fresh from such a site; ``more``: further lines."""
    return f"""
[[source]]
name = "papers"
kind = "search"
relation = {json.dumps(str(relation))}
key = "id"
keywords = ["authors:;", "title"]
fields = {{ cites = "absolute" }}
paths = {{ cites = "metrics.cites" }}
server = "{url}/search?q={{query}}&page={{page}}"
look_up = "{url}/papers/{{key}}"
total = "count"
rows = "data"
scoped = true
delay = 0
respect_robots = false
allow_private = true
min_interval = 0
{more}
"""
