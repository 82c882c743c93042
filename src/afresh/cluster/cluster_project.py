"""A cluster as one project: status, why and copies over the stores of all shards.

The stores of the shards are opened here. If one is in a file on another machine, the process of its shard is
asked, so that the cluster must run.
"""

from __future__ import annotations

import math
import socket
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any, Protocol

from afresh.cluster.actors import shard_name
from afresh.cluster.cluster_cursor import merge_newest, merge_pages, parse_cursor
from afresh.cluster.layout import ClusterView, read_last_seen, read_layout
from afresh.cluster.merged_status import merge_statuses
from afresh.cluster.ray_session import ClusterError, ask_actor, find_actor, ray_session
from afresh.cluster.shard_settings import ShardSpec, shard_of, shard_settings
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.engine.feed.feed_reader import ChangePage, ChangeQuery
from afresh.engine.ratelimit.request_slots import budget_limits
from afresh.engine.reporting.status import Status
from afresh.engine.reporting.why import Why
from afresh.engine.settings.tables import Settings
from afresh.stores.opening import CopiesPlace, open_store
from afresh.values.changes import FeedEntry
from afresh.values.errors import AmbiguousKeyError, StoreError, UsageError
from afresh.values.items import display_key
from afresh.values.stored import Copy, Version


class ShardReader(Protocol):
    """What can be asked of one shard, in its process or by opening its store."""

    def status(self) -> Status: ...
    def why(self, key: str, source: str | None) -> Why: ...
    def get(self, key: str, source: str | None, version: int | None) -> Copy | None: ...
    def versions(self, key: str, source: str | None) -> list[Version]: ...
    def sources_of(self, key: str) -> list[str]: ...
    def changes(self, since: str | None, limit: int, source: str | None) -> ChangePage: ...
    def newest(self, limit: int, source: str | None, before: str | None) -> Sequence[FeedEntry]: ...


class OpenedShard:
    """A shard whose store is opened in this process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    def status(self) -> Status:
        return self.engine.status()

    def why(self, key: str, source: str | None) -> Why:
        return self.engine.why(key, source=source)

    def get(self, key: str, source: str | None, version: int | None) -> Copy | None:
        return self.engine.get(key, source=source, version=version)

    def versions(self, key: str, source: str | None) -> list[Version]:
        return self.engine.versions(key, source=source)

    def sources_of(self, key: str) -> list[str]:
        return [found.source for found in self.engine.store.items.find([key])]

    def changes(self, since: str | None, limit: int, source: str | None) -> ChangePage:
        return self.engine.feed.page(since, limit, ChangeQuery(source))

    def newest(self, limit: int, source: str | None, before: str | None) -> Sequence[FeedEntry]:
        return self.engine.newest(limit, source=source, before=before)


class RemoteShard:
    """A shard that runs in Ray."""

    def __init__(self, ray: ModuleType, shard: int, handle: Any) -> None:
        self._ray, self._shard, self._handle = ray, shard, handle

    def _ask(self, method: str, *given: Any) -> Any:
        call = getattr(self._handle, method).remote(*given)
        return ask_actor(self._ray, call, f"shard {self._shard}")

    def status(self) -> Status:
        found = self._ask("status")
        assert isinstance(found, Status)
        return found

    def why(self, key: str, source: str | None) -> Why:
        found = self._ask("why", key, source)
        assert isinstance(found, Why)
        return found

    def get(self, key: str, source: str | None, version: int | None) -> Copy | None:
        found: Copy | None = self._ask("get", key, source, version)
        return found

    def versions(self, key: str, source: str | None) -> list[Version]:
        found: list[Version] = self._ask("versions", key, source)
        return found

    def sources_of(self, key: str) -> list[str]:
        return [str(source) for source in self._ask("sources_of", key)]

    def changes(self, since: str | None, limit: int, source: str | None) -> ChangePage:
        found = self._ask("changes", since, limit, source)
        assert isinstance(found, ChangePage)
        return found

    def newest(self, limit: int, source: str | None, before: str | None) -> Sequence[FeedEntry]:
        return list(self._ask("newest", limit, source, before))


class ClusterProject:
    """Implements ``engine.project_interface.Project`` over shards. ``view`` is the coordinator's, None if the
    cluster does not run."""

    def __init__(
        self,
        settings: Settings,
        readers: Mapping[int, ShardReader],
        *,
        view: ClusterView | None = None,
        owner: Callable[[str], int] | None = None,
    ) -> None:
        self._settings, self.readers, self.view = settings, readers, view
        self._owner = owner or shard_of(sorted(readers))

    def status(self) -> Status:
        found = [reader.status() for reader in self.readers.values()]
        return merge_statuses(found, budget_limits(self._settings.budget))

    def why(self, key: str, *, source: str | None = None) -> Why:
        return self.readers[self.shard_of_item(key, source)].why(key, source)

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
        return self.readers[self.shard_of_item(key, source)].get(key, source, version)

    def versions(self, key: str, *, source: str | None = None) -> list[Version]:
        return self.readers[self.shard_of_item(key, source)].versions(key, source)

    def changes(
        self, since: str | None = None, limit: int = 1000, *, source: str | None = None
    ) -> ChangePage:
        """Return at most ``limit`` changes after the cursor ``since`` (None: from the oldest kept)."""
        places = {} if since is None else parse_cursor(since)
        pages = {
            shard: reader.changes(places.get(shard), limit, source) for shard, reader in self.readers.items()
        }
        return merge_pages(places, pages, limit)

    def newest(
        self, limit: int = 50, *, source: str | None = None, before: str | None = None
    ) -> Sequence[FeedEntry]:
        """Return at most ``limit`` changes, the newest first; with the cursor ``before``, earlier ones."""
        places = {} if before is None else parse_cursor(before)
        newest = {
            shard: reader.newest(limit, source, places.get(shard)) for shard, reader in self.readers.items()
        }
        return merge_newest(places, newest, limit)

    def shard_of_item(self, key: str, source: str | None = None) -> int:
        """Return the shard that has the item. Raise ``UsageError`` if none has it."""
        found = {
            (name, shard)
            for shard in self._likely_shards(key, source)
            for name in self.readers[shard].sources_of(key)
            if source in (None, name)
        }
        if not found:
            raise UsageError(f"there is no item {key!r} in any shard: add it first")
        if len({name for name, _ in found}) > 1:
            raise AmbiguousKeyError(display_key(key), (name for name, _ in found))
        return min(shard for _, shard in found)

    def _likely_shards(self, key: str, source: str | None) -> set[int]:
        """Return the shards that own the key's host, by the sources that could have such a key."""
        groups = set()
        for table in self._settings.sources:
            if source in (None, table.settings.name):
                try:
                    groups.add(table.kind.group(table.settings, key))
                except UsageError:  # it is no key of this source
                    continue
        return {shard for shard in map(self._owner, groups) if shard in self.readers}


