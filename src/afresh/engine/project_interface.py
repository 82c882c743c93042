"""What people and programs can ask of a project: one engine and a cluster of engines both answer."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

from afresh.engine.feed.feed_reader import ChangePage
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.why import Why
from afresh.values.changes import FeedEntry
from afresh.values.stored import Copy, Version


class Project(Protocol):
    """The reading interface of a project. ``Engine`` implements it for one store, and
    ``cluster.cluster_project.ClusterProject`` for the stores of all shards. Each call raises ``UsageError``
    for a key without an item, and ``AmbiguousKeyError`` if several sources have an item with it."""

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

    def newest(
        self, limit: int = 50, *, source: str | None = None, before: str | None = None
    ) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes, the newest first; with the cursor ``before``, only those before
        its change."""

    def versions(self, key: str, *, source: str | None = None) -> list[Version]:
        """Return the versions of an item's copy that are kept, the newest first."""
