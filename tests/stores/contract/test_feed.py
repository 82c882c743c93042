"""The change feed as every store keeps it: complete, in order, followed by cursors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.stores.backends import Backend, copy_of, ids_of, new_items, poll, seen

from afresh.stores.sqlite.store import SqliteStore
from afresh.stores.store import Retention, Store
from afresh.values.changes import FeedCursor, FeedEntry, read_feed_cursor
from afresh.values.errors import CursorError, InputError
from afresh.values.items import NewItem
from afresh.values.outcome import NewCopy, Observation

FOREIGN, OLD = "is not of this feed", "is too old"


def told(entries: Any) -> list[tuple[str, str, int]]:
    return [(entry.key, entry.kind, entry.version) for entry in entries]


def change(store: Store, key: str, time_s: float, content: bytes = b"") -> FeedEntry:
    """Change an item and return what the feed says of it."""
    before = store.feed.cursor()
    poll(store, key, time_s, new_copy=copy_of(content or str(time_s).encode()), event="changed")
    (entry,) = store.feed.read(before).entries
    return entry


def test_the_feed_tells_what_happened_to_each_copy(store: Store) -> None:
    store.items.add(new_items(3), 0.0)
    poll(store, "k0", 10.0, new_copy=copy_of(b"abc"), event="new", for_hooks=False)
    poll(store, "k1", 11.0, new_copy=copy_of(b"12345"), event="new")
    dated = Observation(1, 20.0, 10.0, changed=True, modified_s=15.5)
    poll(store, "k0", 20.0, new_copy=copy_of(b"longer"), event="changed", observation=dated)
    poll(store, "k0", 30.0)  # unchanged: nothing to tell
    poll(store, "k1", 40.0, observation=None, status="gone", event="gone")
    store.items.remove(ids_of(store, ["k2", "k0"]), 50.0)
    page = store.feed.read()
    assert told(page.entries) == [
        ("k0", "new", 1),
        ("k1", "new", 1),
        ("k0", "changed", 2),
        ("k1", "gone", 1),
        ("k0", "removed", 2),
        ("k2", "removed", 0),
    ]
    assert page.is_last
    assert [(entry.time_s, entry.changed_s) for entry in page.entries] == [
        (10.0, None), (11.0, None), (20.0, 15.5), (40.0, None), (50.0, None), (50.0, None),
    ]  # fmt: skip
    assert [(entry.previous_size, entry.size) for entry in page.entries] == [
        (None, 3), (None, 5), (3, 6), (5, None), (6, None), (None, None),
    ]  # fmt: skip
    assert {entry.source for entry in page.entries} == {"web"}
    assert [read_feed_cursor(entry.cursor).number for entry in page.entries] == [1, 2, 3, 4, 5, 6]
    assert store.events.waiting() == 3  # the others are not for hooks


def test_how_much_of_the_content_is_new_is_told(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    entry = change(store, "k0", 1.0)
    assert entry.change_size is None
    poll(store, "k0", 2.0, new_copy=NewCopy(b"b", "text/plain", b"n", change_size=0.25), event="changed")
    assert store.feed.read(entry.cursor).entries[0].change_size == 0.25


def test_an_item_that_comes_back_unchanged_is_told_with_its_size(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    poll(store, "k0", 1.0, new_copy=copy_of(b"abcd"), event="new")
    poll(store, "k0", 2.0, event="new")
    (_, back) = store.feed.read().entries
    assert (back.version, back.size, back.previous_size) == (1, 4, None)


def test_the_newest_changes_are_found_from_the_end(store: Store) -> None:
    assert list(store.feed.newest()) == []
    store.items.add([NewItem("a", "web", "h"), NewItem("b", "files", "h")], 0.0)
    for time_s, key in enumerate("aabab", 1):
        change(store, key, float(time_s))
    entries = list(store.feed.read().entries)
    assert list(store.feed.newest(3)) == entries[:1:-1]
    assert [entry.time_s for entry in store.feed.newest(2, "web")] == [4.0, 2.0]
    assert list(store.feed.newest(5, "nobody")) == []
    assert list(store.feed.newest(2, before=entries[3].cursor)) == [entries[2], entries[1]]
    assert [entry.time_s for entry in store.feed.newest(9, "web", entries[3].cursor)] == [2.0, 1.0]
    assert list(store.feed.newest(9, before=entries[0].cursor)) == []
    for foreign in ("1-1-00000000", str(read_feed_cursor(entries[-1].cursor)._replace(number=99))):
        with pytest.raises(CursorError, match="not of this feed"):
            store.feed.newest(9, before=foreign)


def test_pages_follow_each_other_by_any_cursor(store: Store) -> None:
    store.items.add(new_items(5), 0.0)
    assert store.feed.read().entries == []
    beginning = store.feed.read().cursor
    for number in range(5):
        poll(store, f"k{number}", 1.0 + number, new_copy=copy_of(b"%d" % number), event="new")
    everything = list(store.feed.read().entries)
    cursor, found, sizes = beginning, list[FeedEntry](), []
    while not (page := store.feed.read(cursor, 2)).is_last:
        found += page.entries
        cursor = page.cursor
        sizes.append(len(page.entries))
    assert [*found, *page.entries] == everything
    assert (sizes, len(page.entries)) == ([2, 2], 1)
    for place, entry in enumerate(everything, 1):
        assert store.feed.read(entry.cursor).entries == everything[place:]
    assert store.feed.cursor() == page.cursor == everything[-1].cursor
    assert store.feed.read(page.cursor).cursor == page.cursor
    with pytest.raises(InputError, match="a page of 0"):
        store.feed.read(limit=0)


def test_the_changes_of_one_source_are_read_alone(store: Store) -> None:
    store.items.add([*new_items(2), NewItem("row", "table", "db")], 0.0)
    for time_s, key in enumerate(("k0", "row", "k1", "k0"), 1):
        change(store, key, float(time_s))
    page = store.feed.read(None, 5, "table")
    assert told(page.entries) == [("row", "changed", 1)]
    assert page.cursor == store.feed.cursor()  # the others are skipped for good
    assert told(store.feed.read(None, 1, "web").entries) == [("k0", "changed", 1)]
    for unknown in ("other", "\0", ""):
        page = store.feed.read(None, 5, unknown)
        assert (list(page.entries), page.cursor) == ([], store.feed.cursor())


def test_a_cursor_that_is_too_old_is_refused_and_says_how_to_start_again(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    beginning = store.feed.cursor()
    entries = [change(store, "k0", float(time_s)) for time_s in range(1, 7)]
    store.events.take(9.0, 9, 5.0)
    assert store.feed.trim(1.0) == store.feed.trim(1.5) == 0
    assert store.feed.read(beginning).entries == entries
    assert store.feed.start() == beginning
    assert store.feed.trim(4.0) == 2
    assert store.feed.start() == entries[2].cursor
    assert store.feed.trim(4.0) == 0
    assert store.feed.read().entries == entries[2:]  # the newest of those before 4.0 stays
    assert store.feed.read(entries[2].cursor).entries == entries[3:]
    for old in (beginning, entries[0].cursor, entries[1].cursor):
        with pytest.raises(CursorError, match=f"{OLD}.*start again.*changes --cursor.*export.*follow"):
            store.feed.read(old)
        with pytest.raises(CursorError, match=OLD):
            store.feed.move("index", old, 9.0)
    assert store.feed.trim(99.0) == 3
    assert store.feed.read(entries[-1].cursor).entries == []
    later = change(store, "k0", 100.0)
    assert store.feed.read(entries[-1].cursor).entries == [later]


def test_a_change_that_hooks_have_yet_to_be_told_is_not_dropped(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    for time_s in range(1, 6):
        poll(store, "k0", float(time_s), event="changed", for_hooks=time_s == 3)
    store.feed.trim(99.0)
    assert [event.time_s for event in store.events.take(9.0, 9, 5.0)] == [3.0]


def test_a_cursor_of_another_feed_is_refused(store: Store) -> None:
    store.items.add(new_items(2), 0.0)
    entry = change(store, "k0", 1.0)
    own = read_feed_cursor(entry.cursor)
    other_epoch = own._replace(epoch=own.epoch + 1)
    other_change = own._replace(check=own.check ^ 1)
    for foreign in (other_epoch, own._replace(number=2), other_change, FeedCursor(own.epoch, 2, 0)):
        with pytest.raises(CursorError, match=f"{FOREIGN}.*start again"):
            store.feed.read(str(foreign))
        with pytest.raises(CursorError, match=FOREIGN):
            store.feed.move("index", str(foreign), 2.0)
    for wrong in ("", "1", "-", f"{entry.cursor} ", "g-1-00000000", "1-1-0", "1" * 200):
        with pytest.raises(InputError, match="is no cursor of a feed"):
            store.feed.read(wrong)
    assert store.feed.consumers() == []


def test_a_store_from_an_older_backup_refuses_later_cursors(backend: Backend, tmp_path: Path) -> None:
    if not backend.can_back_up:
        return
    with backend.open(tmp_path, Retention()) as store:
        store.items.add(new_items(2), 0.0)
        early = change(store, "k0", 1.0)
        store.upkeep.backup(tmp_path / "backup.db")
        late = change(store, "k0", 2.0)
    with SqliteStore(tmp_path / "backup.db") as restored:
        assert restored.feed.read(early.cursor).entries == []
        with pytest.raises(CursorError, match=FOREIGN):
            restored.feed.read(late.cursor)
        other = change(restored, "k1", 3.0)  # it has the number that the late one had
        assert read_feed_cursor(other.cursor).number == read_feed_cursor(late.cursor).number
        with pytest.raises(CursorError, match=FOREIGN):
            restored.feed.read(late.cursor)
        assert restored.feed.read(early.cursor).entries == [other]


def test_consumers_have_places_of_their_own(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    entries = [change(store, "k0", float(time_s)) for time_s in range(1, 4)]
    store.feed.move("index", entries[0].cursor, 10.0)
    store.feed.move("digest", entries[2].cursor, 11.0, "web")
    store.feed.move("index", entries[1].cursor, 12.0)
    first, second = store.feed.consumers()
    assert (first.name, first.source, first.cursor, first.behind) == ("digest", "web", entries[2].cursor, 0)
    assert (second.name, second.source, second.behind, second.moved_s) == ("index", "", 1, 12.0)
    assert store.feed.drop("digest")
    assert not store.feed.drop("digest")
    assert not store.feed.drop("\0")
    assert [consumer.name for consumer in store.feed.consumers()] == ["index"]
    for name in ("", "a\0b"):
        with pytest.raises(InputError):
            store.feed.move(name, entries[0].cursor, 13.0)


def test_a_refused_outcome_tells_nothing(store: Store) -> None:
    store.items.add(new_items(1), 0.0)
    (lost,) = store.leases.take([1], 0.0, 5.0)
    (held,) = store.leases.take([1], 10.0, 5.0)
    wanted = [seen(lease, 11.0, new_copy=copy_of(b"a"), event="new") for lease in (lost, held)]
    assert [refusal.reason for refusal in store.commit(wanted)] == ["lost"]
    assert len(store.feed.read().entries) == store.feed.last() == 1
