"""The contract of a source: a place that has items to copy.

What a source can do beyond this contract is described in ``capabilities``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from afresh.sources.settings import SourceSettings
from afresh.sources.windows import CachedWindows
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing


class Source(Protocol):
    """A place that items come from.

    All methods run on one event loop and are called from no other thread. Any number of polls may be under
    way at the same time. Time comes from the clock of the ``SourceContext`` that the source was built with.

    Errors: ``group`` and the constructor raise ``UsageError`` for mistakes in settings and keys. ``poll`` and
    ``listings`` raise nothing for what a remote system does; they describe it in ``problem``. A cancelled
    poll closes its connection, and requests that were already sent are counted.

    Every request of any kind awaits ``SourceContext.admit`` exactly once before it is sent; the budget
    depends on it. A source keeps its own politeness rules. The engine asks ``ready_s`` before it picks an
    item, so that polls do not queue inside the source.
    """

    @property
    def name(self) -> str:
        """The source's name in the settings."""

    def group(self, key: str) -> str:
        """Return the politeness group of an item (its host, for HTTP); refuse keys that cannot be polled."""

    def ready_s(self, group: str, now_s: float) -> float:
        """Return the earliest time at which the next request to ``group`` may start; ``now_s`` if at once.

        The answer accounts for windows, delays, back-off and requests in flight. It is infinite while all
        slots are taken.
        """

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Poll one item once. ``conditional=False`` asks for the content whatever the validators say.

        The poll waits for its turn, but not for long: if the group backs off for longer than the source is
        willing to wait, the result is ``failed`` with ``retry_after_s``, and nothing is sent. The poll ends
        within the time limits of the source.
        """

    def listings(self) -> AsyncIterator[Listing]:
        """Read what the source says exists, one document (a sitemap, a feed, a query) at a time; bounded."""

    async def close(self) -> None:
        """Close all connections. Polls under way end as ``failed``. May be called twice."""


class SingleGroupSource:
    """Base class of sources whose items form one group, which has the source's name.

    >>> shop = SingleGroupSource(SourceSettings(kind="sql", name="shop"))
    >>> shop.name, shop.group("any key")
    ('shop', 'shop')
    """

    def __init__(self, settings: SourceSettings) -> None:
        self._name, self._windows = settings.name, CachedWindows(settings.open_windows)

    @property
    def name(self) -> str:
        return self._name

    def group(self, key: str) -> str:
        """Return the name of the source, whatever the key."""
        del key
        return self._name