def open_cluster(engine: Engine, spec: ShardSpec, stack: ExitStack) -> ClusterProject:
    """Return the project of the cluster whose own store ``engine`` has. What is opened is closed with
    ``stack``. ``spec`` has the settings; its shards are read from the store."""
    layout = read_layout(engine.store)
    if not layout.shards:
        raise UsageError("this project has no shards yet: 'afresh cluster run --shards N' makes them")
    spec = replace(spec, shards=layout.shards)
    seen = read_last_seen(engine.store, engine.clock.now_s())
    readers: dict[int, ShardReader] = {}
    elsewhere = [shard for shard in layout.shards if layout.node_of(shard) not in ("", socket.gethostname())]
    if elsewhere and seen is None:
        node = layout.node_of(elsewhere[0])
        raise ClusterError(
            f"the cluster does not run, and the store of shard {elsewhere[0]} is on node {node}"
        )
    ray = stack.enter_context(ray_session(seen.address)) if elsewhere and seen is not None else None
    for shard in layout.shards:
        if ray is None or shard not in elsewhere:
            readers[shard] = _open_shard(replace(spec, shard=shard), stack)
            continue
        handle = find_actor(ray, shard_name(spec.project, shard))
        if handle is None:
            raise ClusterError(f"shard {shard} is not running now: try again when it is back")
        readers[shard] = RemoteShard(ray, shard, handle)
    return ClusterProject(engine.settings, readers, view=None if seen is None else seen.view)


def _open_shard(spec: ShardSpec, stack: ExitStack) -> OpenedShard:
    settings = shard_settings(spec)
    try:
        copies = CopiesPlace(settings.store.copies, settings.store.copies_grace)
        base = Path(spec.folder)
        store = open_store(settings.store.url, base=base, copies=copies, create=False, read_only=True)
    except StoreError as error:
        raise ClusterError(f"shard {spec.shard}: {error}") from None
    return OpenedShard(stack.enter_context(make_engine(settings, spec.folder, store=store)))
