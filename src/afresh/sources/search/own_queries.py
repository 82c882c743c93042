"""The search for records that can only be found by queries, because the server has no look-up by key.

The *own query* of a record consists of its rarest keywords. It must show the record, if the server has it.
Its pages are read one after the other until the record is found or no page is left. After every ten pages
without the record the search pauses, so that one record in a long list of results does not take all
requests."""

from __future__ import annotations

from dataclasses import dataclass, field

_PAGES_AT_ONCE = 10

Words = tuple[int, ...]


@dataclass(slots=True)
class _UnfinishedSearch:
    """The own query of a record, which stays the same during the search, and its pages without the record."""

    words: Words
    pages: set[int] = field(default_factory=set)

    @property
    def next_page(self) -> int:
        return next(page for page in range(1, len(self.pages) + 2) if page not in self.pages)


class OwnQueries:
    """Remembers for each record the pages of its own query that did not show it. Records are given by their
    row in the relation.

    >>> searches = OwnQueries(); searches.words(7), searches.next_page(7)
    ((), 1)
    >>> searches.not_on(7, (0, 4), 1); searches.words(7), searches.next_page(7), searches.pages_read(7)
    ((0, 4), 2, 1)
    >>> searches.end([7]); searches.words(7)
    ()
    """

    def __init__(self) -> None:
        self._searches: dict[int, _UnfinishedSearch] = {}

    def words(self, row: int) -> Words:
        """Return the query with which the search for a record has begun; empty before the search."""
        return self._searches[row].words if row in self._searches else ()

    def next_page(self, row: int) -> int:
        """Return the first page of the own query that was not yet read for the record."""
        return self._searches[row].next_page if row in self._searches else 1

    def pages_read(self, row: int) -> int:
        return len(self._searches[row].pages) if row in self._searches else 0

    def not_on(self, row: int, words: Words, page: int) -> None:
        """Record that ``page`` of the record's own query ``words`` did not show the record."""
        search = self._searches.get(row)
        if search is None or search.words != words:
            search = self._searches[row] = _UnfinishedSearch(words)
        search.pages.add(page)

    def must_pause(self, row: int) -> bool:
        """Return whether enough pages were read in succession without the record."""
        return self.pages_read(row) % _PAGES_AT_ONCE == 0

    def end(self, rows: list[int]) -> None:
        """End the search for these records: they were found, or no page is left."""
        for row in rows:
            self._searches.pop(row, None)
