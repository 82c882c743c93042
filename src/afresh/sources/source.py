"""The protocol that everything with items to copy follows.

What a source can do beyond it, it says by having the methods; ``isinstance`` tells, and the engine uses them:

    BulkSource         (``bulk``)         polls many items with one request
    ChoosingSource     (``choosing``)     chooses itself what its next request refreshes
    WeighedSource      (``choosing``)     the same, told before each choice what items count for
    WitnessSource      (``evidence``)     tells staleness, rates and costs without polls
    RememberingSource  (``remembering``)  has rests and notes that outlive the process
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing


class Source(Protocol):
    """Where items come from.

    All methods run on one event loop and are called from no other thread; any number of polls may be
    under way at once. Time comes from the clock that the source was built with.

    What may raise: ``group`` and the constructor raise ``UsageError`` for what a person wrote wrongly.
    ``poll`` and ``listings`` raise nothing for what the outside does: they return its ``problem`` in
    words. Cancelling a poll closes its connection and counts as sent what was sent.

    Every request, of whatever kind, first awaits the ``admit`` of the surroundings, exactly once: that
    is how the budget's promise holds. A source keeps its own politeness; whoever picks the items asks
    ``ready_s`` first, so that no poll sits waiting for its turn.
    """

    @property
    def name(self) -> str:
        """The source's name in the settings."""

    def group(self, key: str) -> str:
        """The politeness group of an item (the host, for HTTP); refuses keys that it could never poll."""

    def ready_s(self, group: str, now_s: float) -> float:
        """The earliest time at which the next request to ``group`` may start; ``now_s`` if at once.

        Holds windows, delays, back-off and what is in flight; infinite if no window ever opens.
        """

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Look at one item once. ``conditional=False`` asks for the content whatever the validators say.

        Waits for its turn, but not long: a group that rests beyond the source's patience gives
        ``failed`` with ``retry_after_s`` and no request. Ends within the source's time limits.
        """

    def listings(self) -> AsyncIterator[Listing]:
        """Read what the source says exists, one document at a time (its sitemaps and feeds); bounded."""

    async def close(self) -> None:
        """Let go of connections. Polls under way end as ``failed``; idempotent."""
