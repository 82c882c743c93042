"""The databases against the reference in memory: any sequence of calls gives the same answers."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test
from tests.stores.backends import belief_of, schema_url
from tests.stores.reference.store import ReferenceStore

from afresh.stores.postgres.store import PostgresStore
from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention, Store
from afresh.values.changes import read_feed_cursor
from afresh.values.errors import CursorError
from afresh.values.items import SORTS, STATUSES, ItemChange, ItemQuery, NewItem, Sort, Status
from afresh.values.lease import Lease
from afresh.values.outcome import EVENT_KINDS, EventKind, NewCopy, Observation, Outcome, Spent

RETENTION = Retention(versions=2, observations=5, audits=4)
keys = st.sampled_from([f"k{number}" for number in range(6)])
ids = st.integers(1, 8)
sources = st.sampled_from([None, "web", "feed"])
numbers = st.integers(0, 9).map(float)
contents = st.none() | st.sampled_from([b"", b"a", b"b", b"c" * 9000])


class Agreement(RuleBasedStateMachine):
    """Both stores do everything; time only passes."""

    def __init__(self, make: Callable[[Path], Store]) -> None:
        """Two empty stores."""
        super().__init__()
        self.folder = tempfile.TemporaryDirectory()
        self.reference = ReferenceStore(retention=RETENTION)
        self.other = make(Path(self.folder.name))
        self.now_s = 1000.0
        self.leases: list[tuple[Lease, Lease]] = []

    def both(self, call: Callable[..., Any], *given: Any) -> Any:
        """What both answer."""
        expected, got = call(self.reference, *given), call(self.other, *given)
        assert got == expected
        return got

    def lend(self, call: Callable[[Store], list[Lease]]) -> None:
        """The same leases of both; their tokens are each store's own business."""
        expected, got = call(self.reference), call(self.other)
        assert [replace(lease, token=0) for lease in got] == [replace(lease, token=0) for lease in expected]
        self.leases += zip(expected, got, strict=True)

    @rule(names=st.lists(keys, max_size=4), source=st.sampled_from(["web", "feed"]), weight=numbers)
    def add(self, names: list[str], source: str, weight: float) -> None:
        """Register."""
        items = [NewItem(key, source, f"group of {key}", weight) for key in names]
        self.both(lambda store: store.items.add(items, self.now_s))

    @rule(
        names=st.lists(keys, max_size=3),
        source=sources,
        weight=st.none() | numbers,
        status=st.none() | st.sampled_from(STATUSES),
    )
    def change(
        self, names: list[str], source: str | None, weight: float | None, status: Status | None
    ) -> None:
        """Change."""
        found = self.both(lambda store: store.items.find(names, source))
        change, ids = ItemChange(weight=weight, status=status), [item.id for item in found]
        self.both(lambda store: store.items.change(ids, change))

    @rule(names=st.lists(keys, max_size=2), source=sources, announce=st.booleans())
    def remove(self, names: list[str], source: str | None, announce: bool) -> None:
        """Remove."""
        ids = [item.id for item in self.both(lambda store: store.items.find(names, source))]
        self.both(lambda store: store.items.remove(ids, self.now_s, announce=announce))

    @rule(seconds=st.integers(1, 80))
    def wait(self, seconds: int) -> None:
        """Let time pass; leases of 50 s run out."""
        self.now_s += seconds

    @rule(limit=st.integers(0, 4))
    def lease_due(self, limit: int) -> None:
        """Lease what is due."""
        self.lend(lambda store: store.leases.take(store.items.due(self.now_s, limit), self.now_s, 50.0))

    @rule(wanted=st.lists(ids, max_size=4), any_status=st.booleans(), worker=st.sampled_from(["", "one"]))
    def lease(self, wanted: list[int], any_status: bool, worker: str) -> None:
        """Lease some."""
        self.lend(
            lambda store: store.leases.take(wanted, self.now_s, 50.0, any_status=any_status, worker=worker)
        )

    @rule()
    def leave(self) -> None:
        """A worker leaves what it was polling."""
        self.both(lambda store: store.fleet.leave("one"))

    @rule(data=st.data())
    def release(self, data: st.DataObject) -> None:
        """Give some back, perhaps for the second time."""
        chosen = data.draw(st.lists(st.sampled_from(self.leases), max_size=2)) if self.leases else []
        self.both(lambda store: store.leases.release([pair[store is self.other] for pair in chosen]))

    @rule(
        data=st.data(),
        content=contents,
        changed=st.none() | st.booleans(),
        audit=st.booleans(),
        status=st.sampled_from(STATUSES),
        event=st.none() | st.sampled_from(EVENT_KINDS),
        delay=st.sampled_from([0.0, 30.0, math.inf]),
    )
    def commit(
        self,
        data: st.DataObject,
        content: bytes | None,
        changed: bool | None,
        audit: bool,
        status: Status,
        event: EventKind | None,
        delay: float,
    ) -> None:
        """Commit some, some of them lost or committed before."""
        chosen = data.draw(st.lists(st.sampled_from(self.leases), max_size=4)) if self.leases else []
        outcomes: tuple[list[Outcome], list[Outcome]] = ([], [])
        placed = [(place, side, pair[side]) for place, pair in enumerate(chosen) for side in (0, 1)]
        for place, side, lease in placed:
            known = None if changed is None else self.observation(lease, changed, audit)
            copy = None if content is None else NewCopy(content, f"type/{place % 2}", b"n" + content[:3])
            outcomes[side].append(
                Outcome(
                    lease, self.now_s, self.now_s + delay, known, copy,
                    None if changed is None else {"etag": str(place)}, None if audit else bytes([place]),
                    status, place, "x" * place, Spent(place, 1, 0.5, 0.25), event,
                )
            )  # fmt: skip
        state = {"now": str(self.now_s).encode()}
        self.both(lambda store: store.commit(outcomes[store is self.other], state))

    def observation(self, lease: Lease, changed: bool, audit: bool) -> Observation:
        """What a poll told."""
        elapsed = 0.0 if lease.polled_s is None else self.now_s - lease.polled_s
        return Observation(lease.item_id, self.now_s, elapsed, changed, self.now_s - 2.5, int(changed), audit)

    @rule(wanted=st.lists(ids, max_size=3), back=numbers, origin=st.sampled_from(["feed", "sitemap"]))
    def notice(self, wanted: list[int], back: float, origin: str) -> None:
        """Hint, each with a time of its own."""
        times = [self.now_s - back + place for place, _ in enumerate(wanted)]
        self.both(lambda store: store.notices.add(wanted, times, origin))

    @rule(limit=st.integers(0, 3), finish=st.booleans())
    def deliver(self, limit: int, finish: bool) -> None:
        """Take events and finish them, or not."""
        taken = self.both(lambda store: store.events.take(self.now_s, limit, 20.0))
        numbers = [event.id for event in taken]
        if finish:
            self.both(lambda store: store.events.done(numbers))
        else:
            self.both(lambda store: store.events.defer(numbers[:1], self.now_s + 5.0))

    @rule(limit=st.integers(1, 3), source=sources)
    def follow(self, limit: int, source: str | None) -> None:
        """Follow the feed from where the consumer stopped."""
        self.both(lambda store: follow(store, limit, source, self.now_s))

    @rule(seconds=st.integers(0, 200))
    def trim(self, seconds: int) -> None:
        """Drop old changes; those that hooks wait for stay in the databases, so all are queued before."""
        self.both(lambda store: store.events.take(self.now_s, 0, 20.0))
        self.both(lambda store: store.feed.trim(self.now_s - seconds))

    @rule(wanted=st.lists(ids, max_size=3, unique=True), due=numbers, believe=st.booleans())
    def save(self, wanted: list[int], due: float, believe: bool) -> None:
        """Save a plan."""
        beliefs = [bytes([item_id] * item_id) for item_id in wanted] if believe else None
        due_s = np.full(len(wanted), self.now_s + due)
        self.both(lambda store: store.plan.save(np.array(wanted, dtype=np.int64), due_s, beliefs))

    @rule(sort=st.sampled_from(SORTS), descending=st.booleans(), limit=st.integers(1, 3))
    def page(self, sort: Sort, descending: bool, limit: int) -> None:
        """List, page by page."""
        query = ItemQuery(sort=sort, descending=descending)
        cursor = None
        while True:
            page = self.both(lambda store, place: store.items.page(query, limit, place), cursor)
            cursor = page.cursor
            if cursor is None:
                break

    @invariant()
    def same_answers(self) -> None:
        """Everything that can be asked for is answered alike."""
        for question in QUESTIONS:
            self.both(question, self.now_s)
        for item in self.both(lambda store: store.items.by_id(range(1, 40))):
            self.both(lambda store, item_id: store.copies.get(item_id), item.id)
            self.both(lambda store, item_id: store.copies.versions(item_id), item.id)
            self.both(newest_observations, item.id)

    def teardown(self) -> None:
        """Both are sound at the end."""
        assert self.both(lambda store: store.upkeep.check()) == []
        self.other.close()
        self.folder.cleanup()


