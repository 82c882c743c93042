"""A store in Python's own dictionaries, so simple that it shows what the databases must answer."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from tests.stores.reference.data import ItemRecord, ReferenceData, ReferenceGroup
from tests.stores.reference.feed import ReferenceFeed, Sizes, record_change
from tests.stores.reference.item_history import (
    ReferenceCopies,
    ReferenceObservations,
    ReferencePlan,
    keep_observation,
)
from tests.stores.reference.page_links import ReferenceLinks
from tests.stores.reference.queues import (
    ReferenceEvents,
    ReferenceFleet,
    ReferenceLedger,
    ReferenceNotices,
    ReferenceState,
)
from tests.stores.reference.stored_items import ReferenceItems, ReferenceLeases

from afresh.stores.codecs import content_hash
from afresh.stores.store import ClosedOnExit, Retention, Upkeep
from afresh.values.errors import StoreError
from afresh.values.outcome import NewCopy, Outcome, Refusal
from afresh.values.storable_text import replace_unstorable
from afresh.values.stored import Copy, StoreStats, Version


class ReferenceStore(ClosedOnExit):
    """Implements ``Store`` in memory: its content is gone when the process ends.

    >>> from afresh.values.items import NewItem
    >>> with ReferenceStore() as store:
    ...     store.items.add([NewItem("https://example.org/", "web", "example.org")], now_s=0.0)
    1
    """

    def __init__(self, *, retention: Retention | None = None) -> None:
        self._data = ReferenceData()
        self._retention = retention or Retention()
        self.items = ReferenceItems(self._data)
        self.leases = ReferenceLeases(self._data)
        self.copies = ReferenceCopies(self._data)
        self.plan = ReferencePlan(self._data)
        self.observations = ReferenceObservations(self._data, self._retention)
        self.feed = ReferenceFeed(self._data)
        self.events = ReferenceEvents(self._data)
        self.links = ReferenceLinks(self._data)
        self.notices = ReferenceNotices(self._data)
        self.ledger = ReferenceLedger(self._data)
        self.state = ReferenceState(self._data)
        self.fleet = ReferenceFleet(self._data)
        self.upkeep = ReferenceUpkeep(self._data)

    def commit(
        self, outcomes: Sequence[Outcome], state: Mapping[str, bytes | None] | None = None
    ) -> list[Refusal]:
        refused = []
        with self._data:
            for outcome in outcomes:
                lease = outcome.lease
                record = self._data.records.get(lease.item_id)
                if record is None:
                    refused.append(Refusal(lease.item_id, "removed"))
                elif record.lease is None or record.lease.token != lease.token:
                    refused.append(Refusal(lease.item_id, "lost"))
                else:
                    self._commit(record, outcome)
                self.ledger.add(lease.source, outcome.time_s, outcome.spent)
            self.state.set(state or {})
        return refused

    def close(self) -> None:
        with self._data.lock:
            self._data.closed = True

    def _commit(self, record: ItemRecord, outcome: Outcome) -> None:
        data, item, seen = self._data, record.item, outcome.observation
        record.lease = None
        before = record.copies[-1].version.size if record.copies else None
        if outcome.new_copy is not None:
            self._keep_copy(record, outcome.new_copy, outcome.time_s)
        if seen is not None:
            keep_observation(data, record, seen, self._retention)
        record.belief = record.belief if outcome.belief is None else outcome.belief
        record.validators = record.validators if outcome.validators is None else dict(outcome.validators)
        record.item = replace(
            item,
            due_s=outcome.due_s,
            status="paused" if item.status == "paused" else outcome.status,
            failures=outcome.failures,
            problem=replace_unstorable(outcome.problem),
            polls=item.polls + 1,
            changes=item.changes + (seen is not None and seen.changed),
            polled_s=item.polled_s if seen is None else seen.time_s,
            changed_s=seen.time_s if seen is not None and seen.changed else item.changed_s,
            version=record.copies[-1].version.number if record.copies else 0,
        )
        for key, notice in list(data.notices.items()):
            if notice.item_id == item.id and notice.time_s <= outcome.lease.leased_s:
                del data.notices[key]
        if outcome.links is not None:
            self.links.keep(item.id, outcome.links)
        if outcome.answer is not None:
            data.answers.setdefault((item.id, outcome.lease.token), outcome.answer)
        if outcome.event is not None:
            now = len(outcome.new_copy.content) if outcome.new_copy is not None else before
            is_there = outcome.event in ("new", "changed")
            share = None if outcome.new_copy is None else outcome.new_copy.change_size
            sizes = Sizes(now if is_there else None, None if outcome.event == "new" else before, share)
            changed_s = None if seen is None else seen.modified_s
            given: Any = {"for_hooks": outcome.for_hooks, "sizes": sizes, "changed_s": changed_s}
            record_change(data, record.item, outcome.event, outcome.time_s, **given)

    def _keep_copy(self, record: ItemRecord, new: NewCopy, time_s: float) -> None:
        media_type = replace_unstorable(new.media_type)
        newest = record.copies[-1] if record.copies else None
        if newest is not None and newest.content == new.content:
            same = replace(newest.version, media_type=media_type, normal_hash=new.normal_hash)
            record.copies[-1] = Copy(same, new.content)
            return
        number = newest.version.number + 1 if newest else 1
        digest = content_hash(new.content)
        version = Version(
            record.item.id,
            number,
            time_s,
            media_type,
            len(new.content),
            digest,
            new.normal_hash,
            new.change_size,
        )
        record.copies.append(Copy(version, new.content))
        del record.copies[: -self._retention.versions]


class ReferenceUpkeep(ReferenceGroup, Upkeep):
    def check(self, sample: int | None = None) -> list[str]:
        del sample
        with self._data:
            copies = [copy for record in self._data.records.values() for copy in record.copies]
        wrong = [copy for copy in copies if content_hash(copy.content) != copy.version.hash]
        return [f"content {copy.version.hash.hex()[:16]} is not what was stored" for copy in wrong]

    def vacuum(self) -> None:
        """Do nothing: there is nothing to give back."""

    def backup(self, target: Path) -> None:
        raise StoreError(f"a store in memory has no file to copy to {target}: use a store of SQLite")

    def used_bytes(self) -> int:
        return self.stats().stored_bytes

    def drop_old_versions(self, wanted_bytes: int) -> int:
        dropped = freed = 0
        with self._data:
            records = list(self._data.records.values())
            old = [copy.version for record in records for copy in record.copies[:-1]]
            for version in sorted(old, key=lambda each: (each.time_s, each.item_id, each.number)):
                if freed >= wanted_bytes:
                    break
                record = self._data.records[version.item_id]
                record.copies = [copy for copy in record.copies if copy.version.number != version.number]
                dropped, freed = dropped + 1, freed + version.size
        return dropped

    def stats(self) -> StoreStats:
        with self._data:
            records = list(self._data.records.values())
            contents = {copy.version.hash: copy.content for record in records for copy in record.copies}
            size = sum(map(len, contents.values()))
            return StoreStats(
                items=len(records),
                leases=sum(record.lease is not None for record in records),
                versions=sum(len(record.copies) for record in records),
                contents=len(contents),
                content_bytes=size,
                stored_bytes=size,
                events=sum(due_s < math.inf for due_s, _ in self._data.events.values()),
                notices=len(self._data.notices),
                file_bytes=0,
                free_bytes=0,
            )
