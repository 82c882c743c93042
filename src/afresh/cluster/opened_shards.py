"""The readers of all shards of a project, which follow its layout while shards come and go."""

from __future__ import annotations

import socket
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from types import ModuleType

from afresh.cluster.actors import shard_name
from afresh.cluster.layout import ClusterLayout, LastSeen, read_last_seen, read_layout
from afresh.cluster.ray_session import ray_session
from afresh.cluster.shard_reader import RemoteShard, ShardReader, ShardUnreachableError, StoredShard
from afresh.cluster.shard_settings import ShardSpec
from afresh.engine.engine import Engine
from afresh.values.errors import UsageError


class OpenedShards:
    """Finds the shards of the project whose own store ``engine`` has. What is opened is closed with
    ``stack``."""

    def __init__(self, engine: Engine, spec: ShardSpec, stack: ExitStack) -> None:
        self.engine, self._spec, self._stack = engine, spec, stack
        self._lock = threading.RLock()
        self._layout, self._readers = ClusterLayout(), dict[int, ShardReader]()
        self._ray: ModuleType | None = None

    @property
    def layout(self) -> ClusterLayout:
        return self._layout

    def readers(self) -> Mapping[int, ShardReader]:
        """Return the readers of the present shards. Raise ``UsageError`` if there are none yet."""
        layout = read_layout(self.engine.store)
        if not layout.shards:
            raise UsageError("this project has no shards yet: 'afresh cluster run --shards N' makes them")
        with self._lock:
            if layout != self._layout:
                spec = replace(self._spec, shards=layout.shards)
                self._readers = {shard: self._reader(spec, layout, shard) for shard in layout.shards}
                self._layout = layout
            return self._readers

    def seen(self) -> LastSeen | None:
        """Return what the run of the cluster saw last; None if it does not run."""
        return read_last_seen(self.engine.store, self.engine.clock.now_s())

    def _reader(self, spec: ShardSpec, layout: ClusterLayout, shard: int) -> ShardReader:
        node = layout.node_of(shard)
        if node in ("", socket.gethostname()):
            return StoredShard(replace(spec, shard=shard), self._stack)
        return RemoteShard(lambda: self._connect(shard, node), shard, shard_name(spec.project, shard))

    def _connect(self, shard: int, node: str) -> ModuleType:
        with self._lock:
            if self._ray is None:
                seen = self.seen()
                if seen is None:
                    words = f"the cluster does not run, and the store of shard {shard} is on node {node}"
                    raise ShardUnreachableError(words)
                self._ray = self._stack.enter_context(ray_session(seen.address))
            return self._ray