def plan_of(store: Store) -> list[list[Any]]:
    """The policy's columns with names for codes."""
    names, found = store.plan.names(), []
    for batch in store.plan.columns(batch=2):
        for row in range(batch.id.size):
            values = [float(getattr(batch, name)[row]) for name in ("weight", "due_s", "polled_s")]
            codes = [names[int(batch.source[row])], names[int(batch.group[row])]]
            found.append(
                [int(batch.id[row]), belief_of(batch, row), int(batch.status[row]), *codes, *map(str, values)]
            )
    return found


def newest_observations(store: Store, item_id: int) -> list[Sequence[Any]]:
    """As many as every store must keep."""
    rows: list[Sequence[Any]] = []
    for found in store.observations.read([item_id]):
        rows += zip(found.time_s, found.elapsed_s, found.changed, found.modified_s, found.count, strict=True)
    return rows[-RETENTION.observations :]


def feed_of(store: Store) -> list[Any]:
    """The whole feed, with numbers for cursors: every store has an epoch of its own."""
    page = store.feed.read(limit=10_000)
    rows = [entry._replace(cursor=number_of(entry.cursor)) for entry in page.entries]
    return [rows, number_of(page.cursor), number_of(store.feed.cursor()), number_of(store.feed.start())]


def follow(store: Store, limit: int, source: str | None, now_s: float) -> list[Any]:
    """Read the next page of a consumer and save its place; start again if the cursor is too old."""
    places = {consumer.name: consumer for consumer in store.feed.consumers()}
    try:
        page = store.feed.read(places["one"].cursor if places else None, limit, source)
    except CursorError as error:
        return [str(error), store.feed.drop("one")]
    store.feed.move("one", page.cursor, now_s, source or "")
    (consumer,) = store.feed.consumers()
    numbers = [number_of(entry.cursor) for entry in page.entries]
    return [numbers, page.is_last, replace(consumer, cursor=number_of(consumer.cursor))]


