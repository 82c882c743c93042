"""Leases and outcomes as every store keeps them."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from tests.stores.backends import belief_of, copy_of, ids_of, new_items, poll, seen

from afresh.stores.store import Store
from afresh.values.errors import InputError
from afresh.values.items import ItemChange, NewItem
from afresh.values.lease import Lease
from afresh.values.outcome import Answer, NewCopy, Observation, Outcome, Refusal, Spent


def test_a_lease_carries_what_a_conditional_poll_needs(store: Store) -> None:
    store.items.add([NewItem("k", "web", "host", 1.0, 1.0, 5.0, 50.0, labels={"a": "b"})], 0.0)
    (first,) = store.leases.take([1], 1.0, 60.0)
    assert first == Lease(1, "k", "web", "host", first.token, 61.0, 1.0, {}, None, None, "active",
                          0, b"", 5.0, 50.0, {"a": "b"})  # fmt: skip
    told = {"etag": 'W/"é"', "accept-encoding": "gzip"}
    store.commit([seen(first, 2.0, new_copy=copy_of(b"one"), validators=told, belief=b"\0b", due_s=3.0)])
    (second,) = store.leases.take([1], 4.0, 60.0)
    assert (second.validators, second.content_hash, second.polled_s) == (told, b"normal one", 2.0)
    assert (second.belief, second.failures) == (b"\0b", 0)
    assert (store.items.validators(1), store.items.validators(99)) == (told, {})
    assert second.token > first.token


def test_an_item_is_lent_to_one_worker_until_the_lease_runs_out(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    taken = store.leases.take([1, 2, 2, 99], 10.0, 5.0)
    assert sorted(lease.item_id for lease in taken) == [1, 2]
    assert store.leases.take([1, 2], 14.9, 5.0) == []
    assert [lease.item_id for lease in store.leases.take([1, 2, 3], 14.9, 1.0)] == [3]
    assert [lease.item_id for lease in store.leases.take([1], 15.0, 5.0)] == [1]
    assert store.leases.open(15.0) == [(3, 14.9), (1, 15.0)]


def test_only_active_items_are_lent_unless_asked(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    store.items.change(ids_of(store, ["k0"]), ItemChange(status="paused"))
    assert [lease.item_id for lease in store.leases.take([1, 2], 0.0, 1.0)] == [2]
    assert [lease.status for lease in store.leases.take([1], 0.0, 1.0, any_status=True)] == ["paused"]


def test_due_items_are_lent_longest_due_first(store: Store) -> None:
    store.items.add(new_items(4), 0.0)
    for number in range(4):
        store.items.change(ids_of(store, [f"k{number}"]), ItemChange(due_s=float(-number)))
    assert [lease.item_id for lease in store.leases.take([3, 4], 0.0, 9.0)] == [4, 3]
    assert store.items.due(0.0, 9) == [2, 1]


def test_a_released_item_can_be_lent_again(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (old,) = store.leases.take([1], 0.0, 10.0)
    store.leases.release([old])
    (new,) = store.leases.take([1], 1.0, 10.0)
    store.leases.release([old])  # no longer its own
    assert store.leases.take([1], 2.0, 10.0) == []
    assert store.commit([seen(new, 2.0)]) == []


def test_an_outcome_moves_everything_together(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (lease,) = store.leases.take([1], 10.0, 60.0)
    observation = Observation(1, 11.0, 0.0, changed=True)
    outcome = Outcome(
        lease, 11.0, 500.0, observation, copy_of(b"one"), {"etag": "1"}, b"belief",
        spent=Spent(2, 300, 0.5, 0.25), event="new",
    )  # fmt: skip
    assert store.commit([outcome], {"engine": b"state"}) == []
    item = store.items.get("k0")
    assert item is not None
    assert (item.polled_s, item.changed_s, item.due_s) == (11.0, 11.0, 500.0)
    assert (item.polls, item.changes, item.failures, item.version) == (1, 1, 0, 1)
    copy = store.copies.get(1)
    assert copy is not None
    assert (copy.content, copy.version.time_s, copy.version.media_type) == (b"one", 11.0, "text/plain")
    (columns,) = store.plan.columns()
    assert (belief_of(columns, 0), columns.due_s.tolist()) == (b"belief", [500.0])
    (observations,) = store.observations.read()
    assert (observations.time_s.tolist(), observations.changed.tolist()) == ([11.0], [True])
    assert store.ledger.total(0.0, 60.0) == Spent(2, 300, 0.5, 0.25)
    assert [(event.kind, event.version) for event in store.events.take(11.0, 9, 1.0)] == [("new", 1)]
    assert store.state.get("engine") == b"state"
    assert store.leases.open(11.0) == []


def test_a_failure_tells_nothing_but_is_remembered(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 10.0, new_copy=copy_of(b"one"), validators={"etag": "1"}, belief=b"b")
    poll(store, "k0", 20.0, observation=None, failures=1, problem="timed out", due_s=99.0)
    item = store.items.get("k0")
    assert item is not None
    assert (item.polled_s, item.polls, item.failures, item.problem, item.due_s) == (
        10.0,
        2,
        1,
        "timed out",
        99.0,
    )
    (lease,) = store.leases.take([1], 30.0, 1.0)
    assert (lease.validators, lease.belief, lease.failures) == ({"etag": "1"}, b"b", 1)
    assert sum(len(batch) for batch in store.observations.read()) == 1


def test_a_late_outcome_counts_while_nobody_took_over(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (lease,) = store.leases.take([1], 0.0, 1.0)
    assert store.commit([seen(lease, 100.0)]) == []


def test_an_outcome_whose_lease_was_lost_is_refused_but_paid_for(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (late,) = store.leases.take([1], 0.0, 1.0)
    (current,) = store.leases.take([1], 2.0, 60.0)
    spent = Spent(requests=1)
    lost = seen(late, 3.0, new_copy=copy_of(b"late"), event="changed", spent=spent, status="gone")
    assert store.commit([lost]) == [Refusal(1, "lost")]
    assert "another worker" in str(Refusal(1, "lost"))
    assert store.copies.get(1) is None
    assert store.events.waiting() == 0
    assert store.commit([seen(current, 4.0, spent=spent)]) == []
    assert store.commit([seen(current, 5.0, spent=spent)]) == [Refusal(1, "lost")]
    item = store.items.get("k0")
    assert item is not None
    assert (item.polls, item.status, item.polled_s) == (1, "active", 4.0)
    assert store.ledger.total(0.0, 60.0).requests == 3


def test_an_outcome_given_twice_counts_once(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (lease,) = store.leases.take([1], 0.0, 60.0)
    assert store.commit([seen(lease, 1.0), seen(lease, 2.0)]) == [Refusal(1, "lost")]
    item = store.items.get("k0")
    assert item is not None
    assert (item.polls, item.polled_s) == (1, 1.0)


def test_an_outcome_of_a_removed_item_is_refused(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    leases = store.leases.take([1, 2], 0.0, 60.0)
    store.items.remove(ids_of(store, ["k0"]), 1.0)
    refused = store.commit([seen(lease, 2.0, new_copy=copy_of(b"x"), spent=Spent(1)) for lease in leases])
    assert refused == [Refusal(1, "removed")]
    assert "removed" in str(refused[0])
    assert store.copies.get(2) is not None
    assert store.ledger.total(0.0, 60.0).requests == 2


def test_an_item_paused_while_it_is_polled_stays_paused(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (lease,) = store.leases.take([1], 0.0, 60.0)
    store.items.change(ids_of(store, ["k0"]), ItemChange(status="paused"))
    assert store.commit([seen(lease, 1.0)]) == []
    item = store.items.get("k0")
    assert item is not None
    assert (item.status, item.polls) == ("paused", 1)


def test_never_is_a_due_time(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 1.0, due_s=math.inf)
    assert store.items.due(1e12, 9) == []
    item = store.items.get("k0")
    assert item is not None
    assert item.due_s == math.inf


def test_values_that_cannot_be_ordered_are_refused(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (lease,) = store.leases.take([1], 0.0, 60.0)
    with pytest.raises(InputError, match="Unix seconds"):
        Outcome(lease, 1.0, math.nan)
    with pytest.raises(InputError, match="Unix seconds"):
        Outcome(lease, math.inf, 1.0)
    with pytest.raises(InputError, match="another item"):
        Outcome(lease, 1.0, 1.0, Observation(2, 1.0, 0.0, changed=False))
    for given in ({"time_s": math.nan}, {"elapsed_s": math.inf}, {"count": -1}):
        with pytest.raises(InputError, match="observation of item 1"):
            Observation(**{"item_id": 1, "time_s": 1.0, "elapsed_s": 0.0, "changed": False} | given)


def test_no_words_of_a_server_can_make_a_commit_fail(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    told = {"etag": "caf\udce9\0"}
    strange = NewCopy(b"x", "text/\udce9\0", b"")
    poll(store, "k0", 1.0, problem="caf\udce9 \0 é", new_copy=strange, validators=told)
    poll(store, "k0", 2.0, problem="caf\udce9 \0 é", new_copy=strange, validators=told)
    item, copy = store.items.get("k0"), store.copies.get(1)
    assert item is not None
    assert copy is not None
    assert (item.problem, copy.version.media_type) == ("caf? \ufffd é", "text/?\ufffd")
    assert store.leases.take([1], 3.0, 1.0)[0].validators == told


@pytest.mark.parametrize("stamp", [math.nan, math.inf, -1e12, 253402300799.0])
def test_an_impossible_stamp_is_no_evidence(store: Store, stamp: float) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 1.0, observation=Observation(1, 1.0, 0.0, changed=True, modified_s=stamp, audit=True))
    (found,) = store.observations.read()
    assert math.isnan(found.modified_s[0])
    assert math.isnan(store.observations.audits(0.0).modified_s[0])


def test_an_empty_commit_does_nothing(store: Store) -> None:
    assert store.commit([]) == []
    assert store.commit([], {"a": b"1"}) == []
    assert store.state.get("a") == b"1"


def test_validators_that_are_no_more_are_forgotten_whatever_the_lease_says(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 1.0, validators={"etag": "1"})
    (lease,) = store.leases.take([1], 2.0, 60.0)
    assert store.commit([seen(replace(lease, validators={}), 3.0, validators={})]) == []
    assert store.leases.take([1], 4.0, 60.0)[0].validators == {}


def test_the_newest_lease_can_be_read_and_extended(store: Store) -> None:
    store.items.add([NewItem("a", "web", "h", weight=2.5), NewItem("b", "web", "h")], 0.0)
    old, other = store.leases.take([1, 2], 0.0, 10.0)
    assert store.leases.read([2, 1, 99]) == [old, other]
    assert old.weight == 2.5
    assert store.leases.extend([old, replace(other, token=999)], 50.0) == [1]
    assert [store.leases.until_s(item_id, 1.0) for item_id in (1, 2)] == [50.0, 10.0]
    assert store.leases.extend([old], 20.0) == [1]
    assert store.leases.until_s(1, 1.0) == 50.0
    assert store.leases.read([1])[0].until_s == 50.0
    (late,) = store.leases.read([2])  # it has expired, but nobody took over
    assert store.leases.extend([late], 90.0) == [2]
    (new,) = store.leases.take([1], 60.0, 10.0)
    assert store.leases.extend([old], 100.0) == []
    assert store.leases.read([1]) == [new]
    store.leases.release([new])
    assert store.leases.read([1]) == []
    assert store.leases.extend([], 1.0) == []


def test_answers_are_kept_for_a_day(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    first, second = store.leases.take([1, 2], 0.0, 10.0)
    outcomes = [
        replace(seen(lease, 1.0), answer=Answer(1.0, f"{lease.item_id} é\0")) for lease in (first, second)
    ]
    lost = replace(seen(replace(second, token=999), 1.0), answer=Answer(1.0, "refused"))
    assert len(store.commit([*outcomes, lost])) == 1
    pairs = [(1, first.token), (2, second.token), (2, 999), (1, 999)]
    found = store.leases.answers(pairs, 0.0)
    assert {pair: text[:3] for pair, text in found.items()} == {pairs[0]: "1 é", pairs[1]: "2 é"}
    assert store.leases.answers(pairs, 2.0) == {}
    assert store.leases.answers([], 0.0) == {}
    (third,) = store.leases.take([1], 90000.0, 10.0)
    store.commit([replace(seen(third, 90000.0), answer=Answer(90000.0, "3"))])
    assert store.leases.answers([*pairs, (1, third.token)], 80000.0) == {(1, third.token): "3"}


def test_a_version_says_how_much_of_it_is_new(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    for time_s, size in ((1.0, None), (2.0, 0.25)):
        leases = store.leases.take([1, 2], time_s, 9.0)
        copies = [copy_of(f"{time_s} {lease.item_id}".encode()) for lease in leases]
        copies[0] = replace(copies[0], change_size=size)
        store.commit([seen(lease, time_s, new_copy=each) for lease, each in zip(leases, copies, strict=True)])
    assert [version.change_size for version in store.copies.versions(1)] == [0.25, None]
    assert [version.change_size for version in store.copies.versions(2)] == [None, None]
    newest = store.copies.get(1)
    assert newest is not None
    assert newest.version.change_size == 0.25


def test_texts_are_kept_with_their_contents(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    for number in range(store_versions := 7):
        (lease,) = store.leases.take([1], float(number), 9.0)
        store.commit([seen(lease, number + 0.5, new_copy=copy_of(b"content %d" % number))])
        (newest, *_) = store.copies.versions(1)
        assert store.copies.text(newest.hash, "text") is None
        store.copies.save_text(newest.hash, "text", f"é {number}")
        store.copies.save_text(newest.hash, "markdown", f"# {number}")
        store.copies.save_text(newest.hash, "text", f"ü {number}")
        assert store.copies.text(newest.hash, "text") == f"ü {number}"
        assert store.copies.text(newest.hash, "markdown") == f"# {number}"
        if number == 0:
            first = newest
    assert len(store.copies.versions(1)) < store_versions
    assert store.copies.text(first.hash, "text") is None
    store.copies.save_text(first.hash, "text", "nobody has this content")
    assert store.copies.text(first.hash, "text") is None
