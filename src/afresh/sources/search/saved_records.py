"""What a search source saves, for use after a restart, by other workers and on status pages."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, field
from typing import Any

from afresh.probes.keyword_index import Keyword

_VERSION = 2
_MOST_QUERIES = 2000  # the queries sent last are saved


@dataclass(frozen=True, slots=True)
class RecordNote:
    """What is saved of one record. ``seen_s`` is the time at which it was last seen (Unix seconds). ``moved``
    is the sum of the dissimilarities of its versions, ``watched_s`` the seconds over which it was observed,
    and ``changes`` the number of changes found."""

    key: str
    seen_s: float
    moved: float
    watched_s: float
    changes: float
    fields: Mapping[str, str]

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """All fields except the key and the content."""
        return self.seen_s, self.moved, self.watched_s, self.changes


@dataclass(frozen=True, slots=True)
class QueryNote:
    """What is saved of one query. ``total`` is its reported number of results, ``last`` the number of its
    last page, each None if not known. ``asked`` counts its requests; the last was at ``asked_s`` (Unix
    seconds). ``pages`` are the keys of the relation by page number."""

    words: tuple[Keyword, ...]
    total: float | None
    last: int | None
    asked: int
    asked_s: float
    pages: Mapping[int, Sequence[str]]

    def __str__(self) -> str:
        return " ".join(map(str, self.words))


@dataclass(frozen=True, slots=True)
class ScaleNote:
    """How many times as many results the server has as the sample, for keywords of one attribute. The factor
    ``times`` is learned from ``totals`` reported totals. Two of three factors are between ``low`` and
    ``high``."""

    attribute: str
    totals: int
    times: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SearchState:
    """Everything that a search source saves. ``look_ups`` is the number of requests by key so far, ``listed``
    the number of records in the relation. ``page_sizes`` are the results on a page that were asked for, and
    those that the server gives; ``bulk_sizes`` are the same for the keys of one look-up. ``adopted`` are the
    texts of the records that were adopted, by key."""

    records: tuple[RecordNote, ...] = ()
    queries: tuple[QueryNote, ...] = ()
    scales: tuple[ScaleNote, ...] = ()
    look_ups: int = 0
    listed: int = 0
    page_sizes: tuple[int, int] = (0, 0)
    bulk_sizes: tuple[int, int] = (0, 0)
    adopted: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def pack(self) -> bytes:
        queries = [
            [
                [(word.attribute, word.text) for word in one.words],
                one.total,
                one.last,
                one.asked,
                one.asked_s,
                one.pages,
            ]
            for one in sorted(self.queries, key=lambda one: -one.asked_s)[:_MOST_QUERIES]
        ]
        records = [[one.key, *(round(value, 6) for value in one.numbers), one.fields] for one in self.records]
        found: dict[str, Any] = {
            "v": _VERSION,
            "records": records,
            "queries": queries,
            "look_ups": self.look_ups,
        }
        found |= {"scales": list(map(astuple, self.scales)), "listed": self.listed}
        found |= {"page_sizes": self.page_sizes, "bulk_sizes": self.bulk_sizes}
        return json.dumps(found | {"adopted": self.adopted}).encode()

    @property
    def found_by_queries(self) -> int:
        """The number of records that are on a page of at least one query."""
        return len({key for query in self.queries for keys in query.pages.values() for key in keys})


def read_state(packed: bytes) -> SearchState:
    """Read a saved state. Return an empty state if it has the format of another version.

    >>> note = QueryNote((Keyword("title", "web"),), 40.0, None, 3, 100.0, {1: ["a"]})
    >>> saved = read_state(SearchState(queries=(note,), look_ups=2).pack())
    >>> saved.queries[0] == note, saved.look_ups, saved.found_by_queries
    (True, 2, 1)
    """
    known = json.loads(packed) if packed else {}
    if known.get("v") != _VERSION:
        return SearchState()
    return SearchState(
        tuple(RecordNote(*row) for row in known["records"]),
        tuple(_read_query(*row) for row in known["queries"]),
        tuple(ScaleNote(*row) for row in known["scales"]),
        known["look_ups"],
        known["listed"],
        tuple(known.get("page_sizes", (0, 0))),  # a state of version 0.1.0 has none of these three
        tuple(known.get("bulk_sizes", (0, 0))),
        known.get("adopted", {}),
    )


def _read_query(
    words: Sequence[Sequence[str]],
    total: float | None,
    last: int | None,
    asked: int,
    asked_s: float,
    pages: Mapping[str, Sequence[str]],
) -> QueryNote:
    keywords = tuple(Keyword(*word) for word in words)
    return QueryNote(keywords, total, last, asked, asked_s, {int(page): keys for page, keys in pages.items()})
