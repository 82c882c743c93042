"""Pages of very many items: what is looked at is bounded, and following the cursors finds everything."""

from __future__ import annotations

from itertools import pairwise

import pytest
from tests.stores.backends import Backend, ids_of, poll

from afresh.stores.cursors import sort_value
from afresh.stores.postgres.stored_items import PostgresPaging
from afresh.stores.sqlite.stored_items import SqlitePaging
from afresh.stores.store import Store
from afresh.values.items import SORTS, Item, ItemChange, ItemQuery, NewItem, Sort

ITEMS = 60


@pytest.fixture
def filled(store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Items of two groups and sources, some paused and polled, in a store that looks at 7 at a time."""
    for paging in (SqlitePaging, PostgresPaging):
        monkeypatch.setattr(paging, "looked_at", 7)
        monkeypatch.setattr(paging, "nearby", 2)
    monkeypatch.setattr("afresh.stores.sql.item_part.FEW", 5)
    store.items.add(
        [
            NewItem(f"k{i * 7 % ITEMS}", "feed" if i % 20 == 1 else "web", f"h{i % 2}", weight=i % 3)
            for i in range(ITEMS)
        ],
        0.0,
    )
    for i in range(0, ITEMS, 3):
        poll(store, f"k{i}", float(100 - i), changed=i % 2 == 0, failures=i % 5)
    store.items.change(ids_of(store, ["k3", "k33"]), ItemChange(status="paused"))
    return store


def found(store: Store, query: ItemQuery) -> list[Item]:
    """Everything that the pages of a query list."""
    page = store.items.page(query, 4)
    items = list(page.items)
    while page.cursor is not None:
        page = store.items.page(query, 4, page.cursor)
        items += page.items
    return items


@pytest.mark.parametrize("sort", SORTS)
@pytest.mark.parametrize("descending", [False, True])
def test_every_filter_in_every_order_finds_what_matches_once(
    filled: Store, sort: Sort, descending: bool
) -> None:
    every = found(filled, ItemQuery())
    assert len(every) == ITEMS
    for query, wanted in (
        (ItemQuery("k5"), [item for item in every if "k5" in item.key]),
        (ItemQuery("nowhere"), []),
        (ItemQuery(status="paused"), [item for item in every if item.status == "paused"]),
        (ItemQuery(status="active"), [item for item in every if item.status == "active"]),
        (ItemQuery(source="feed"), [item for item in every if item.source == "feed"]),
        (ItemQuery("1", "active", "web", "h0"), [i for i in every if "1" in i.key and i.group == "h0"]),
    ):
        items = found(
            filled, ItemQuery(query.text, query.status, query.source, query.group, sort, descending)
        )
        assert sorted(item.id for item in items) == sorted(item.id for item in wanted)
        places = [(sort_value(item, sort), item.id) for item in items]
        assert all((a > b) if descending else (a < b) for a, b in pairwise(places))


def test_a_search_that_finds_nothing_ends_and_says_how_to_go_on(backend: Backend, filled: Store) -> None:
    page = filled.items.page(ItemQuery("nowhere"), 4)
    assert page.items == ()
    assert (page.cursor is None) == (backend.name == "reference")
