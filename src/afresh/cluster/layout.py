"""What is saved of a cluster for its next run and for commands that read: its shards, and how they are."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from afresh.stores.store import Store

LAYOUT = "cluster.layout"
LAST_SEEN = "cluster.seen"
_ALIVE_S = 20.0  # the run saves what it sees every second or two


@dataclass(frozen=True, slots=True)
class ShardView:
    """What the coordinator knows of one shard, for people."""

    shard: int
    rate_per_s: float
    burst: float
    items: int
    is_live: bool


@dataclass(frozen=True, slots=True)
class ClusterView:
    """What the coordinator knows, for people: the common price, and the shards."""

    price: float
    rate_per_s: float
    shards: tuple[ShardView, ...]


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """The shards of a project, and the name of the machine on which the store of each one lies; empty for a
    store that every machine reaches."""

    shards: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()

    def pack(self) -> bytes:
        return json.dumps([list(self.shards), list(self.nodes)]).encode()

    @classmethod
    def unpack(cls, packed: bytes | None) -> ClusterLayout:
        """Return the layout that ``pack`` packed.

        >>> ClusterLayout.unpack(ClusterLayout((0, 2), ("", "two")).pack()).node_of(2)
        'two'
        """
        if not packed:
            return cls()
        shards, nodes = json.loads(packed)
        return cls(tuple(shards), tuple(nodes))

    def node_of(self, shard: int) -> str:
        return self.nodes[self.shards.index(shard)] if shard in self.shards else ""


def read_layout(store: Store) -> ClusterLayout:
    return ClusterLayout.unpack(store.state.get(LAYOUT))


def save_layout(store: Store, layout: ClusterLayout) -> None:
    store.state.set({LAYOUT: layout.pack()})


@dataclass(frozen=True, slots=True)
class LastSeen:
    """What the run of the cluster saw last, at ``time_s``. ``address`` is that of the Ray cluster;
    ``problems`` are tuples (shard, why it does not poll)."""

    address: str
    time_s: float
    view: ClusterView
    problems: tuple[tuple[int, str], ...] = ()


def save_last_seen(store: Store, seen: LastSeen | None) -> None:
    store.state.set({LAST_SEEN: None if seen is None else json.dumps(asdict(seen)).encode()})


def read_last_seen(store: Store, now_s: float) -> LastSeen | None:
    """Return what the run of the cluster saw last; None if the cluster does not run now."""
    packed = store.state.get(LAST_SEEN)
    saved = json.loads(packed) if packed else None
    if saved is None or abs(now_s - saved["time_s"]) >= _ALIVE_S:
        return None
    view = saved["view"]
    shards = tuple(ShardView(**shard) for shard in view["shards"])
    problems = tuple((shard, words) for shard, words in saved["problems"])
    found = ClusterView(view["price"], view["rate_per_s"], shards)
    return LastSeen(saved["address"], saved["time_s"], found, problems)
