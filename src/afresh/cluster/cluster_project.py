"""A cluster as one project: status, items, reasons, copies and changes over the stores of all shards.

The stores of the shards are opened here. If one is in a file on another machine, the process of its shard is
asked, so that the cluster must run.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TypeVar

from afresh.cluster.cluster_feed import ClusterFeed
from afresh.cluster.host_hashing import large_hosts
from afresh.cluster.layout import ClusterView
from afresh.cluster.merged_items import cursor_of_shard, merge_items, merged_cursor
from afresh.cluster.merged_overview import merge_overviews
from afresh.cluster.merged_status import merge_statuses
from afresh.cluster.opened_shards import OpenedShards
from afresh.cluster.shard_reader import ShardReader, ShardUnreachableError
from afresh.cluster.shard_settings import ShardSpec, shard_of
from afresh.engine.engine import Engine
from afresh.engine.feed.feed_reader import ChangePage, ChangeQuery
from afresh.engine.project_interface import ClusterStatus, LargeHost, ShardStatus
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.reporting.item_snapshot import ItemEstimate, estimate_items, take_snapshot
from afresh.engine.reporting.overview import EstimatedPage, ItemDetail, Overview
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.why import Why
from afresh.values.clock import Clock
from afresh.values.errors import AmbiguousKeyError, StoreError, UnknownItemError, UsageError
from afresh.values.items import ItemPage, ItemQuery, display_key
from afresh.values.stored import Copy, Version

T = TypeVar("T")
_HOSTS_READ = 10  # so many hosts of each shard are compared with the size of a shard


class ClusterProject:
    """Implements ``ShardedProject`` over the shards that ``opened`` finds."""

    def __init__(self, opened: OpenedShards) -> None:
        self._opened, self._settings = opened, opened.engine.settings
        self.feed = ClusterFeed(opened.readers)

    @property
    def readers(self) -> Mapping[int, ShardReader]:
        return self._opened.readers()

    @property
    def clock(self) -> Clock:
        return self._opened.engine.clock

    @property
    def view(self) -> ClusterView | None:
        """What the coordinator knows of the shards; None if the cluster does not run."""
        seen = self._opened.seen()
        return None if seen is None else seen.view

    def status(self) -> Status:
        found = [reader.ask(Engine.status) for reader in self.readers.values()]
        return merge_statuses(found, budget_limits(self._settings.budget))

    def overview(self) -> Overview:
        """Return the overview of the shards that can be read now; raise ``StoreError`` if none can."""
        found, problems = self._ask_all(Engine.overview)
        if not found:
            raise StoreError(next(iter(problems.values())))
        merged = merge_overviews(list(found.values()), budget_limits(self._settings.budget))
        if not problems or merged.pulse is None:
            return merged
        return replace(merged, pulse=replace(merged.pulse, trouble="; ".join(problems.values())))

    def cluster_status(self) -> ClusterStatus:
        """Return the shards with their parts of the budget, and the hosts that are larger than a shard."""
        seen = self._opened.seen()
        views = {} if seen is None else {shard.shard: shard for shard in seen.view.shards}
        told = {} if seen is None else dict(seen.problems)
        hosts, problems = self._ask_all(_largest_hosts)
        shards = []
        for shard in self.readers:
            view = views.get(shard)
            problem = told.get(shard) or problems.get(shard, "")
            if not problem and view is not None and not view.is_live:
                problem = "nothing is heard of it"
            items = sum(hosts[shard].values()) if shard in hosts else 0 if view is None else view.items
            rate_per_s = 0.0 if view is None else view.rate_per_s
            node = self._opened.layout.node_of(shard)
            shards.append(ShardStatus(shard, items, rate_per_s, node, problem))
        price = math.nan if seen is None else seen.view.price
        return ClusterStatus(seen is not None, price, tuple(shards), _find_large_hosts(hosts))

    def list_items(self, query: ItemQuery, limit: int, cursor: str | None = None) -> EstimatedPage:
        """Return a page of the items of all shards, in the order of the query."""
        pages = {
            shard: reader.ask(_page, query, limit, cursor_of_shard(cursor, shard, query))
            for shard, reader in self.readers.items()
        }
        shown = merge_items(pages, query, limit)
        after = merged_cursor(pages, query, shown, limit)
        estimates: dict[tuple[int, int], ItemEstimate] = {}
        for shard in {shard for shard, _ in shown}:
            ids = [item.id for place, item in shown if place == shard]
            for item_id, estimate in self.readers[shard].ask(_estimates, ids).items():
                estimates[shard, item_id] = estimate
        # An item that was removed meanwhile has no estimate.
        kept = [(shard, item) for shard, item in shown if (shard, item.id) in estimates]
        page = ItemPage(tuple(item for _, item in kept), after)
        found = [estimates[shard, item.id] for shard, item in kept]
        return EstimatedPage(page, found, self.clock.now_s())

    def source_names(self) -> list[str]:
        return [table.settings.name for table in self._settings.sources]

    def check_store(self) -> None:
        self._opened.engine.check_store()

    def detail(self, key: str, *, source: str | None = None) -> ItemDetail:
        return self._reader_of(key, source).ask(Engine.detail, key, source=source)

    def why(self, key: str, *, source: str | None = None) -> Why:
        return self._reader_of(key, source).ask(Engine.why, key, source=source)

    def get(
        self,
        key: str,
        *,
        source: str | None = None,
        max_age_s: float = math.inf,
        version: int | None = None,
    ) -> Copy | None:
        if max_age_s != math.inf:
            raise UsageError("a cluster polls by its own plan: --max-age works with one engine only")
        return self._reader_of(key, source).ask(Engine.get, key, source=source, version=version)

    def versions(self, key: str, *, source: str | None = None) -> list[Version]:
        return self._reader_of(key, source).ask(Engine.versions, key, source=source)

    def changes(
        self, since: str | None = None, limit: int = 1000, *, source: str | None = None
    ) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept)."""
        return self.feed.page(since, limit, ChangeQuery(source))

    def shard_of_item(self, key: str, source: str | None = None) -> int:
        """Return the shard that has the item. Raise ``UnknownItemError`` if none has it."""
        found = {
            (name, shard)
            for shard in self._likely_shards(key, source)
            for name in self.readers[shard].ask(_sources_of, key)
            if source in (None, name)
        }
        if not found:
            raise UnknownItemError(f"there is no item {display_key(key)} in any shard: add it first")
        if len({name for name, _ in found}) > 1:
            raise AmbiguousKeyError(display_key(key), (name for name, _ in found))
        return min(shard for _, shard in found)

    def _reader_of(self, key: str, source: str | None) -> ShardReader:
        return self.readers[self.shard_of_item(key, source)]

    def _likely_shards(self, key: str, source: str | None) -> set[int]:
        """Return the shards that own the key's host, by the sources that could have such a key."""
        owner, groups = shard_of(sorted(self.readers)), set()
        for table in self._settings.sources:
            if source in (None, table.settings.name):
                try:
                    groups.add(table.kind.group(table.settings, key))
                except UsageError:  # it is no key of this source
                    continue
        return {owner(group) for group in groups}

    def _ask_all(self, question: Callable[[Engine], T]) -> tuple[dict[int, T], dict[int, str]]:
        """Ask all shards; return a tuple (answers by shard, why the others cannot be asked)."""
        found, problems = dict[int, T](), dict[int, str]()
        for shard, reader in self.readers.items():
            try:
                found[shard] = reader.ask(question)
            except ShardUnreachableError as error:
                problems[shard] = str(error)
            except StoreError as error:
                problems[shard] = f"shard {shard}: {error}"
        return found, problems


