"""Items as every store keeps them."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from tests.stores.backends import copy_of, ids_of, new_items, poll, seen

from afresh.stores.cursors import sort_value
from afresh.stores.store import Store
from afresh.values.errors import AmbiguousKeyError, InputError, UsageError
from afresh.values.items import SORTS, Item, ItemChange, ItemCount, ItemQuery, NewItem, Sort


def test_a_new_item_is_kept_as_given_and_due_at_once(store: Store) -> None:
    new = NewItem("k", "web", "host", 2.5, 3.0, 60.0, 3600.0, 1e-5, {"lang": "ß"})
    assert store.items.add([new], 1000.5) == 1
    assert store.items.get("k") == Item(
        1, "k", "web", "host", 2.5, 3.0, 60.0, 3600.0, 1e-5, {"lang": "ß"}, "active",
        1000.5, None, None, 1000.5, 0, 0, 0, "", 0,
    )  # fmt: skip
    assert store.items.get("other") is None


def test_adding_again_changes_nothing(store: Store) -> None:
    first = NewItem("k", "web", "host", weight=2.0)
    assert store.items.add([first, replace(first, weight=3.0), *new_items(2)], 0.0) == 3
    assert store.items.add([replace(first, weight=4.0), *new_items(3)], 9.0) == 1
    item = store.items.get("k")
    assert item is not None
    assert (item.weight, item.added_s) == (2.0, 0.0)
    assert [known.key for known in store.items.by_id([4, 1, 99, 3])] == ["k2", "k", "k1"]
    assert store.items.ids(["k2", "none", "k"]) == {"k2": 4, "k": 1}


def test_items_of_two_sources_may_have_the_same_key(store: Store) -> None:
    shops = [NewItem(key, shop, shop, weight=2.0) for shop in ("b", "a") for key in ("17", "18")]
    assert store.items.add([*shops, *shops], 0.0) == 4
    assert store.items.add([replace(shops[0], source="c"), *shops], 1.0) == 1
    assert store.items.find(["18", "17", "18"]) == [
        (1, "b", "17"), (2, "b", "18"), (3, "a", "17"), (4, "a", "18"), (5, "c", "17"),
    ]  # fmt: skip
    assert store.items.ids(["17", "18", "19"], "a") == {"17": 3, "18": 4}
    found = store.items.get("17", "a")
    assert found is not None
    assert (found.id, found.source, found.group) == (3, "a", "a")
    assert store.items.get("17", "d") is None
    words = "'17' is in several sources: a, b, c"
    with pytest.raises(AmbiguousKeyError, match=words):
        store.items.get("17")
    with pytest.raises(AmbiguousKeyError, match=words):
        store.items.ids(["19", "17"])


def test_each_of_two_items_with_one_key_has_a_life_of_its_own(store: Store) -> None:
    store.items.add([NewItem("17", shop, "h", listed=shop == "b") for shop in ("a", "b")], 0.0)
    store.items.add([NewItem("17", "a", "h")], 0.0)
    assert [lease.listed for lease in store.leases.take([1, 2], 0.0, 0.0)] == [False, True]
    store.items.change([1], ItemChange(weight=7.0))
    (first, second) = store.leases.take([1, 2], 10.0, 60.0)
    assert store.commit([seen(second, 11.0, new_copy=copy_of(b"of b"), event="new")]) == []
    assert [item.weight for item in store.items.by_id([1, 2])] == [7.0, 1.0]
    assert [item.polls for item in store.items.by_id([1, 2])] == [0, 1]
    assert store.copies.get(first.item_id) is None
    assert [event.source for event in store.events.take(20.0, 9, 60.0)] == ["b"]
    store.items.remove([1], 30.0)
    left = store.items.get("17")
    assert left is not None
    assert (left.id, left.source) == (2, "b")
    assert store.items.add([NewItem("17", "a", "h")], 40.0) == 1
    assert store.items.ids(["17"], "a") == {"17": 3}
    assert store.upkeep.check() == []


def test_many_items_go_in(store: Store) -> None:
    assert store.items.add(iter(new_items(25_001)), 0.0) == 25_001
    assert sum(count.items for count in store.items.counts()) == 25_001


@pytest.mark.parametrize("key", ["", "nul\0", "\ud800"])
def test_keys_that_no_store_can_hold_are_refused(key: str) -> None:
    with pytest.raises(InputError, match="key"):
        NewItem(key, "web", "host")


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"weight": -1.0}, "weight is -1"),
        ({"weight": math.nan}, "weight is nan"),
        ({"cost": 0.0}, "cost is 0"),
        ({"min_interval_s": math.inf}, "min_interval_s is inf"),
        ({"max_interval_s": 0.0}, "max_interval_s is 0"),
        ({"prior_rate_per_s": -1.0}, "prior_rate_per_s is -1"),
        ({"min_interval_s": 2.0, "max_interval_s": 1.0}, "more than max_interval_s"),
    ],
)
def test_numbers_that_no_plan_can_use_are_refused(given: dict[str, float], words: str) -> None:
    with pytest.raises(InputError, match=words):
        NewItem("k", "web", "host", **given)  # type: ignore[arg-type]
    with pytest.raises(InputError, match=words):
        ItemChange(**given)  # type: ignore[arg-type]


def test_changes_reach_the_items_named_and_no_others(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    change = ItemChange(
        weight=2.0, cost=3.0, min_interval_s=1.0, max_interval_s=9.0, prior_rate_per_s=0.1,
        labels={"a": "b"}, status="paused", due_s=5.0,
    )  # fmt: skip
    before = store.items.by_id([2])
    store.items.change([1, 99, 3, 1], change)
    assert store.items.by_id([2]) == before
    item = store.items.get("k2")
    assert item is not None
    assert (item.weight, item.cost, item.min_interval_s, item.max_interval_s) == (2.0, 3.0, 1.0, 9.0)
    assert (item.prior_rate_per_s, item.labels, item.status, item.due_s) == (0.1, {"a": "b"}, "paused", 5.0)


def test_an_item_is_listed_until_the_user_adds_it(store: Store) -> None:
    def listed() -> list[bool]:
        return [
            lease.listed for lease in sorted(store.leases.take([1, 2], 0.0, 0.0), key=lambda one: one.key)
        ]

    store.items.add([NewItem("a", "web", "h", listed=True), NewItem("b", "web", "h")], 0.0)
    assert listed() == [True, False]
    store.items.add([NewItem("a", "web", "h", listed=True), NewItem("b", "web", "h", listed=True)], 0.0)
    assert listed() == [True, False]
    assert store.items.add([NewItem("a", "web", "h")], 0.0) == 0
    assert listed() == [False, False]


def test_an_item_may_have_a_selector_of_its_own(store: Store) -> None:
    store.items.add([NewItem("a", "web", "h", selector="main > p.é"), NewItem("b", "web", "h")], 0.0)
    assert [item.selector for item in store.items.by_id([1, 2])] == ["main > p.é", ""]
    assert [lease.selector for lease in store.leases.take([1, 2], 0.0, 1.0)] == ["main > p.é", ""]
    store.items.change(ids_of(store, ["b"]), ItemChange(selector="article", labels={"a": "b"}))
    store.items.change(ids_of(store, ["a", "b"]), ItemChange(weight=2.0))
    assert [item.selector for item in store.items.by_id([1, 2])] == ["main > p.é", "article"]
    store.items.change(ids_of(store, ["a"]), ItemChange(selector=""))
    item = store.items.get("a")
    assert item is not None
    assert (item.selector, item.labels) == ("", {})
    for text in ("nul\0", "\ud800"):
        with pytest.raises(InputError, match="selector"):
            ItemChange(selector=text)
        with pytest.raises(InputError, match="selector"):
            NewItem("c", "web", "h", selector=text)


def test_a_key_that_merely_begins_like_another_is_unknown(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    for key in ("k0\0x", "k", "k0 ", "K0", "k0\ud800"):
        assert store.items.find([key]) == []
        assert store.items.get(key) is None
        assert store.items.get("k0", key) is None
        assert store.items.find(["k0"], key) == []
    for text in ("\0", "\ud800"):
        assert store.items.page(ItemQuery(text=text), 9).items == ()


def test_an_item_made_active_again_forgets_its_failures(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 1.0, status="gone", failures=3, problem="404")
    store.items.change(ids_of(store, ["k0"]), ItemChange(weight=2.0))
    gone = store.items.get("k0")
    assert gone is not None
    assert (gone.status, gone.failures, gone.problem) == ("gone", 3, "404")
    store.items.change(ids_of(store, ["k0"]), ItemChange(status="active"))
    item = store.items.get("k0")
    assert item is not None
    assert (item.status, item.failures, item.problem) == ("active", 0, "")


def test_a_change_that_fits_one_item_but_not_another_changes_neither(store: Store) -> None:
    store.items.add([NewItem("a", "web", "h"), NewItem("b", "web", "h", max_interval_s=10.0)], 0.0)
    with pytest.raises(InputError, match="'b': min_interval_s would be more than max_interval_s"):
        store.items.change(ids_of(store, ["a", "b"]), ItemChange(min_interval_s=20.0, weight=5.0))
    assert [item.weight for item in store.items.by_id([1, 2])] == [1.0, 1.0]


def test_removed_items_are_gone_and_their_ids_are_never_given_again(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    poll(store, "k2", 1.0, new_copy=None)
    store.items.remove([3, 99], 2.0)
    assert store.items.get("k2") is None
    store.items.add([NewItem("k3", "web", "h"), NewItem("k2", "web", "h")], 3.0)
    assert store.items.ids(["k3", "k2"]) == {"k3": 4, "k2": 5}


def test_counts_follow_every_way_to_change_a_status(store: Store) -> None:
    store.items.add(new_items(4), 0.0)
    store.items.add([NewItem("x", "feed", "host0")], 0.0)
    store.items.change(ids_of(store, ["k0", "k1"]), ItemChange(status="paused"))
    store.items.change(ids_of(store, ["k1"]), ItemChange(status="active"))
    poll(store, "k2", 1.0, status="gone")
    store.items.remove(ids_of(store, ["k3"]), 2.0)
    assert store.items.counts() == [
        ItemCount("feed", "host0", "active", 1),
        ItemCount("web", "host0", "paused", 1),
        ItemCount("web", "host1", "active", 1),
        ItemCount("web", "host2", "gone", 1),
    ]


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [False, True])
def test_pages_list_everything_once_in_order(store: Store, sort: Sort, descending: bool) -> None:
    store.items.add([NewItem(f"k{i * 7 % 11}", "web", "h", weight=i % 3) for i in range(11)], 0.0)
    store.items.add([NewItem(f"k{i}", "shop", "h") for i in (9, 7, 8, 0)], 0.0)
    for i in (1, 4, 5):
        poll(store, f"k{i}", float(10 - i), changed=i > 3, failures=i % 2)
    query = ItemQuery(sort=sort, descending=descending)
    found: list[Item] = []
    cursor: str | None = None
    while cursor is not None or not found:
        page = store.items.page(query, 3, cursor)
        assert len(page.items) == 3 or page.cursor is None
        found += page.items
        cursor = page.cursor
    places = [(sort_value(item, sort), item.id) for item in found]
    assert len(found) == len({item.id for item in found}) == 15
    assert all((a > b) if descending else (a < b) for a, b in pairwise(places))


def test_a_page_that_ends_with_the_list_has_no_cursor(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    assert store.items.page(ItemQuery(), 3).cursor is None
    assert store.items.page(ItemQuery(), 2).cursor is not None


def test_questions_without_an_answer_are_refused_in_words(store: Store) -> None:
    with pytest.raises(InputError, match="a page of 0 items"):
        store.items.page(ItemQuery(), 0)
    with pytest.raises(UsageError, match="did you mean 'weight'"):
        ItemQuery(sort="wieght")  # type: ignore[arg-type]
    for question in (ItemQuery, ItemChange):
        with pytest.raises(UsageError, match="unknown status 'dead'"):
            question(status="dead")  # type: ignore[arg-type]


def test_searches_narrow_by_text_status_source_and_group(store: Store) -> None:
    store.items.add(new_items(6), 0.0)
    store.items.add([NewItem("50%_K", "feed", "host9")], 0.0)
    store.items.change(ids_of(store, ["k1"]), ItemChange(status="paused"))

    def keys(**given: str) -> list[str]:
        return [item.key for item in store.items.page(ItemQuery(**given), 9).items]  # type: ignore[arg-type]

    assert keys(text="%_") == ["50%_K"]
    assert keys(text="k5") == ["k5"]
    assert keys(text="K5") == ["k5"]
    assert keys(text="%_k") == ["50%_K"]
    assert keys(status="paused") == ["k1"]
    assert keys(source="feed") == ["50%_K"]
    assert keys(group="host1", text="k") == ["k1", "k4"]
    assert keys(group="nobody") == []


@pytest.mark.parametrize("cursor", ["x", "[1]", '["a", "b"]', "{}", "[null, 1]"])
def test_a_cursor_from_elsewhere_is_refused_in_words(store: Store, cursor: str) -> None:
    with pytest.raises(InputError, match="no cursor of this list"):
        store.items.page(ItemQuery(), 3, cursor)


def test_due_items_come_longest_due_first_without_those_leased_paused_or_later(store: Store) -> None:
    store.items.add(new_items(6), 100.0)
    for key, due in (("k0", 50.0), ("k1", 20.0), ("k2", 30.0), ("k3", 201.0), ("k4", 10.0)):
        store.items.change(ids_of(store, [key]), ItemChange(due_s=due))
    store.items.change(ids_of(store, ["k4"]), ItemChange(status="paused"))
    store.leases.take([3], 100.0, 100.0)
    assert store.items.due(199.0, 10) == [2, 1, 6]
    assert store.items.due(200.0, 10) == [2, 3, 1, 6]
    assert store.items.due(200.0, 2) == [2, 3]


def test_edits_tell_engines_what_users_changed(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    start = store.items.edits(0)
    assert start.item_ids == ()
    store.items.change(ids_of(store, ["k1"]), ItemChange(weight=2.0))
    store.items.remove(ids_of(store, ["k2"]), 1.0)
    edits = store.items.edits(start.number)
    assert (set(edits.item_ids), edits.complete) == ({2, 3}, True)
    assert store.items.edits(edits.number).item_ids == ()


def test_edits_say_when_the_list_was_cut(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    for backend in ("tests.stores.reference", "afresh.stores.sqlite", "afresh.stores.postgres"):
        monkeypatch.setattr(f"{backend}.stored_items.EDITS_KEPT", 3)
    store.items.add(new_items(1), 0.0)
    for weight in range(5):
        store.items.change(ids_of(store, ["k0"]), ItemChange(weight=float(weight)))
    assert store.items.edits(5).complete
    assert store.items.edits(2).complete
    assert len(store.items.edits(2).item_ids) == 3
    assert not store.items.edits(1).complete
