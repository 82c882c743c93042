"""The backends that the contract is tested on, and short ways to make items and outcomes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

from tests.stores.reference.store import ReferenceStore

from afresh.stores.postgres.store import PostgresStore
from afresh.stores.sqlite.memory_store import MemoryStore
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention, Store
from afresh.values.items import NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import NewCopy, Observation, Outcome
from afresh.values.stored import PolicyColumns


@dataclass(frozen=True)
class Backend:
    """A way to open a store that belongs to a folder; ``persistent`` ones can be opened again.

    ``server`` is the address of a database server, for those that need one.
    """

    name: str
    make: Callable[[Path, Retention, str], Store]
    persistent: bool = True
    can_back_up: bool = True
    server: str = ""

    def open(self, folder: Path, retention: Retention) -> Store:
        """The folder's store."""
        return self.make(folder, retention, self.server)


NAMED: set[tuple[str, str]] = set()
"""The server and the name of every schema that a test of this process named."""


def schema_url(server: str, folder: Path) -> str:
    """A schema that belongs to a folder."""
    name = f"test_{blake2b(str(folder).encode(), digest_size=10).hexdigest()}"
    NAMED.add((server, name))
    return f"{server}{'&' if '?' in server else '?'}schema={name}"


BACKENDS = (
    Backend(
        "reference",
        lambda _, retention, __: ReferenceStore(retention=retention),
        persistent=False,
        can_back_up=False,
    ),
    Backend("memory", lambda _, retention, __: MemoryStore(retention=retention), persistent=False),
    Backend("sqlite", lambda folder, retention, _: SqliteStore(folder / "store.db", retention=retention)),
    Backend(
        "postgres",
        lambda folder, retention, server: PostgresStore(schema_url(server, folder), retention=retention),
    ),
)


def new_items(number: int, **given: Any) -> list[NewItem]:
    """Items k0, k1, …"""
    return [NewItem(f"k{i}", **{"source": "web", "group": f"host{i % 3}"} | given) for i in range(number)]


def ids_of(store: Store, keys: Sequence[str]) -> list[int]:
    """The ids of the items with these keys, of all sources."""
    return [item.id for item in store.items.find(keys)]


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


def belief_of(columns: PolicyColumns, row: int) -> bytes:
    end = int(columns.belief_size[: row + 1].sum())
    return columns.beliefs[end - int(columns.belief_size[row]) : end]
