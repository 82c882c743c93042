"""Sources whose one request refreshes items of its own choosing: a keyword query brings a page of records.

Whoever picks items brings the one worth most, the *lead*; the source answers with the items that its next
request is expected to refresh. They are leased and handed back with ``poll_chosen``. What was hoped for and
did not come is let go unpolled; what came unhoped for is kept, and chosen next, at no request.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from afresh.sources.source import Source
from afresh.values.arrays import Float64s
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease


@runtime_checkable
class ChoosingSource(Source, Protocol):
    """A source that chooses what its next request refreshes; ``isinstance`` tells. One request at a time."""

    async def choose(self, lead: str) -> Sequence[str]:
        """The keys of the items that the next request is expected to refresh.

        ``lead`` is an item that is worth a poll. It need not be among them, but if it is brought again and
        again it will be.
        """

    async def poll_chosen(self, leases: Sequence[Lease]) -> list[Fetched | None]:
        """Send the request chosen last: one answer for each lease, None for an item that did not come.

        Everything said of ``Source.poll`` holds. Keys that were chosen and are not leased are busy elsewhere
        or not to be polled: they are not chosen again for a while. No leases: no request.
        """


@runtime_checkable
class WeighedSource(ChoosingSource, Protocol):
    """A source that chooses by what items count for, and is told so before each choice."""

    def keys(self) -> Sequence[str]:
        """The keys of all its items; the same list until they are others."""

    def weigh(self, weights: Float64s) -> None:
        """What each of ``keys`` counts for now; 0: it is not to be polled."""
