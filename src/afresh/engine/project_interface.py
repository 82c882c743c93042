"""What people and programs can ask of a project: one engine and a cluster of engines both answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from afresh.engine.feed.feed_reader import ChangePage, ChangeQuery
from afresh.engine.reporting.overview import EstimatedPage, ItemDetail, Overview
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.why import Why
from afresh.values.changes import FeedEntry
from afresh.values.clock import Clock
from afresh.values.items import ItemQuery
from afresh.values.stored import Copy, Version


class Project(Protocol):
    """The reading interface of a project. ``Engine`` implements it for one store, and
    ``cluster.cluster_project.ClusterProject`` for the stores of all shards. Each call raises
    ``UnknownItemError`` for a key without an item, and ``AmbiguousKeyError`` if several sources have an item
    with it."""

    def status(self) -> Status:
        """Return the status of all items: freshness, budget, problems."""

    def why(self, key: str, *, source: str | None = None) -> Why:
        """Explain why an item is polled as often as it is."""

    def get(
        self,
        key: str,
        *,
        source: str | None = None,
        max_age_s: float = math.inf,
        version: int | None = None,
    ) -> Copy | None:
        """Return the copy of an item, or None if there is none."""

    def changes(
        self, since: str | None = None, limit: int = 1000, *, source: str | None = None
    ) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept)."""

    def versions(self, key: str, *, source: str | None = None) -> list[Version]:
        """Return the versions of an item's copy that are kept, the newest first."""


class ChangeFeed(Protocol):
    """The changes of a project, for pages and for programs that follow them."""

    def page(self, since: str | None, limit: int = 1000, query: ChangeQuery | None = None) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept)."""

    def cursor(self) -> str:
        """Return the cursor of the newest change."""

    def newest(self, limit: int, source: str | None = None, before: str | None = None) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes, of ``source`` or of all sources, the newest first; with the
        cursor ``before``, only those before its change."""

    def diff(self, entry: FeedEntry, most_lines: int) -> str:
        """Return at most ``most_lines`` lines of the difference that a change made; empty if not known."""

    def last(self) -> int:
        """Return a number that grows with every change."""


class WatchedProject(Project, Protocol):
    """A project as the dashboard watches it. Any thread may call its methods."""

    @property
    def clock(self) -> Clock:
        """The clock of the project's store."""

    @property
    def feed(self) -> ChangeFeed:
        """The changes that were found."""

    def overview(self) -> Overview:
        """Return the status, the last day, and what fails, read at one moment."""

    def list_items(self, query: ItemQuery, limit: int, cursor: str | None = None) -> EstimatedPage:
        """Return a page of at most ``limit`` items after ``cursor``, each with what is estimated of it."""

    def detail(self, key: str, *, source: str | None = None) -> ItemDetail:
        """Return everything that an item's page shows, read at one moment."""

    def source_names(self) -> list[str]:
        """Return the names of all sources."""

    def check_store(self) -> None:
        """Raise ``StoreError`` if the store cannot be read now."""


@dataclass(frozen=True, slots=True)
class ShardStatus:
    """One shard of a cluster. ``rate_per_s`` is its part of the budget, in requests per second. ``node`` is
    the machine with its store, empty if every machine reaches it. ``problem`` says why it does not poll or
    cannot be read; it is empty if there is no problem."""

    shard: int
    items: int
    rate_per_s: float
    node: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class LargeHost:
    """A host with more items than a shard has on average: it stays whole, in one shard."""

    host: str
    items: int
    shard: int


@dataclass(frozen=True, slots=True)
class ClusterStatus:
    """The shards of a cluster. ``price`` is the value that one more request per second would have, the same
    in all shards; NaN if the cluster does not run."""

    is_running: bool
    price: float
    shards: tuple[ShardStatus, ...]
    large_hosts: tuple[LargeHost, ...]


class ShardedProject(WatchedProject, Protocol):
    """A project of several engines under one price."""

    def cluster_status(self) -> ClusterStatus:
        """Return the shards with their parts of the budget, and the hosts that are larger than a shard."""
