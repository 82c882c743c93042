"""Which shards a project has, and on which nodes their stores lie."""

from __future__ import annotations

import json
from dataclasses import dataclass

from afresh.stores.store import Store

LAYOUT = "cluster.layout"


@dataclass(frozen=True, slots=True)
class ClusterLayout:
    """The shards of a project, and the address of the node on which the store of each one lies; empty for a
    store that every node reaches."""

    shards: tuple[int, ...] = ()
    nodes: tuple[str, ...] = ()

    def pack(self) -> bytes:
        return json.dumps([list(self.shards), list(self.nodes)]).encode()

    @classmethod
    def unpack(cls, packed: bytes | None) -> ClusterLayout:
        """Return the layout that ``pack`` packed.

        >>> ClusterLayout.unpack(ClusterLayout((0, 2), ("", "10.0.0.5")).pack()).node_of(2)
        '10.0.0.5'
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