def number_of(cursor: str) -> str:
    return str(read_feed_cursor(cursor).number)


def audits_of(store: Store) -> list[Sequence[Any]]:
    """The audits in order."""
    found = store.observations.audits(0.0)
    return list(zip(found.item_id, found.time_s, found.elapsed_s, found.changed, strict=True))


def edits_of(store: Store) -> tuple[int, list[int]]:
    """The edits; within one call their order is free."""
    edits = store.items.edits(0)
    return edits.number, sorted(edits.item_ids)


QUESTIONS: tuple[Callable[[Store, float], Any], ...] = (
    lambda store, _: store.items.counts(),
    lambda store, now_s: store.items.due(now_s, 9),
    lambda store, _: store.items.polled_keys(),
    lambda store, now_s: store.leases.open(now_s),
    lambda store, now_s: [store.leases.until_s(item_id, now_s) for item_id in range(1, 20)],
    lambda store, _: store.notices.open(),
    lambda store, _: store.events.waiting(),
    lambda store, _: feed_of(store),
    lambda store, _: store.ledger.rows(0.0, 1e9),
    lambda store, _: store.state.get("now"),
    lambda store, _: plan_of(store),
    lambda store, _: audits_of(store),
    lambda store, _: edits_of(store),
    lambda store, _: (
        store.upkeep.stats().contents,
        store.upkeep.stats().versions,
        store.upkeep.stats().leases,
    ),
)


def compare(make: Callable[[Path], Store], **chosen: Any) -> None:
    """Any sequence of calls on both."""

    class Compared(Agreement):
        """Makes its stores itself."""

        def __init__(self) -> None:
            super().__init__(make)

    run_state_machine_as_test(Compared, settings=settings(deadline=None, **chosen))


def test_sqlite_agrees() -> None:
    compare(
        lambda folder: SqliteStore(folder / "store.db", retention=RETENTION),
        max_examples=12,
        stateful_step_count=30,
    )


def test_postgresql_agrees(postgres_url: str) -> None:
    compare(
        lambda folder: PostgresStore(schema_url(postgres_url, folder), retention=RETENTION),
        max_examples=6,
        stateful_step_count=20,
        phases=[Phase.generate],  # every example makes a schema: no thousands for the shortest failure
    )
