"""Learn how many results a page of a server really holds, which may differ from the number asked for.

A page with fewer results than asked for is the last one of its query, unless the reported total says that
more results follow. Then the server gives smaller pages: its page size is that of the largest page seen. If
no total is reported, only a page with fewer results than an earlier one is surely the last: one that is as
large as the largest seen may be full, so that the next page is requested, which may turn out empty."""

from __future__ import annotations

import math
from dataclasses import replace

from afresh.sources.web_api.api_client import ABSENT, EXPIRED
from afresh.sources.web_api.records_answer import RecordsAnswer


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

    Without totals, a page that follows a smaller one than asked for shows the size:

    >>> learned = LearnedPageSize(50)
    >>> learned.observe(1, 40, None); learned.size, learned.is_last(40), learned.is_last(39)
    (50, False, True)
    >>> learned.observe(2, 3, None); learned.size
    40
    """

    def __init__(self, asked: int, limit: int | None = None) -> None:
        self.size = self._asked = asked
        self._limit = math.inf if limit is None else limit
        self._largest, self._has_totals = 0, False

    def load(self, size: int) -> None:
        """Use the size that an earlier process learned."""
        self.size = size
        if size != self._asked:
            self._largest = size

    @property
    def step(self) -> int:
        """The number of results before page 2. Without totals this is the size of the largest page, which
        may be full."""
        return self.size if self._has_totals else min(self.size, self._largest or self.size)

    @property
    def is_certain(self) -> bool:
        """Whether a page with ``size`` results was seen."""
        return self._largest >= self.size

    def is_last(self, rows: int) -> bool:
        """Return whether a page with ``rows`` results, which ``observe`` has seen, is the last one of its
        query, if no total tells."""
        return rows == 0 or rows < min(self.size, self._largest)

    def observe(self, number: int, rows: int, total: float | None) -> None:
        """Learn from page ``number``, counted from 1, that holds ``rows`` of ``total`` results."""
        self._largest, self._has_totals = max(self._largest, rows), total is not None
        results = 0.0 if total is None else min(total, self._limit)
        follows = total is None and number > 1 and rows > 0  # the page before was full
        if (
            rows > self.size
            or (0 < rows < self.size and (number - 1) * self.size + rows < results)
            or follows
        ):
            self.size = self._largest


def without_missing_page(answer: RecordsAnswer, number: int, learned: LearnedPageSize) -> RecordsAnswer:
    """Return the answer to a request for page ``number`` of pages that are numbered. If the server says that
    there is no such page, the answer is an empty page. After a full page only "not found" says so, since
    servers that give no more than so many results refuse further pages in other words.

    >>> refused = RecordsAnswer(problem="400 Bad Request", status=400)
    >>> without_missing_page(refused, 2, LearnedPageSize(50)).problem
    ''
    """
    missing = ABSENT if learned.is_certain else EXPIRED
    if not answer.problem or number == 1 or answer.status not in missing:
        return answer
    return replace(answer, problem="", records=(), refused=False, retry_after_s=None)
