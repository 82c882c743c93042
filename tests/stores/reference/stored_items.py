"""Items and leases in memory."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import fields, replace
from string import ascii_lowercase, ascii_uppercase
from typing import Any

from tests.stores.reference.data import ItemRecord, ReferenceData, ReferenceGroup
from tests.stores.reference.feed import Sizes, record_change

from afresh.stores.cursors import check_limit, read_cursor, sort_value, write_cursor
from afresh.stores.store import EDITS_KEPT, Leases, StoredItems
from afresh.values.errors import InputError
from afresh.values.items import (
    STATUSES,
    Item,
    ItemChange,
    ItemCount,
    ItemPage,
    ItemQuery,
    ItemRef,
    NewItem,
    ids_by_key,
)
from afresh.values.lease import Lease
from afresh.values.stored import Edits

_LEASE_FIELDS_OF_ITEM = {field.name for field in fields(Lease)} & {field.name for field in fields(Item)}


class ReferenceItems(ReferenceGroup, StoredItems):
    def add(self, items: Iterable[NewItem], now_s: float) -> int:
        new = 0
        for item in items:
            with self._data:
                known = self.find([item.key], item.source)
                if not known:
                    self._add(item, now_s)
                    new += 1
                elif not item.listed:
                    self._data.records[known[0].id].listed = False
        return new

    def change(self, ids: Sequence[int], change: ItemChange) -> None:
        given = {f.name: v for f in fields(change) if (v := getattr(change, f.name)) is not None}
        if change.status == "active":
            given |= {"failures": 0, "problem": ""}
        with self._data:
            records = [self._data.records[i] for i in sorted(set(ids)) if i in self._data.records]
            changed = [replace(record.item, **given) for record in records]
            for item in changed:
                if item.min_interval_s > item.max_interval_s:
                    raise InputError(f"item {item.key!r}: min_interval_s would be more than max_interval_s")
            for record, item in zip(records, changed, strict=True):
                record.item = item
                self._data.edits.append(item.id)

    def remove(self, ids: Sequence[int], now_s: float, *, announce: bool = False) -> None:
        data = self._data
        with data:
            for item_id in sorted(set(ids) & data.records.keys()):
                record = data.records.pop(item_id)
                item = record.item
                del data.ids[item.key][item.source]
                data.notices = {key: one for key, one in data.notices.items() if one.item_id != item_id}
                data.edits.append(item_id)
                sizes = Sizes(None, record.copies[-1].version.size if record.copies else None)
                record_change(data, item, "removed", now_s, for_hooks=announce, sizes=sizes)

    def find(self, keys: Sequence[str], source: str | None = None) -> list[ItemRef]:
        with self._data:
            found = [
                ItemRef(item_id, name, key)
                for key in set(keys)
                for name, item_id in self._data.ids.get(key, {}).items()
                if source in (None, name)
            ]
        return sorted(found)

    def get(self, key: str, source: str | None = None) -> Item | None:
        with self._data:
            ids = self.ids([key], source)
            return self._data.records[ids[key]].item if ids else None

    def by_id(self, ids: Sequence[int]) -> list[Item]:
        with self._data:
            return [self._data.records[i].item for i in ids if i in self._data.records]

    def validators(self, item_id: int) -> dict[str, str]:
        with self._data:
            record = self._data.records.get(item_id)
            return dict(record.validators) if record else {}

    def ids(self, keys: Sequence[str], source: str | None = None) -> dict[str, int]:
        return ids_by_key(self.find(keys, source))

    def page(self, query: ItemQuery, limit: int, cursor: str | None = None) -> ItemPage:
        check_limit(limit)
        with self._data:
            found = [record.item for record in self._data.records.values() if _matches(record.item, query)]
        found.sort(key=lambda item: (sort_value(item, query.sort), item.id), reverse=query.descending)
        if cursor:
            place = read_cursor(cursor, query)
            places = [(sort_value(item, query.sort), item.id) for item in found]
            found = [
                item
                for item, other in zip(found, places, strict=True)
                if (other < place if query.descending else other > place)
            ]
        more = len(found) > limit
        return ItemPage(tuple(found[:limit]), write_cursor(found[limit - 1], query) if more else None)

    def due(self, now_s: float, limit: int) -> list[int]:
        with self._data:
            return [record.item.id for record in due_records(self._data, now_s)][:limit]

    def counts(self) -> list[ItemCount]:
        with self._data:
            items = [record.item for record in self._data.records.values()]
        tally = Counter((item.source, item.group, STATUSES.index(item.status)) for item in items)
        return [ItemCount(s, g, STATUSES[code], n) for (s, g, code), n in sorted(tally.items())]

    def polled_keys(self) -> dict[int, str]:
        with self._data:
            items = [record.item for record in self._data.records.values()]
        return {item.id: item.key for item in items if item.polls}

    def edits(self, after: int) -> Edits:
        with self._data:
            edits = self._data.edits
            kept = max(0, len(edits) - EDITS_KEPT)
            return Edits(len(edits), tuple(edits[max(after, kept) :]), after >= kept)

    def _add(self, new: NewItem, now_s: float) -> None:
        item_id = self._data.next_number("item")
        self._data.code(new.source)
        self._data.code(new.group)
        given = {f.name: getattr(new, f.name) for f in fields(new) if f.name != "listed"}
        past: dict[str, Any] = {"polled_s": None, "changed_s": None}
        past |= dict.fromkeys(("polls", "changes", "failures", "version"), 0)
        item = Item(id=item_id, status="active", added_s=now_s, due_s=now_s, problem="", **given, **past)
        self._data.ids.setdefault(new.key, {})[new.source] = item_id
        self._data.records[item_id] = ItemRecord(item, listed=new.listed)


class ReferenceLeases(ReferenceGroup, Leases):
    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        with self._data:
            known = [self._data.records[i] for i in dict.fromkeys(ids) if i in self._data.records]
            chosen = [r for r in known if any_status or r.item.status == "active"]
            free = [r for r in chosen if self._data.is_free(r, now_s)]
            return self._lease(sorted(free, key=_by_due), now_s, duration_s, worker)

    def read(self, ids: Sequence[int]) -> list[Lease]:
        with self._data:
            known = [self._data.records[i] for i in dict.fromkeys(ids) if i in self._data.records]
            return [record.lease for record in sorted(known, key=_by_due) if record.lease]

    def extend(self, leases: Sequence[Lease], until_s: float) -> list[int]:
        held = []
        with self._data:
            for lease in leases:
                record = self._data.records.get(lease.item_id)
                if record and record.lease and record.lease.token == lease.token:
                    record.lease = replace(record.lease, until_s=max(record.lease.until_s, until_s))
                    held.append(lease.item_id)
        return sorted(held)

    def answers(self, leases: Sequence[tuple[int, int]], since_s: float) -> dict[tuple[int, int], str]:
        with self._data:
            kept = {lease: self._data.answers[lease] for lease in leases if lease in self._data.answers}
        return {lease: answer.text for lease, answer in kept.items() if answer.time_s >= since_s}

    def release(self, leases: Sequence[Lease]) -> None:
        with self._data:
            for lease in leases:
                record = self._data.records.get(lease.item_id)
                if record and record.lease and record.lease.token == lease.token:
                    record.lease = None

    def open(self, now_s: float) -> list[tuple[int, float]]:
        with self._data:
            leases = [record.lease for record in self._data.records.values() if record.lease]
        held = [(lease.leased_s, lease.item_id) for lease in leases if lease.until_s > now_s]
        return [(item_id, leased_s) for leased_s, item_id in sorted(held)]

    def until_s(self, item_id: int, now_s: float) -> float | None:
        with self._data:
            record = self._data.records.get(item_id)
            lease = record.lease if record is not None else None
        return lease.until_s if lease is not None and lease.until_s > now_s else None

    def _lease(
        self, records: Sequence[ItemRecord], now_s: float, duration_s: float, worker: str = ""
    ) -> list[Lease]:
        token = self._data.next_number("lease")
        for record in records:
            item = record.item
            same = {name: getattr(item, name) for name in _LEASE_FIELDS_OF_ITEM}
            record.lease = Lease(
                item.id,
                token=token,
                until_s=now_s + duration_s,
                leased_s=now_s,
                validators=record.validators,
                content_hash=record.copies[-1].version.normal_hash if record.copies else None,
                belief=record.belief,
                worker=worker,
                listed=record.listed,
                **same,
            )
        return [record.lease for record in records if record.lease]


def due_records(data: ReferenceData, now_s: float) -> list[ItemRecord]:
    """Return the records of active items that are due and not leased, the longest due first."""
    records = [r for r in data.records.values() if r.item.status == "active" and r.item.due_s <= now_s]
    return sorted((record for record in records if data.is_free(record, now_s)), key=_by_due)


def _by_due(record: ItemRecord) -> tuple[float, int]:
    return record.item.due_s, record.item.id


_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)


def _matches(item: Item, query: ItemQuery) -> bool:
    return (
        query.text.translate(_LOWER) in item.key.translate(_LOWER)
        and query.status in (None, item.status)
        and query.source in (None, item.source)
        and query.group in (None, item.group)
    )
