"""Copies, observations and the policy's columns as every store keeps them."""

from __future__ import annotations

import math

import numpy as np
import pytest
from tests.stores.backends import belief_of, copy_of, ids_of, new_items, poll

from afresh.stores.store import Retention, Store
from afresh.values.errors import InputError
from afresh.values.items import STATUSES, ItemChange, NewItem
from afresh.values.outcome import NewCopy, Observation
from afresh.values.stored import ObservationColumns


def columns(rows: list[tuple[int, float, float, bool]], *, audit: bool = False) -> ObservationColumns:
    """Observations from (item, time, elapsed, changed)."""
    item_id, time_s, elapsed_s, changed = zip(*rows, strict=True)
    return ObservationColumns(
        np.array(item_id), np.array(time_s), np.array(elapsed_s), np.array(changed),
        np.full(len(rows), np.nan), np.full(len(rows), np.nan), np.full(len(rows), audit),
    )  # fmt: skip


def test_the_last_versions_are_kept(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    contents = [b"", b"two" * 1000, bytes(range(256))]
    for number, content in enumerate(contents):
        poll(store, "k0", float(number), new_copy=copy_of(content))
    assert [version.number for version in store.copies.versions(1)] == [3, 2]
    assert [version.size for version in store.copies.versions(1)] == [256, 3000]
    newest, second = store.copies.get(1), store.copies.get(1, 2)
    assert newest is not None
    assert second is not None
    assert (newest.content, second.content) == (contents[2], contents[1])
    assert store.copies.get(1, 1) is None
    assert store.copies.get(1, 4) is None
    assert store.copies.get(9) is None
    assert store.upkeep.stats().contents == 2


def test_equal_contents_are_kept_once_and_go_with_their_last_version(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    for key in ("k0", "k1", "k2"):
        poll(store, key, 1.0, new_copy=copy_of(b"same"))
    stats = store.upkeep.stats()
    assert (stats.versions, stats.contents, stats.content_bytes) == (3, 1, 4)
    store.items.remove(ids_of(store, ["k0"]), 2.0)
    for time, content in enumerate((b"a", b"b"), 3):
        poll(store, "k1", float(time), new_copy=copy_of(content))
    assert store.upkeep.stats().contents == 3
    store.items.remove(ids_of(store, ["k2", "k1"]), 9.0)
    assert store.upkeep.stats().contents == 0


def test_an_item_may_return_to_an_older_content(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    for time, content in enumerate((b"a", b"b", b"a", b"b", b"a")):
        poll(store, "k0", float(time), new_copy=copy_of(content))
    assert [version.number for version in store.copies.versions(1)] == [5, 4]
    assert store.upkeep.stats().contents == 2
    copy = store.copies.get(1)
    assert copy is not None
    assert copy.content == b"a"


def test_the_same_bytes_again_are_no_new_version_but_may_be_read_anew(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 1.0, new_copy=copy_of(b"a"))
    poll(store, "k0", 2.0, new_copy=NewCopy(b"a", "text/html", b"other"))
    (version,) = store.copies.versions(1)
    assert (version.number, version.time_s, version.media_type) == (1, 1.0, "text/html")
    assert store.leases.take([1], 3.0, 1.0)[0].content_hash == b"other"


@pytest.mark.parametrize("whole_batches", [False, True])
def test_columns_say_what_items_say(store: Store, whole_batches: bool) -> None:
    store.items.add(
        [
            NewItem("a", "web", "h", 2.0, 3.0, 4.0, 5.0, 6.0),
            NewItem("b", "feed", "g"),
            NewItem("c", "web", "g", prior_rate_per_s=0.0),
        ],
        10.0,
    )
    poll(store, "b", 20.0, belief=b"bb", due_s=math.inf)
    poll(store, "c", 30.0, belief=b"c", status="gone")
    batches = list(store.plan.columns(batch=2, whole_batches=whole_batches))
    assert [batch.id.tolist() for batch in batches] == [[1, 2], [3]]
    first, second = batches
    names = store.plan.names()
    assert [names[code] for code in first.source] == ["web", "feed"]
    assert [names[code] for code in first.group] == ["h", "g"]
    assert second.group[0] == first.group[1]
    for name, expected in {
        "weight": [2.0, 1.0],
        "cost": [3.0, 1.0],
        "min_interval_s": [4.0, 0.0],
        "max_interval_s": [5.0, math.inf],
        "prior_rate_per_s": [6.0, math.nan],
        "polled_s": [math.nan, 20.0],
        "due_s": [10.0, math.inf],
    }.items():
        np.testing.assert_array_equal(getattr(first, name), expected, err_msg=name)
    assert [STATUSES[code] for code in second.status] == ["gone"]
    assert (second.prior_rate_per_s.tolist(), second.cost.tolist()) == ([0.0], [1.0])
    assert [belief_of(first, 0), belief_of(first, 1), belief_of(second, 0)] == [b"", b"bb", b"c"]
    assert first.beliefs == b"bb"


def test_columns_read_aside_are_exact(store: Store) -> None:
    store.items.add(new_items(5), 0.0)
    due_s = np.array([1.7e9 + 1 / 3, 5e-324, math.nextafter(math.inf, 0), -0.1, math.inf])
    store.plan.save(np.arange(1, 6), due_s, [bytes(range(n, 256)) for n in range(5)])
    (one,), (other,) = store.plan.columns(), store.plan.columns(whole_batches=True)
    for name in ("id", "source", "group", "status", "weight", "due_s", "polled_s", "belief_size"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name, strict=True)
    assert one.beliefs == other.beliefs
    np.testing.assert_array_equal(other.due_s, due_s)


def test_columns_can_go_on_after_an_id_or_tell_of_some(store: Store) -> None:
    store.items.add(new_items(5), 0.0)
    assert [batch.id.tolist() for batch in store.plan.columns(after_id=3)] == [[4, 5]]
    assert (
        list(store.plan.columns(after_id=5)) == list(store.plan.columns(after_id=5, whole_batches=True)) == []
    )
    assert store.plan.columns_of([4, 2, 99]).id.tolist() == [2, 4]
    assert store.plan.columns_of([]).id.tolist() == []
    store.items.change(ids_of(store, ["k3"]), ItemChange(max_interval_s=7.0))
    assert store.plan.columns_of([4, 2]).max_interval_s.tolist() == [math.inf, 7.0]


def test_a_plan_is_saved_for_many_items_at_once(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    store.plan.save(np.array([3, 99, 1]), np.array([7.0, 8.0, 9.0]), [b"x", b"y", b"z"])
    store.plan.save(np.array([1]), np.array([math.inf]))
    got = store.plan.columns_of([1, 2, 3])
    assert got.due_s.tolist() == [math.inf, 0.0, 7.0]
    assert [belief_of(got, row) for row in range(3)] == [b"z", b"", b"x"]


def test_a_plan_with_no_time_in_it_is_refused_whole(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    with pytest.raises(InputError, match="item 2 is due at nan"):
        store.plan.save(np.array([1, 2]), np.array([5.0, math.nan]))
    assert store.plan.columns_of([1]).due_s.tolist() == [0.0]


def test_observations_come_back_sorted_and_to_the_microsecond(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    time = 1_700_000_000.123456
    for key in ("k1", "k0"):
        poll(store, key, time)
        item_id = store.items.ids([key])[key]
        observation = Observation(
            item_id, time + 86400.5, 86400.5, changed=True, modified_s=time + 1.5, count=3, audit=True
        )
        poll(store, key, time + 86400.5, observation=observation)
    (found,) = store.observations.read()
    assert found.item_id.tolist() == [1, 1, 2, 2]
    np.testing.assert_allclose(found.time_s, [time, time + 86400.5] * 2, rtol=0, atol=1e-6)
    assert found.elapsed_s.tolist() == [0.0, 86400.5] * 2
    assert found.changed.tolist() == [False, True] * 2
    np.testing.assert_allclose(found.modified_s[1], time + 1.5, rtol=0, atol=1e-6)
    np.testing.assert_array_equal(found.count, [np.nan, 3.0] * 2)
    assert found.audit.tolist() == [False, True] * 2
    (one,) = store.observations.read([2, 99])
    assert one.item_id.tolist() == [2, 2]
    assert list(store.observations.read([])) == []


def test_at_least_the_newest_observations_are_kept(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    retention = Retention(versions=2, observations=50, audits=10)
    for time in range(200):
        poll(store, "k0", float(time), audit=time % 2 == 0)
        (found,) = store.observations.read([1])
        assert min(time + 1, retention.observations) <= len(found) <= 3 * retention.observations
        assert found.time_s.tolist() == [float(past) for past in range(time + 1 - len(found), time + 1)]
    assert store.observations.audits(0.0).time_s.tolist() == [float(time) for time in range(180, 200, 2)]
    assert store.observations.audits(195.0).time_s.tolist() == [196.0, 198.0]


def test_old_polls_are_taken_in_without_moving_anything_back(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    poll(store, "k0", 100.0)
    store.observations.add(columns([(1, 30.0, 10.0, True), (2, 5.0, 0.0, True), (1, 20.0, 0.0, False)]))
    (found,) = store.observations.read()
    assert found.item_id.tolist() == [1, 1, 1, 2]
    assert found.time_s.tolist() == [20.0, 30.0, 100.0, 5.0]
    items = store.items.by_id([1, 2])
    assert [(item.polls, item.changes, item.polled_s, item.changed_s) for item in items] == [
        (3, 1, 100.0, 30.0),
        (1, 1, 5.0, 5.0),
    ]
    assert [item.due_s for item in items] == [100.0 + 86400.0, 0.0]


def test_observations_of_an_unknown_item_are_refused_before_any_is_taken(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    with pytest.raises(InputError, match="no item 7"):
        store.observations.add(columns([(1, 1.0, 0.0, False), (7, 1.0, 0.0, False)]))
    assert list(store.observations.read()) == []


def test_imported_audits_are_audits(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    store.observations.add(columns([(1, 1.0, 0.0, True)], audit=True))
    audits = store.observations.audits(0.0)
    assert (audits.item_id.tolist(), audits.changed.tolist(), audits.audit.tolist()) == ([1], [True], [True])


@pytest.mark.parametrize("name", ["versions", "observations", "audits"])
def test_a_retention_of_nothing_is_refused(name: str) -> None:
    with pytest.raises(InputError, match=f"{name} is 0"):
        Retention(**{name: 0})


def test_removing_an_item_removes_its_history(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    for time in range(60):
        poll(store, "k0", float(time))
    poll(store, "k1", 1.0)
    store.items.change(ids_of(store, ["k1"]), ItemChange(weight=2.0))
    store.items.remove(ids_of(store, ["k0"]), 99.0)
    (found,) = store.observations.read()
    assert found.item_id.tolist() == [2]
    assert store.copies.versions(1) == []