def open_cluster(engine: Engine, spec: ShardSpec, stack: ExitStack) -> ClusterProject:
    """Return the project of the cluster whose own store ``engine`` has. What is opened is closed with
    ``stack``. ``spec`` has the settings; its shards are read from the store. Raise ``UsageError`` if there
    are none yet."""
    opened = OpenedShards(engine, spec, stack)
    opened.readers()
    return ClusterProject(opened)


def _sources_of(engine: Engine, key: str) -> list[str]:
    return [found.source for found in engine.store.items.find([key])]


def _page(engine: Engine, query: ItemQuery, limit: int, cursor: str | None) -> ItemPage:
    return engine.store.items.page(query, limit, cursor)


def _estimates(engine: Engine, ids: list[int]) -> dict[int, ItemEstimate]:
    items = engine.store.items.by_id(ids)
    if not items:
        return {}
    snapshot = take_snapshot(engine.store, engine.running_settings(), items, engine.clock.now_s())
    return {item.id: estimate for item, estimate in zip(items, estimate_items(snapshot), strict=True)}


def _largest_hosts(engine: Engine) -> dict[str, int]:
    """Return the items of the largest hosts of a shard, and those of all others under the empty name."""
    found: dict[str, int] = {}
    for count in engine.store.items.counts():
        found[count.group] = found.get(count.group, 0) + count.items
    first = sorted(found, key=lambda host: -found[host])[:_HOSTS_READ]
    return {host: found[host] for host in first} | {
        "": sum(found.values()) - sum(found[host] for host in first)
    }


def _find_large_hosts(hosts: Mapping[int, Mapping[str, int]]) -> tuple[LargeHost, ...]:
    shard_by_host = {host: shard for shard, sizes in hosts.items() for host in sizes}
    sizes: dict[str, int] = {}
    for found in hosts.values():
        for host, items in found.items():
            sizes[host] = sizes.get(host, 0) + items
    large = large_hosts(sizes, len(hosts))
    return tuple(LargeHost(host, sizes[host], shard_by_host[host]) for host in large if host)
