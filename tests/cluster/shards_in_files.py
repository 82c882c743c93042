"""A project with shards whose stores are files, as a run of a cluster leaves them; Ray is not needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from afresh.cluster.cluster_project import ClusterProject, open_cluster
from afresh.cluster.host_hashing import assign_hosts
from afresh.cluster.layout import ClusterLayout, ClusterView, LastSeen, ShardView, save_last_seen, save_layout
from afresh.cluster.shard_settings import ShardSpec, project_name, shard_settings
from afresh.engine.app import make_engine
from afresh.engine.engine import Engine
from afresh.values.clock import Clock

SETTINGS = """
[store]
url = "sqlite:project.db"
[budget]
requests = "9/s"
[cluster]
store = "sqlite:shards/{shard}.db"
[[source]]
name = "web"
min_interval = 0
[[source]]
name = "mirror"
"""


@dataclass
class FileShards:
    """The project ``own`` in ``folder``, and the engines of its shards."""

    folder: Path
    spec: ShardSpec
    own: Engine
    clock: Clock | None
    engines: dict[int, Engine] = field(default_factory=dict)

    def add(self, url: str, source: str = "web") -> Engine:
        """Add an item to the shard of its host; return the engine of this shard."""
        (shard,) = assign_hosts([url.split("/")[2]], self.spec.shards)
        self.engines[shard].add([url], source=source)
        return self.engines[shard]

    def place(self, shards: tuple[int, ...], nodes: tuple[str, ...] | None = None) -> None:
        """Save that these are the shards of the project, and where they are."""
        save_layout(self.own.store, ClusterLayout(shards, nodes or ("",) * len(shards)))

    def seen(self, *lost: int, problems: tuple[tuple[int, str], ...] = ()) -> None:
        """Save what a run of the cluster would have seen now."""
        counts = {shard: engine.store.items.counts() for shard, engine in self.engines.items()}
        shards = tuple(
            ShardView(shard, 9.0 / len(counts), 3.0, sum(count.items for count in found), shard not in lost)
            for shard, found in counts.items()
        )
        now_s = self.own.clock.now_s()
        save_last_seen(
            self.own.store, LastSeen("127.0.0.1:9", now_s, ClusterView(0.25, 9.0, shards), problems)
        )


@contextmanager
def file_shards(folder: Path, shards: int = 3, clock: Clock | None = None) -> Iterator[FileShards]:
    """Make the stores of a project and its shards."""
    numbers = tuple(range(shards))
    spec = ShardSpec(-1, numbers, SETTINGS, {}, str(folder), project_name(str(folder)))
    (folder / "shards").mkdir()
    with ExitStack() as stack:
        own = stack.enter_context(make_engine(spec.parse(), folder, clock=clock, seed=1))
        made = FileShards(folder, spec, own, clock)
        made.place(numbers)
        for shard in numbers:
            settings = shard_settings(replace(spec, shard=shard))
            made.engines[shard] = stack.enter_context(make_engine(settings, folder, clock=clock, seed=1))
        yield made


@contextmanager
def opened_cluster(made: FileShards) -> Iterator[ClusterProject]:
    """Open the cluster for reading, as commands do."""
    with ExitStack() as stack:
        yield open_cluster(made.own, made.spec, stack)
