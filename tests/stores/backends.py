"""The backends that the contract is tested on, and short ways to make items and outcomes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from afresh.stores.memory.store import MemoryStore
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention, Store
from afresh.values.items import NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import NewCopy, Observation, Outcome


@dataclass(frozen=True)
class Backend:
    """A way to open a store in a folder; ``persistent`` ones can be opened again and backed up."""

    name: str
    open: Callable[[Path, Retention], Store]
    persistent: bool


BACKENDS = (
    Backend("memory", lambda _, retention: MemoryStore(retention=retention), persistent=False),
    Backend(
        "sqlite",
        lambda folder, retention: SqliteStore(folder / "store.db", retention=retention),
        persistent=True,
    ),
)

PERSISTENT = tuple(backend for backend in BACKENDS if backend.persistent)


def new_items(number: int, **given: Any) -> list[NewItem]:
    """Items k0, k1, …"""
    return [NewItem(f"k{i}", **{"source": "web", "group": f"host{i % 3}"} | given) for i in range(number)]


def copy_of(content: bytes) -> NewCopy:
    """A copy whose normal form has a hash of its own."""
    return NewCopy(content, "text/plain", b"normal " + content[:8])


def seen(lease: Lease, time_s: float, *, changed: bool = False, **given: Any) -> Outcome:
    """A poll that told something, due again in a day."""
    elapsed = 0.0 if lease.polled_s is None else time_s - lease.polled_s
    audit = given.pop("audit", False)
    observation = Observation(lease.item_id, time_s, elapsed, changed, audit=audit)
    usual: dict[str, Any] = {"due_s": time_s + 86400.0, "observation": observation}
    return Outcome(lease, time_s, **usual | given)


def poll(store: Store, key: str, time_s: float, **given: Any) -> None:
    """Lease, poll and commit one item."""
    item = store.items.get(key)
    assert item is not None
    (lease,) = store.leases.take([item.id], time_s, 60.0, any_status=True)
    assert store.commit([seen(lease, time_s, **given)]) == []
