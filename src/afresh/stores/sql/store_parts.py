"""The parts of a store that SQLite and PostgreSQL share. Each part has a ``.sql`` file per database.

A class leaves a method abstract if the two databases implement it in different ways.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import islice
from typing import Generic

import afresh.stores.store as contract
from afresh.stores.codecs import compress_text, decompress, decompress_text
from afresh.stores.object_copies import ObjectCopies, bytes_of_content
from afresh.stores.rows import Row, check_due_times, lease_from_row
from afresh.stores.shared_time import ReservationState
from afresh.stores.sql.dialect import ConnectionT, Parameters, SqlDatabase, SqlPart, T
from afresh.stores.sql.feed_part import SqlFeed
from afresh.stores.sql.links_part import SqlLinks
from afresh.stores.sql.observations import SqlObservations
from afresh.stores.sql.unnamed_objects import DELETING, refuse_deleted
from afresh.stores.sql.upkeep_part import SqlUpkeep
from afresh.values.arrays import Float64s
from afresh.values.clock import Clock
from afresh.values.lease import Lease
from afresh.values.outcome import Spent
from afresh.values.storable_text import check_storable, is_storable, replace_unstorable
from afresh.values.stored import (
    Claim,
    Copy,
    DueEvents,
    Event,
    FailedEvent,
    Ids,
    LedgerRow,
    Notice,
    RequestWindow,
    Version,
    Worker,
    minute_of,
)

_BATCH = 10_000
_LEDGER = ("minutes", "sources", "requests", "bytes", "seconds", "money")


class SqlCopies(SqlPart[ConnectionT], contract.Copies):
    """Implements ``Copies``. ``get`` raises ``StoreCorruptError`` if the content does not have its hash."""

    file = "copies"
    objects: ObjectCopies | None = None

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        found = self._fetch("get", item_id=item_id, number=number)
        if not found:
            return None
        *fields, stored = found[0]
        version = Version(*fields)
        data = bytes_of_content(stored, version.hash, self.objects, self._database.name)
        return Copy(version, decompress(data, version.size, version.hash, self._database.name))

    def versions(self, item_id: int) -> list[Version]:
        return [Version(*row) for row in self._fetch("versions", item_id=item_id)]

    def text(self, content_hash: bytes, form: str) -> str | None:
        found = self._fetch("text", hash=content_hash, form=form)
        return decompress_text(found[0][0], self._database.name) if found else None

    def save_text(self, content_hash: bytes, form: str, text: str) -> None:
        data = compress_text(text)
        self._execute("save_text", durable=False, hash=content_hash, form=form, data=data)


class SqlEvents(SqlPart[ConnectionT], contract.Events):
    file = "events"

    def due(self, now_s: float) -> dict[str, DueEvents]:
        ((last, told),) = self._fetch("unqueued")
        if told < last:
            self._database.write(self._queue)
        return {source: DueEvents(*found) for source, *found in self._fetch("due", now_s=now_s)}

    def take(self, now_s: float, limit: int, retry_s: float, source: str | None = None) -> list[Event]:
        given = {"now_s": now_s, "until_s": now_s + retry_s, "limit": limit, "source": source}

        def work(connection: ConnectionT) -> list[Row]:
            self._queue(connection)
            return self._rows(connection, "take", given)

        found = self._database.write(work)
        return [Event(*row) for row in sorted(found)]  # RETURNING has no order; the first column is the id

    def done(self, ids: Sequence[int]) -> None:
        self._execute("done", ids=self._database.as_list(ids))

    def defer(self, ids: Sequence[int], until_s: float, problem: str = "") -> None:
        words = replace_unstorable(problem)
        self._execute("defer", ids=self._database.as_list(ids), until_s=until_s, problem=words)

    def put_back(self, ids: Sequence[int], until_s: float) -> None:
        self._execute("put_back", ids=self._database.as_list(ids), until_s=until_s)

    def waiting(self) -> int:
        return int(self._fetch("waiting")[0][0])

    def failed(self, limit: int) -> list[FailedEvent]:
        return [FailedEvent(Event(*row[:8]), *row[8:]) for row in self._fetch("failed", limit=limit)]

    def given_up(self) -> int:
        return int(self._fetch("given_up")[0][0])

    def retry(self, now_s: float, ids: Sequence[int] | None = None) -> int:
        if ids is None:
            return len(self._execute("retry_all", now_s=now_s))
        return len(self._execute("retry", now_s=now_s, ids=self._database.as_list(ids)))

    def retell(self, after: int, source: str) -> int:
        def work(connection: ConnectionT) -> int:
            upto = self._queue(connection)
            given = {"after": after, "upto": upto, "source": source}
            return len(self._rows(connection, "retell", given))

        return self._database.write(work)

    def _queue(self, connection: ConnectionT) -> int:
        """Queue the changes that the feed has for hooks since the last time; return the last number of the
        feed. Only one worker at a time does so."""
        self._rows(connection, "lock", {})
        ((last, told),) = self._rows(connection, "unqueued", {})
        if told < last:
            self._rows(connection, "queue", {"after": told, "upto": last})
            self._rows(connection, "queued", {"upto": last})
        return int(last)


class SqlNotices(SqlPart[ConnectionT], contract.StoredNotices):
    file = "notices"

    def add(self, ids: Sequence[int], time_s: float | Sequence[float], origin: str = "") -> None:
        database = self._database
        times = time_s if isinstance(time_s, Sequence) else [time_s] * len(ids)

        def work(connection: ConnectionT) -> None:
            known = self._rows(connection, "known", {"ids": database.as_list(ids)})
            if known:
                last = database.take_numbers(connection, "notice", len(known))
                numbers = range(last - len(known) + 1, last + 1)
                table = [
                    (number, item_id, times[place], origin)
                    for number, (place, item_id) in zip(numbers, known, strict=True)
                ]
                columns = ("numbers", "ids", "times", "origins")
                database.run_many(connection, self._sql["add"], columns, table)

        database.write(work)

    def open(self, after: int = 0) -> list[Notice]:
        return [Notice(*row) for row in self._fetch("open", after=after)]


class SqlLedger(SqlPart[ConnectionT], contract.Ledger):
    file = "ledger"

    def add(self, source: str, time_s: float, spent: Spent) -> None:
        def work(connection: ConnectionT) -> None:
            self.add_rows(connection, self.as_rows(connection, {(minute_of(time_s), source): spent}))

        self._database.write(work)

    def total(self, since_s: float, until_s: float) -> Spent:
        (row,) = self._fetch("total", since=since_s / 60.0, until=until_s / 60.0)
        return Spent(*row)

    def rows(self, since_s: float, until_s: float) -> list[LedgerRow]:
        found = self._fetch("rows", since=since_s / 60.0, until=until_s / 60.0)
        return [LedgerRow(minute * 60.0, source, Spent(*spent)) for minute, source, *spent in found]

    def forget(self, before_s: float) -> None:
        self._execute("forget", before=before_s / 60.0)

    def as_rows(self, connection: ConnectionT, spending: Mapping[tuple[int, str], Spent]) -> list[Row]:
        """Return ``spending``, which is by (minute since 1970, source), as database rows of the ledger."""
        ids = self._database.name_ids(connection, {source for _, source in spending})
        return [
            (minute, ids[source], spent.requests, spent.bytes, spent.seconds, spent.money)
            for (minute, source), spent in sorted(spending.items(), key=lambda entry: entry[0])
        ]

    def add_rows(self, connection: ConnectionT, table: Sequence[Row]) -> None:
        """Add the amounts of these rows to those that the ledger has for the same minute and source."""
        self._database.run_many(connection, self._sql["add"], _LEDGER, table)


class SqlState(SqlPart[ConnectionT], contract.State):
    file = "state"

    def get(self, name: str) -> bytes | None:
        found = self._fetch("get", name=name)
        return found[0][0] if found else None

    def get_in_transaction(self, connection: ConnectionT, name: str) -> bytes | None:
        """Return a value as the transaction of ``connection`` sees it now."""
        found = self._rows(connection, "get", {"name": name})
        return bytes(found[0][0]) if found else None

    def set(self, values: Mapping[str, bytes | None]) -> None:
        self._database.write(lambda connection: self.set_in_transaction(connection, values))

    def replace(self, name: str, before: bytes | None, after: bytes) -> bool:
        if before is None:
            return bool(self._execute("begin", name=name, after=after))
        return bool(self._execute("replace", name=name, before=before, after=after))

    def names(self) -> list[str]:
        return [name for (name,) in self._fetch("names")]

    def set_in_transaction(self, connection: ConnectionT, values: Mapping[str, bytes | None]) -> None:
        """Set each of these values, or drop it if it is None, in the transaction of ``connection``."""
        # All writers write names in the same order, so that two writers cannot deadlock.
        kept = sorted((name, data) for name, data in values.items() if data is not None)
        dropped = sorted((name,) for name, data in values.items() if data is None)
        self._database.run_many(connection, self._sql["set"], ("names", "data"), kept)
        self._database.run_many(connection, self._sql["drop"], ("names",), dropped)


class SqlLeases(SqlPart[ConnectionT], contract.Leases):
    """Implements ``Leases``, except how a database chooses and locks items."""

    file = "leases"

    def take(
        self,
        ids: Sequence[int],
        now_s: float,
        duration_s: float,
        *,
        any_status: bool = False,
        worker: str = "",
    ) -> list[Lease]:
        given = {"ids": self._database.as_list(ids), "any_status": any_status, "worker": worker}
        return self._take({**given, "now_s": now_s, "until_s": now_s + duration_s})

    def read(self, ids: Sequence[int]) -> list[Lease]:
        found = self._fetch("read", ids=self._database.as_list(ids))
        return [lease_from_row(row) for row in found]

    def extend(self, leases: Sequence[Lease], until_s: float) -> list[int]:
        given = self._pairs([(lease.item_id, lease.token) for lease in leases])
        found = self._execute("extend", durable=False, **given, until_s=until_s)
        return sorted(item_id for (item_id,) in found)

    def answers(self, leases: Sequence[tuple[int, int]], since_s: float) -> dict[tuple[int, int], str]:
        found = self._fetch("answers", **self._pairs(leases), since_s=since_s)
        return {(item_id, token): text for item_id, token, text in found}

    def _pairs(self, pairs: Sequence[tuple[int, int]]) -> dict[str, object]:
        """Return the parameters of a statement that takes tuples (item id, token)."""
        columns = {"ids": [item_id for item_id, _ in pairs], "tokens": [token for _, token in pairs]}
        return {name: self._database.as_list(values) for name, values in columns.items()}

    def release(self, leases: Sequence[Lease]) -> None:
        table = [(lease.item_id, lease.token) for lease in leases]

        def work(connection: ConnectionT) -> None:
            self._database.run_many(connection, self._sql["release"], ("ids", "tokens"), table)

        self._database.write(work, durable=False)

    def open(self, now_s: float) -> list[tuple[int, float]]:
        return [(item_id, leased_s) for item_id, leased_s in self._fetch("open", now_s=now_s)]

    def until_s(self, item_id: int, now_s: float) -> float | None:
        found = self._fetch("until", item_id=item_id, now_s=now_s)
        return float(found[0][0]) if found else None

    @abstractmethod
    def _take(self, given: Parameters) -> list[Lease]:
        """Lease the items that the statement ``take`` chooses, with a larger token than earlier leases."""


class SqlPlan(SqlPart[ConnectionT], contract.Plan):
    """Implements ``Plan``, except ``columns`` and ``columns_of``."""

    file = "plan"

    def names(self) -> dict[int, str]:
        return dict(self._fetch("names"))

    def save(self, ids: Ids, due_s: Float64s, beliefs: Sequence[bytes] | None = None) -> None:
        check_due_times(ids, due_s)
        kept = [None] * len(ids) if beliefs is None else beliefs
        rows = zip(due_s.tolist(), kept, ids.tolist(), strict=True)
        while batch := list(islice(rows, _BATCH)):
            self._database.write(partial(self._save_batch, batch=batch))

    def _save_batch(self, connection: ConnectionT, batch: list[Row]) -> None:
        self._database.lock_states(connection, [row[2] for row in batch])
        self._database.run_many(connection, self._sql["save"], ("due", "beliefs", "ids"), batch)


class SqlFleet(SqlPart[ConnectionT], contract.Fleet):
    """Implements ``Fleet`` for a database on the same machine as the workers, with the same clock."""

    file = "fleet"

    def beat(self, worker: Worker) -> None:
        check_storable("a worker's name", [worker.name, worker.host])
        self._execute("beat", durable=False, **asdict(worker))

    def leave(self, worker: str) -> None:
        def work(connection: ConnectionT) -> None:
            for name in ("leave", "drop_claims", "drop_leases"):
                self._rows(connection, name, {"worker": worker})

        self._database.write(work)

    def workers(self, since_s: float) -> list[Worker]:
        return [Worker(*row) for row in self._fetch("workers", since=since_s)]

    def take(self, names: Sequence[str], worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        check_storable("a claim's name", [*names, worker])
        wanted = list(dict.fromkeys(names))
        listed = self._database.as_list(wanted)
        held = self._write_claims(
            "take", names=listed, worker=worker, until_s=now_s + duration_s, now_s=now_s
        )
        return tuple(name for name in wanted if name in held)

    def renew(self, worker: str, now_s: float, duration_s: float) -> tuple[str, ...]:
        return tuple(sorted(self._write_claims("renew", worker=worker, until_s=now_s + duration_s)))

    def release(self, names: Sequence[str], worker: str) -> None:
        wanted = self._database.as_list([name for name in names if is_storable(name)])
        self._execute("release", durable=False, worker=worker, names=wanted)

    def claims(self, now_s: float) -> list[Claim]:
        return [Claim(*row) for row in self._fetch("claims", now_s=now_s)]

    def reserve(
        self, count: int, spacing_s: float, slack_s: float, now_s: float, late_s: float = 0.0
    ) -> RequestWindow:
        return self._update(lambda state: state.reserve(count, spacing_s, slack_s, now_s, late_s))

    def give_back(self, until_s: float, last_s: float) -> None:
        self._update(lambda state: (None, state.give_back(until_s, last_s)))

    def next_slot_s(self, spacing_s: float, now_s: float, late_s: float) -> float:
        (row,) = self._fetch("read_pace")
        return ReservationState(*row).next_slot_s(spacing_s, now_s, late_s)

    def owe(self, owed_s: float, now_s: float) -> float:
        def owe(state: ReservationState) -> tuple[float, ReservationState]:
            after = state.owe(owed_s, now_s)
            return after.debt_s, after

        return self._update(owe)

    @property
    def has_own_clock(self) -> bool:
        return False

    def ahead_s(self, clock: Clock) -> float:
        del clock
        return 0.0

    def _write_claims(self, name: str, **given: object) -> set[str]:
        durable = self._database.crashes_alone
        return {claim for (claim,) in self._execute(name, durable=durable, **given)}

    def _update(self, change: Callable[[ReservationState], tuple[T, ReservationState]]) -> T:
        """Call ``change``, which returns (result, new reservations). Save the latter, return the former."""

        def work(connection: ConnectionT) -> T:
            (row,) = self._rows(connection, "pace", {})
            result, after = change(ReservationState(*row))
            self._rows(connection, "keep_pace", asdict(after))
            return result

        return self._database.write(work)


class SqlStore(contract.ClosedOnExit, Generic[ConnectionT]):
    """A store with the parts that both databases share. A subclass adds the parts for its database."""

    upkeep: SqlUpkeep[ConnectionT]
    feed: SqlFeed[ConnectionT]

    def __init__(self, database: SqlDatabase[ConnectionT], retention: contract.Retention) -> None:
        self.database, self.retention = database, retention
        self.copies = SqlCopies(database)
        self.observations = SqlObservations(database, retention)
        self.events = SqlEvents(database)
        self.notices = SqlNotices(database)
        self.links = SqlLinks(database)
        self.ledger = SqlLedger(database)
        self.state = SqlState(database)
        self.objects: ObjectCopies | None = None

    def keep_copies_in(self, objects: ObjectCopies) -> None:
        """Write new copies to these objects, and read there those that the database does not have."""
        self.objects = self.copies.objects = self.upkeep.objects = objects
        self.upkeep.state = self.state

    def refuse_deleted(self, connection: ConnectionT, digests: Sequence[bytes]) -> None:
        """Raise ``StoreLockedError`` in a commit of contents whose objects are being deleted."""
        if self.objects is not None and digests:
            refuse_deleted(self.state.get_in_transaction(connection, DELETING), digests)

    def close(self) -> None:
        self.database.close()
