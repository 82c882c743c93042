"""Sources that look at many items with one request: a thousand rows cost little more than one.

Whoever picks the items gathers up to ``bulk_limit`` of one group that are due, or nearly so, and polls them
together; each item's outcome is then its own, as if it had been polled alone. The cost is shared: what a
request costs is fixed, so the more items it serves the less each pays (Razniewski 2016, §6: bulks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol, runtime_checkable

from afresh.sources.source import Source
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@runtime_checkable
class BulkSource(Source, Protocol):
    """A source that can poll several items of one group at once; ``isinstance`` tells."""

    def bulk_limit(self, group: str) -> int:
        """How many items one request to ``group`` may serve, 1 or more; may change while running."""

    async def poll_many(self, leases: Sequence[Lease], *, conditional: bool = True) -> list[Fetched]:
        """Look at these items of one group with one request: one ``Fetched`` for each lease, in their order.

        Everything said of ``Source.poll`` holds. ``admit`` is awaited once, for there is one request (more
        only to find the item that spoils it); more than ``bulk_limit`` leases are a defect of the caller.
        The requests, bytes and seconds of the answers add up to what was spent; see ``shared``. No leases:
        no request.
        """


def shared(fetched: Sequence[Fetched], *, requests: int, seconds: float) -> list[Fetched]:
    """The answers of one bulk at a shared cost: the first carries the requests, each its part of the time.

    >>> [(one.requests, one.seconds) for one in shared([Fetched("unchanged")] * 2, requests=1, seconds=0.5)]
    [(1, 0.25), (0, 0.25)]
    """
    each_s = seconds / max(len(fetched), 1)
    return [replace(one, requests=0 if at else requests, seconds=each_s) for at, one in enumerate(fetched)]
