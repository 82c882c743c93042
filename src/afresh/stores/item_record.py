"""Everything that a store knows about one item, to move the item to another store."""

from __future__ import annotations

from dataclasses import dataclass

from afresh.values.items import Item
from afresh.values.stored import Copy


@dataclass(frozen=True, slots=True)
class ObservationRun:
    """A run of observations as stores encode it (``stores.codecs``). The newest one has the number None."""

    number: int | None
    last_us: int
    observations: int
    data: bytes


@dataclass(frozen=True, slots=True)
class ItemRecord:
    """One item with its belief, its validators (JSON), its observations and its copies, the oldest first.
    ``listed`` is whether a listing named it. Ids are those of the store that it came from. Notices, events
    and audits are not part of it: they stay where they were recorded."""

    item: Item
    belief: bytes
    validators: str | None
    listed: bool
    runs: tuple[ObservationRun, ...]
    copies: tuple[Copy, ...]
