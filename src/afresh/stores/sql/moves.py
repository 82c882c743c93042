"""Moves items between stores: all that is known of an item is read, and written elsewhere, as a record.

An item gets a new id in the store that it is moved to; its versions keep their numbers. To move an item,
write its record to the new store, and then remove it from the old one. If the process ends in between, do
both again: an item that the new store has polled already is left as it is.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence

from afresh.stores.codecs import content_hash
from afresh.stores.item_record import ItemRecord, ObservationRun
from afresh.stores.rows import STATUS_CODE
from afresh.stores.sql.commit_changes import CompressedCopy
from afresh.stores.sql.dialect import ConnectionT, SqlDatabase, SqlPart
from afresh.stores.sql.item_part import SqlItems
from afresh.stores.store import Copies
from afresh.values.items import Item, NewItem
from afresh.values.outcome import NewCopy
from afresh.values.stored import Copy
from afresh.values.zstd_frames import FrameCompressor

_COMPRESSION_LEVEL = 3


class SqlMoves(SqlPart[ConnectionT]):
    """Reads and writes everything that is known of items. A database says how it stores contents."""

    file = "moves"

    def __init__(
        self, database: SqlDatabase[ConnectionT], items: SqlItems[ConnectionT], copies: Copies
    ) -> None:
        super().__init__(database)
        self.items, self.copies = items, copies

    def read(self, ids: Sequence[int]) -> list[ItemRecord]:
        """Return the records of these items; unknown ids are left out."""
        listed = self._database.as_list(ids)
        states = {item_id: rest for item_id, *rest in self._fetch("states", ids=listed)}
        runs: defaultdict[int, list[ObservationRun]] = defaultdict(list)
        for item_id, number, last_us, observations, data in self._fetch("runs", ids=listed):
            runs[item_id].append(ObservationRun(number, last_us, observations, bytes(data)))
        found = []
        for item in self.items.by_id(ids):
            belief, validators, is_listed, recent = states[item.id]
            if recent is not None:
                runs[item.id].append(ObservationRun(None, 0, 0, bytes(recent)))
            versions = sorted(self.copies.versions(item.id), key=lambda version: version.number)
            copies = [self.copies.get(item.id, version.number) for version in versions]
            kept = tuple(copy for copy in copies if copy is not None)
            own = tuple(runs[item.id])
            found.append(ItemRecord(item, bytes(belief), validators, bool(is_listed), own, kept))
        return found

    def drop(self, ids: Sequence[int]) -> None:
        """Remove items that another store has now. For those who follow the feed, they are not removed."""
        self.items.drop_moved(ids)

    def write(self, records: Sequence[ItemRecord], now_s: float) -> int:
        """Add items with all that is known of them, and return how many were written. An item that this store
        has, and that was polled here, stays as it is. No run may poll the items meanwhile."""
        wanted = {(record.item.source, record.item.key): record for record in records}
        by_source: defaultdict[str, list[str]] = defaultdict(list)
        for source, key in wanted:
            by_source[source].append(key)
        for source, keys in by_source.items():
            for item in self.items.by_id(list(self.items.ids(keys, source).values())):
                if item.polls or item.version:
                    del wanted[source, item.key]
        self.items.add([_new_item(record) for record in wanted.values()], now_s)
        ids = {source: self.items.ids(keys, source) for source, keys in by_source.items()}
        told = {place: record for place, record in wanted.items() if _has_history(record)}
        pairs = [(ids[source][key], record) for (source, key), record in told.items()]
        compressor = FrameCompressor(_COMPRESSION_LEVEL)
        contents = [_compressed(copy, compressor) for _, record in pairs for copy in record.copies]
        self._database.write(lambda connection: self._write(connection, pairs, contents))
        return len(wanted)

    def _write(
        self,
        connection: ConnectionT,
        pairs: Sequence[tuple[int, ItemRecord]],
        contents: Sequence[CompressedCopy],
    ) -> None:
        self._move_in_tally(connection, pairs)
        for item_id, record in pairs:
            self._rows(connection, "set_state", _state(item_id, record))
            self._rows(connection, "set_added", {"item_id": item_id, "added_s": record.item.added_s})
            for run in record.runs:
                if run.number is not None:
                    self._rows(connection, "add_run", _run(item_id, run))
        stored = self._save_contents(connection, contents)
        types = {copy.version.media_type for _, record in pairs for copy in record.copies}
        names = self._database.name_ids(connection, types)
        for item_id, record in pairs:
            for copy in record.copies:
                version = copy.version
                given = {
                    "item_id": item_id,
                    "number": version.number,
                    "content_id": stored[version.hash],
                    "time_s": version.time_s,
                    "media_type_id": names[version.media_type],
                    "normal_hash": version.normal_hash,
                    "change_size": version.change_size,
                }
                self._rows(connection, "add_version", given)

    def _move_in_tally(self, connection: ConnectionT, pairs: Sequence[tuple[int, ItemRecord]]) -> None:
        """Count the items under their own status; they were added as active ones."""
        moved: Counter[tuple[int, int, int]] = Counter()
        names = {name for _, record in pairs for name in (record.item.source, record.item.group)}
        codes = self._database.name_ids(connection, names)
        for _, record in pairs:
            place = codes[record.item.source], codes[record.item.group]
            moved[*place, STATUS_CODE["active"]] -= 1
            moved[*place, STATUS_CODE[record.item.status]] += 1
        self._database.add_to_tally(connection, moved)

    @abstractmethod
    def _save_contents(
        self, connection: ConnectionT, contents: Sequence[CompressedCopy]
    ) -> Mapping[bytes, int]:
        """Count one more use for each entry of ``contents``, store those that are new, and return the ids of
        all by their hashes."""


def _compressed(copy: Copy, compressor: FrameCompressor) -> CompressedCopy:
    new = NewCopy(copy.content, copy.version.media_type, copy.version.normal_hash)
    return CompressedCopy(new, content_hash(copy.content), compressor.compress(copy.content))


def _has_history(record: ItemRecord) -> bool:
    item = record.item
    return bool(item.polls or item.version or item.status != "active" or record.runs)


def _new_item(record: ItemRecord) -> NewItem:
    item = record.item
    return NewItem(
        item.key,
        item.source,
        item.group,
        weight=item.weight,
        cost=item.cost,
        min_interval_s=item.min_interval_s,
        max_interval_s=item.max_interval_s,
        prior_rate_per_s=item.prior_rate_per_s,
        labels=item.labels,
        selector=item.selector,
        listed=record.listed,
    )


def _state(item_id: int, record: ItemRecord) -> dict[str, object]:
    item: Item = record.item
    recent = next((run.data for run in record.runs if run.number is None), None)
    names = ("due_s", "polled_s", "changed_s", "polls", "changes", "failures", "version", "problem")
    return {name: getattr(item, name) for name in names} | {
        "item_id": item_id,
        "status": STATUS_CODE[item.status],
        "belief": record.belief,
        "validators": record.validators,
        "recent": recent,
    }


def _run(item_id: int, run: ObservationRun) -> dict[str, object]:
    return {
        "item_id": item_id,
        "number": run.number,
        "last_us": run.last_us,
        "observations": run.observations,
        "data": run.data,
    }
