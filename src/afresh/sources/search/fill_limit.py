"""Limits what queries may cost while records are seen for the first time.

The totals of queries are estimates, and wrong estimates cost requests. As in a round of ``afresh probes``
(``probes.campaign``), the loss compared with look-ups by key is limited: if N pages of results brought M new
records, N − M/k never exceeds 5 % of n/k plus three, for n records of which one look-up finds k. So all
records are seen after at most 1.05·n/k + 3 requests.
"""

from __future__ import annotations

import numpy as np

from afresh.probes.campaign import LOST_FEW, LOST_SHARE
from afresh.values.arrays import Bools, Ints


class FillLimit:
    """Counts what queries have lost so far. ``at_once`` is how many records one look-up finds, 0 if there are
    no look-ups; then nothing is limited.

    >>> limit = FillLimit(20, 1); nothing = np.empty(0, dtype=np.int64)
    >>> for _ in range(4): limit.record_query(nothing)
    >>> limit.is_reached
    True
    >>> limit.record_query(np.array([3, 4, 5])); limit.is_reached
    False
    """

    def __init__(self, records: int, at_once: int) -> None:
        self._unseen: Bools = np.ones(records, dtype=np.bool_)
        self._at_once = at_once
        self._to_lose = LOST_SHARE * records / max(at_once, 1) + LOST_FEW

    @property
    def is_reached(self) -> bool:
        """Whether a further query that brings nothing would exceed the limit, and some record is unseen."""
        return self._to_lose < 1 and self._at_once > 0 and bool(self._unseen.any())

    def record_query(self, rows: Ints) -> None:
        """Record a page of results with the records in ``rows``. It counts while some record is unseen."""
        if self._at_once and self._unseen.any():
            self._to_lose += float(self._unseen[rows].sum()) / self._at_once - 1.0
        self.mark_seen(rows)

    def mark_seen(self, rows: Ints) -> None:
        """Record that these rows need not be seen any more: they came, or were looked up."""
        self._unseen[rows] = False
