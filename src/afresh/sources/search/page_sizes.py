"""Learn how many results a page of a server really holds, which may differ from the number asked for.

A page with fewer results than asked for is the last one of its query, unless the reported total says that
more results follow. Then the server gives smaller pages: its page size is that of the largest page seen."""

from __future__ import annotations

import math


class LearnedPageSize:
    """The page size of one server: ``asked`` results, until its answers contradict that. ``limit`` is the
    most results that the server returns for a query.

    >>> learned = LearnedPageSize(50)
    >>> learned.observe(1, 10, 10); learned.size      # the only page of its query
    50
    >>> learned.observe(1, 10, 200); learned.size     # 190 results are missing: pages hold 10
    10
    >>> learned.observe(2, 25, 200); learned.size     # it was a page with few results
    25
    """

    def __init__(self, asked: int, limit: int | None = None) -> None:
        self.size = asked
        self._limit = math.inf if limit is None else limit
        self._largest = 0

    def observe(self, number: int, rows: int, total: float | None) -> None:
        """Learn from page ``number``, counted from 1, that holds ``rows`` of ``total`` results."""
        self._largest = max(self._largest, rows)
        results = 0.0 if total is None else min(total, self._limit)
        if rows > self.size or (0 < rows < self.size and (number - 1) * self.size + rows < results):
            self.size = self._largest
