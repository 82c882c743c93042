"""The contract that every source fulfils. ``capabilities`` describes what a source may do beyond it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Protocol

from afresh.sources.settings import SourceSettings
from afresh.sources.windows import CachedWindows
from afresh.values.fetched import Fetched
from afresh.values.lease import Lease
from afresh.values.listing import Listing


class Source(Protocol):
    """A remote system that has items, such as a web site, a database or a function of the user.

    All methods run on one event loop and are called from no other thread. Any number of polls may run at the
    same time. Time comes from the clock of the ``SourceContext`` that the source was built with.

    Errors: ``group`` and the constructor raise ``UsageError`` for mistakes in settings and keys. ``poll`` and
    ``listings`` raise no exception for problems of the remote system, but describe them in the field
    ``problem`` of their results. A cancelled poll closes its connection; requests already sent count as
    spent.

    Before every request, of any kind, the source awaits ``SourceContext.admit`` exactly once; the budget
    depends on it. A source enforces its own politeness rules. The engine calls ``ready_s`` before it picks an
    item, so that polls do not queue inside the source."""

    @property
    def name(self) -> str:
        """The source's name in the settings."""

    def group(self, key: str) -> str:
        """Return the group of an item, such as its host. Raise ``UsageError`` if the key is never allowed."""

    def ready_s(self, group: str, now_s: float) -> float:
        """Return the earliest time (Unix seconds) at which the next request to ``group`` may start. The time
        depends on the windows, delays and back-offs, and on running requests. It is ``now_s`` if a request
        may start now, and infinite while as many requests as allowed are running."""

    async def poll(self, lease: Lease, *, conditional: bool = True) -> Fetched:
        """Poll one item. With ``conditional=False``, request the content without sending validators. The poll
        waits until a request to its group may start. If it would wait longer than the source allows, it sends
        no request and returns ``failed`` with ``retry_after_s``."""

    def listings(self) -> AsyncIterator[Listing]:
        """Read and yield a limited number of documents (sitemaps, feeds, queries) that list items."""

    async def close(self) -> None:
        """Close all connections. Polls that still run end as ``failed``. ``close`` may be called twice."""


class SingleGroupSource:
    """Base class of sources whose items form one group, which has the name of the source.

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
        del key
        return self._name
