"""Events, notices, the ledger and named values as every store keeps them."""

from __future__ import annotations

import math

from tests.stores.backends import copy_of, ids_of, new_items, poll, seen

from afresh.stores.store import Store
from afresh.values.items import NewItem
from afresh.values.outcome import Spent
from afresh.values.stored import DueEvents


def test_an_event_comes_again_until_it_is_done(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    poll(store, "k0", 10.0, new_copy=copy_of(b"a"), event="new")
    poll(store, "k1", 11.0, event="gone")
    assert store.events.take(9.0, 9, 5.0) == []
    (first,) = store.events.take(20.0, 1, 5.0)
    assert (first.item_id, first.key, first.source, first.kind, first.version) == (1, "k0", "web", "new", 1)
    assert (first.time_s, first.attempts) == (10.0, 1)
    (second,) = store.events.take(20.0, 9, 5.0)
    assert (second.key, second.kind, second.version) == ("k1", "gone", 0)
    assert store.events.take(24.9, 9, 5.0) == []
    assert [event.attempts for event in store.events.take(25.0, 9, 5.0)] == [2, 2]
    store.events.done([first.id])
    store.events.defer([second.id], 100.0)
    assert store.events.take(99.0, 9, 5.0) == []
    assert store.events.waiting() == 1
    assert [event.attempts for event in store.events.take(100.0, 9, 5.0)] == [3]
    store.events.defer([second.id, 99], math.inf)
    assert store.events.take(1e12, 9, 5.0) == []
    assert (store.events.waiting(), store.events.given_up()) == (0, 1)


def test_an_event_waits_for_the_earlier_events_of_its_item(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    for time_s in (1.0, 2.0, 3.0):
        poll(store, "k0", time_s, new_copy=copy_of(b"%d" % time_s), event="changed")
    poll(store, "k1", 4.0, event="gone")
    (first,) = store.events.take(10.0, 1, 5.0)  # whoever takes it may be killed before it is delivered
    assert [event.key for event in store.events.take(10.0, 9, 5.0)] == ["k1"]
    assert store.events.take(14.9, 9, 5.0) == []
    assert [event.version for event in store.events.take(15.0, 2, 5.0) if event.key == "k0"] == [1, 2]
    store.events.defer([first.id], 30.0)
    store.events.done([event.id for event in store.events.take(29.0, 9, 5.0)])
    assert [event.version for event in store.events.take(30.0, 9, 5.0)] == [1, 2, 3]


def test_events_are_counted_and_taken_by_source(store: Store) -> None:
    store.items.add([*new_items(2), NewItem("row", "table", "db")], 0.0)
    for time_s, key in enumerate(("k0", "row", "k1"), 5):
        poll(store, key, float(time_s), event="gone")
    assert store.events.due(4.0) == {}
    assert store.events.due(9.0) == {"web": DueEvents(2, 5.0), "table": DueEvents(1, 6.0)}
    assert [event.key for event in store.events.take(9.0, 9, 5.0, "table")] == ["row"]
    assert store.events.due(9.0) == {"web": DueEvents(2, 5.0)}
    assert store.events.take(9.0, 9, 5.0, "other") == []
    assert [event.key for event in store.events.take(9.0, 9, 5.0, "web")] == ["k0", "k1"]


def test_events_that_fail_are_listed_given_up_and_retried(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    for time_s, key in enumerate(("k0", "k1", "k0"), 1):
        poll(store, key, float(time_s), event="gone")
    first, second = store.events.take(9.0, 2, 5.0)
    store.events.defer([first.id], 20.0, "exit code 3")
    store.events.defer([second.id], math.inf, "no \0 answer")
    (lost, failing) = store.events.failed(9)
    assert (lost.event, lost.next_s, lost.is_given_up) == (second, math.inf, True)
    assert "answer" in lost.problem
    assert (failing.event, failing.problem, failing.is_given_up) == (first, "exit code 3", False)
    assert len(store.events.failed(1)) == 1
    assert store.events.take(9.0, 9, 5.0) == []  # the later event of k0 waits
    store.events.defer([first.id], math.inf, "exit code 3")
    (later,) = store.events.take(9.0, 9, 5.0)  # it waits no longer, because the first one was given up
    assert (later.key, later.attempts) == ("k0", 1)
    store.events.put_back([later.id], 10.0)
    assert [event.attempts for event in store.events.take(10.0, 9, 5.0)] == [1]
    assert (store.events.waiting(), store.events.given_up()) == (1, 2)
    assert store.events.retry(11.0, [second.id, later.id]) == 1
    assert [(event.key, event.attempts) for event in store.events.take(11.0, 9, 5.0)] == [("k1", 1)]
    assert store.events.retry(12.0) == 1
    assert store.events.failed(9) == []
    store.events.done([first.id])
    assert store.events.given_up() == 0


def test_changes_are_told_again_from_a_place_in_the_feed(store: Store) -> None:
    store.items.add([*new_items(2), NewItem("row", "table", "db")], 0.0)
    for time_s, key in enumerate(("k0", "row", "k1", "k0"), 1):
        poll(store, key, float(time_s), event="gone", for_hooks=key != "k1")
    store.events.done([event.id for event in store.events.take(9.0, 9, 5.0)])
    assert store.events.retell(1, "web") == 2
    assert store.events.retell(0, "table") == 1
    assert store.events.retell(4, "web") == store.events.retell(0, "other") == 0
    again = store.events.take(9.0, 9, 5.0)
    assert [(event.key, event.time_s) for event in again] == [("k1", 3.0), ("k0", 4.0), ("row", 2.0)]


def test_events_outlive_their_item_and_removal_can_be_one(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    poll(store, "k1", 1.0, new_copy=copy_of(b"a"), event="new")
    store.items.remove(ids_of(store, ["k1", "k0"]), 5.0, announce=True)
    events = store.events.take(9.0, 9, 1.0)
    assert [(event.key, event.kind, event.version) for event in events] == [
        ("k1", "new", 1),
        ("k0", "removed", 0),
        ("k1", "removed", 1),
    ]


def test_a_notice_stays_until_a_poll_leased_later_is_committed(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    (early,) = store.leases.take([1], 10.0, 60.0)
    store.notices.add([1, 2, 99], 11.0)
    store.notices.add([2], 12.0)
    assert [(n.item_id, n.time_s, n.count) for n in store.notices.open()] == [(1, 11.0, 1), (2, 12.0, 2)]
    store.commit([seen(early, 13.0)])
    assert [notice.item_id for notice in store.notices.open()] == [1, 2]
    poll(store, "k0", 14.0)
    assert [notice.item_id for notice in store.notices.open()] == [2]
    poll(store, "k1", 12.0)
    assert store.notices.open() == []


def test_notices_of_each_origin_are_kept_apart_with_their_times(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    store.notices.add([1, 99, 2], [11.0, 12.0, 13.0], "sitemap")
    store.notices.add([2, 1], 20.0, "feed")
    store.notices.add([1], 15.0, "sitemap")
    assert [(n.item_id, n.origin, n.time_s, n.count) for n in store.notices.open()] == [
        (2, "sitemap", 13.0, 1),
        (2, "feed", 20.0, 1),
        (1, "feed", 20.0, 1),
        (1, "sitemap", 15.0, 2),
    ]
    poll(store, "k0", 18.0)  # of item 1: after the change that the sitemap dates, before the feed's
    poll(store, "k1", 21.0)
    assert [(n.item_id, n.origin) for n in store.notices.open()] == [(1, "feed")]
    store.items.remove(ids_of(store, ["k0"]), 22.0)
    assert store.notices.open() == []


def test_a_poll_that_began_after_a_dated_change_answers_its_notice(store: Store) -> None:
    """The change is dated, so a poll that was under way when the notice came may have seen it."""
    store.items.add(new_items(2), 0.0)
    leases = store.leases.take([1, 2], 50.0, 60.0)
    store.notices.add([1, 2], [40.0, 60.0], "sitemap")
    store.commit([seen(lease, 70.0) for lease in leases])
    assert [notice.item_id for notice in store.notices.open()] == [2]


def test_new_notices_are_found_by_their_number(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    store.notices.add([1, 2], 1.0)
    last = store.notices.open()[-1].number
    store.notices.add([3, 1], 0.5)
    assert [(notice.item_id, notice.time_s) for notice in store.notices.open(last)] == [(3, 0.5), (1, 1.0)]
    store.items.remove(ids_of(store, ["k0"]), 2.0)
    assert [notice.item_id for notice in store.notices.open()] == [2, 3]


def test_the_ledger_adds_up_by_minute_and_source(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    leases = store.leases.take([1, 2], 0.0, 999.0)
    store.commit([seen(lease, 61.0 + lease.item_id, spent=Spent(1, 10, 0.5, 0.01)) for lease in leases])
    store.ledger.add("feed", 119.9, Spent(requests=3))
    store.ledger.add("web", 120.0, Spent(bytes=2**40))
    rows = store.ledger.rows(0.0, 1e9)
    assert [(row.start_s, row.source) for row in rows] == [(60.0, "feed"), (60.0, "web"), (120.0, "web")]
    assert [row.spent for row in rows] == [Spent(3), Spent(2, 20, 1.0, 0.02), Spent(0, 2**40)]
    assert store.ledger.total(60.0, 120.0) == Spent(5, 20, 1.0, 0.02)
    assert store.ledger.total(60.5, 120.0) == Spent()
    store.ledger.forget(120.0)
    assert [row.start_s for row in store.ledger.rows(0.0, 1e9)] == [120.0]


def test_a_value_is_replaced_only_if_it_is_what_it_was_thought_to_be(store: Store) -> None:
    assert store.state.replace("a", None, b"1")
    assert not store.state.replace("a", None, b"2")
    assert not store.state.replace("a", b"0", b"2")
    assert store.state.replace("a", b"1", b"2")
    assert not store.state.replace("b", b"", b"2")
    assert (store.state.get("a"), store.state.names()) == (b"2", ["a"])


def test_values_are_kept_together_and_dropped_by_none(store: Store) -> None:
    assert store.state.get("a") is None
    store.state.set({"b": b"", "a": b"\0\xff"})
    assert (store.state.get("a"), store.state.get("b"), store.state.names()) == (b"\0\xff", b"", ["a", "b"])
    store.state.set({"a": b"2", "b": None, "c": None})
    assert (store.state.get("a"), store.state.names()) == (b"2", ["a"])
