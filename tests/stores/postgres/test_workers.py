"""Several workers, each with connections of its own, on one PostgreSQL."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from pathlib import Path

from tests.stores.backends import copy_of, ids_of, new_items, schema_url, seen

from afresh.stores.postgres.store import PostgresStore
from afresh.stores.store import Retention
from afresh.values.changes import FeedEntry, read_feed_cursor
from afresh.values.items import ItemChange
from afresh.values.outcome import Spent
from afresh.values.stored import RequestWindow

WORKERS = 4
RETENTION = Retention(versions=1)


def test_workers_never_poll_an_item_twice_at_once_and_lose_nothing(postgres_url: str, tmp_path: Path) -> None:
    url = schema_url(postgres_url, tmp_path)
    with PostgresStore(url) as store:
        store.items.add(new_items(120), 0.0)

    def work(number: int) -> list[int]:
        polled: list[int] = []
        with PostgresStore(url, retention=RETENTION, timeout_s=60.0) as store:
            for turn in range(3):
                now_s = 10.0 * (turn + 1)
                # Every item is due once a turn; contents are few, so that workers meet on them.
                while due := store.items.due(now_s, 7):
                    taken = store.leases.take(due, now_s, 1e6)
                    # Another worker may have polled an item since it was found to be due.
                    store.leases.release([lease for lease in taken if lease.polled_s == now_s])
                    leases = [lease for lease in taken if lease.polled_s != now_s]
                    outcomes = [
                        seen(
                            lease,
                            now_s,
                            changed=True,
                            due_s=now_s + 5.0,
                            new_copy=copy_of(bytes([(lease.item_id + turn) % 5]) * 50),
                            spent=Spent(1),
                            event="changed",
                            status="gone" if turn == 2 else "active",
                        )
                        for lease in leases
                    ]
                    assert store.commit(outcomes, {f"worker {number}": b"x"}) == []
                    polled += [lease.item_id for lease in leases]
        return polled

    with ThreadPoolExecutor(WORKERS) as pool:
        done = Counter(item_id for ids in pool.map(work, range(WORKERS)) for item_id in ids)
    with PostgresStore(url) as store:
        assert store.upkeep.check() == []
        polls = {item.id: item.polls for item in store.items.by_id(range(1, 121))}
        assert polls == done
        # A worker that is ahead polls for the turn of one that lags, never twice for the same.
        assert all(1 <= number <= 3 for number in polls.values())
        assert store.ledger.total(0.0, 60.0).requests == store.events.waiting() == sum(polls.values())
        assert store.upkeep.stats().contents <= 5
        assert store.leases.open(30.0) == []


def test_edits_of_many_are_seen_by_one_who_follows(postgres_url: str, tmp_path: Path) -> None:
    url = schema_url(postgres_url, tmp_path)
    with PostgresStore(url) as store:
        store.items.add(new_items(40), 0.0)

        def edit(number: int) -> None:
            with PostgresStore(url, timeout_s=60.0) as mine:
                for item in range(number, 40, WORKERS):
                    mine.items.change(ids_of(mine, [f"k{item}"]), ItemChange(weight=2.0))

        found: list[int] = []
        last = 0
        with ThreadPoolExecutor(WORKERS) as pool:
            working = [pool.submit(edit, number) for number in range(WORKERS)]
            while True:
                over = all(future.done() for future in working)
                edits = store.items.edits(last)
                assert edits.complete
                found += edits.item_ids
                last = edits.number
                if over:
                    break
            for future in working:
                future.result()
    assert sorted(found) == list(range(1, 41))


def test_windows_of_many_workers_keep_their_distance(postgres_url: str, tmp_path: Path) -> None:
    url = schema_url(postgres_url, tmp_path)
    PostgresStore(url).close()

    def reserve(number: int) -> list[RequestWindow]:
        with PostgresStore(url, timeout_s=60.0) as store:
            return [store.fleet.reserve(2, 0.5, 0.1, 10.0 + number) for _ in range(15)]

    with ThreadPoolExecutor(WORKERS) as pool:
        windows = sorted(
            (window for found in pool.map(reserve, range(WORKERS)) for window in found),
            key=lambda window: window.first_s,
        )
    assert len(windows) == 15 * WORKERS
    assert all(after.first_s - before.until_s >= 0.5 for before, after in pairwise(windows))


def test_a_reader_of_the_feed_skips_and_repeats_nothing_of_many_writers(
    postgres_url: str, tmp_path: Path
) -> None:
    url = schema_url(postgres_url, tmp_path)
    turns = 25

    def write(number: int) -> None:
        with PostgresStore(url, timeout_s=60.0) as mine:
            own = [f"k{item}" for item in range(number, 40, WORKERS)]
            ids = ids_of(mine, own)
            for turn in range(turns):
                now_s = 10.0 * (turn + 1)
                leases = mine.leases.take(ids[: 1 + (turn + number) % len(ids)], now_s, 1.0)
                copies = [copy_of(b"%d of %d" % (turn, lease.item_id)) for lease in leases]
                pairs = zip(leases, copies, strict=True)
                mine.commit([seen(lease, now_s, new_copy=copy, event="changed") for lease, copy in pairs])
            mine.items.remove(ids[:2], 1e6)

    with PostgresStore(url) as store:
        store.items.add(new_items(40), 0.0)
        cursor, found = store.feed.cursor(), list[FeedEntry]()
        with ThreadPoolExecutor(WORKERS) as pool:
            working = [pool.submit(write, number) for number in range(WORKERS)]
            while True:
                over = all(future.done() for future in working)
                page = store.feed.read(cursor, 7)
                found += page.entries
                cursor = page.cursor
                if over and page.is_last:
                    break
            for future in working:
                future.result()
        assert [read_feed_cursor(entry.cursor).number for entry in found] == list(range(1, len(found) + 1))
        assert store.feed.read(limit=100_000).entries == found
        told = Counter((entry.item_id, entry.version) for entry in found if entry.kind == "changed")
        assert set(told.values()) == {1}
        versions = {item.id: item.version for item in store.items.by_id(range(1, 41))}
        newest = {item_id: max(v for i, v in told if i == item_id) for item_id in versions}
        assert newest == versions
        assert sum(entry.kind == "removed" for entry in found) == 2 * WORKERS
