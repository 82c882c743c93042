"""The links of pages as every store keeps them."""

from __future__ import annotations

from tests.stores.backends import ids_of, new_items, poll

from afresh.stores.store import Store
from afresh.values.fetched import FoundLinks
from afresh.values.stored import PageLinks


def test_links_are_kept_with_the_poll_that_found_them(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    first, second, third = ids_of(store, ["k0", "k1", "k2"])
    store.links.add([PageLinks(second, depth=4, chain=2), PageLinks(99, depth=1)])
    poll(store, "k0", 1.0, links=FoundLinks(("k1", "k\u00e9")))
    poll(store, "k1", 2.0, links=FoundLinks((), gained=0))
    poll(store, "k1", 3.0, links=FoundLinks(("k2",), gained=3))
    poll(store, "k1", 4.0)  # found no links, because nothing was read
    pages = [
        PageLinks(first, readings=1, links=("k1", "k\u00e9")),
        PageLinks(second, depth=4, chain=2, readings=2, gained=3, links=("k2",)),
    ]
    assert list(store.links.read()) == pages
    assert store.links.by_id([second, third]) == pages[1:]
    assert [page.item_id for page in store.links.gaining()] == [second]


def test_the_shortest_way_to_a_page_counts(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (item_id,) = ids_of(store, ["k0"])
    for depth, chain in ((3, 1), (2, 5), (7, 7)):
        store.links.add([PageLinks(item_id, depth=depth, chain=chain)])
    assert store.links.by_id([item_id]) == [PageLinks(item_id, depth=2, chain=1)]


def test_pages_without_links_to_them_are_marked(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    ids = ids_of(store, ["k0", "k1", "k2"])
    store.links.add([PageLinks(item_id) for item_id in ids])
    store.links.mark_unlinked(ids[:2], 50.5)
    store.links.mark_unlinked(ids[:1], None)
    assert store.links.unlinked() == [PageLinks(ids[1], unlinked_s=50.5)]
    store.items.remove([ids[1]], 60.0)
    assert store.links.unlinked() == []
    assert [page.item_id for page in store.links.read()] == [ids[0], ids[2]]
