"""What a search source keeps of its records and queries: for its successor, for other workers, for people."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass

from afresh.probes.keyword_index import Keyword

_VERSION = 2
_QUERIES = 2000  # queries that notes tell of, those asked last


@dataclass(frozen=True, slots=True)
class RecordNote:
    """One record: when it was seen last, how far it moved within which time, how often, and its content."""

    key: str
    seen_s: float
    moved: float
    watched_s: float
    changes: float
    fields: Mapping[str, str]

    @property
    def numbers(self) -> tuple[float, float, float, float]:
        """All but the key and the content."""
        return self.seen_s, self.moved, self.watched_s, self.changes


@dataclass(frozen=True, slots=True)
class QueryNote:
    """One query: its total as reported, its last page where that is known, and our keys on each page read."""

    words: tuple[Keyword, ...]
    total: float | None
    last: int | None
    asked: int
    asked_s: float
    pages: Mapping[int, Sequence[str]]

    def __str__(self) -> str:
        """As people write it."""
        return " ".join(map(str, self.words))


@dataclass(frozen=True, slots=True)
class ScaleNote:
    """How many times as many results the server has as the sample: from ``totals`` of an attribute's words.

    ``low`` and ``high``: where two of three words lie.
    """

    attribute: str
    totals: int
    times: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class SearchState:
    """Everything; ``look_ups`` counts the records asked for by their keys, ``records`` are those seen."""

    records: tuple[RecordNote, ...] = ()
    queries: tuple[QueryNote, ...] = ()
    scales: tuple[ScaleNote, ...] = ()
    look_ups: int = 0
    listed: int = 0

    def pack(self) -> bytes:
        """As bytes."""
        queries = [
            [[astuple(word) for word in one.words], one.total, one.last, one.asked, one.asked_s, one.pages]
            for one in sorted(self.queries, key=lambda one: -one.asked_s)[:_QUERIES]
        ]
        records = [[one.key, *(round(value, 6) for value in one.numbers), one.fields] for one in self.records]
        found = {"v": _VERSION, "records": records, "queries": queries, "look_ups": self.look_ups}
        return json.dumps(found | {"scales": list(map(astuple, self.scales)), "listed": self.listed}).encode()

    @property
    def found_by_queries(self) -> int:
        """How many records stand on a page of some query."""
        return len({key for query in self.queries for keys in query.pages.values() for key in keys})


def read_state(packed: bytes) -> SearchState:
    """Notes as they were kept; of another version none.

    >>> note = QueryNote((Keyword("title", "web"),), 40.0, None, 3, 100.0, {1: ["a"]})
    >>> kept = read_state(SearchState(queries=(note,), look_ups=2).pack())
    >>> kept.queries[0] == note, kept.look_ups, kept.found_by_queries
    (True, 2, 1)
    """
    known = json.loads(packed) if packed else {}
    if known.get("v") != _VERSION:
        return SearchState()
    return SearchState(
        tuple(RecordNote(*row) for row in known["records"]),
        tuple(_query(*row) for row in known["queries"]),
        tuple(ScaleNote(*row) for row in known["scales"]),
        known["look_ups"],
        known["listed"],
    )


def _query(
    words: Sequence[Sequence[str]],
    total: float | None,
    last: int | None,
    asked: int,
    asked_s: float,
    pages: Mapping[str, Sequence[str]],
) -> QueryNote:
    keywords = tuple(Keyword(*word) for word in words)
    return QueryNote(keywords, total, last, asked, asked_s, {int(page): keys for page, keys in pages.items()})
