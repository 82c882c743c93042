"""Programs read the changes in pages, or one by one; the place of a consumer is saved after its work."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.stores.backends import copy_of, new_items, poll
from tests.waiting import until

import afresh
from afresh.engine.app import init_folder, open_engine
from afresh.engine.feed.change_json import change_object
from afresh.engine.feed.feed_reader import ChangeQuery, FeedReader
from afresh.stores.opening import open_store
from afresh.stores.store import Store
from afresh.values.changes import Change
from afresh.values.errors import CursorError, UsageError
from afresh.values.items import NewItem
from afresh.values.outcome import NewCopy

RAW = ChangeQuery(content="raw")


class SetClock:
    time_s = 1000.0

    def now_s(self) -> float:
        return self.time_s

    def elapsed_s(self) -> float:
        return self.time_s


@pytest.fixture
def store() -> Iterator[Store]:
    with open_store("memory:") as opened:
        opened.items.add([*new_items(3), NewItem("row", "table", "db")], 0.0)
        yield opened


@pytest.fixture
def reader(store: Store) -> FeedReader:
    return FeedReader(store, SetClock())


def change(store: Store, key: str, time_s: float, content: bytes) -> None:
    poll(store, key, time_s, new_copy=copy_of(content), event="changed")


def test_contents_of_one_page_are_bounded_and_none_is_left_out(
    store: Store, reader: FeedReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A thousand pages of 10 MB were in memory at once."""
    monkeypatch.setattr("afresh.engine.feed.feed_reader.MOST_CONTENT_BYTES", 1000)
    for number in range(9):
        change(store, "k0", 1.0 + number, b"%d" % number * 400)
    first = reader.page(None, 1000, RAW)
    assert ([len(one.content) for one in first.changes], first.is_last) == ([400] * 3, False)
    pages = [*reader.pages(query=RAW)]
    assert [len(page.changes) for page in pages] == [3, 3, 3]
    assert [one.version for page in pages for one in page.changes] == list(range(1, 10))
    since = first.cursor
    for is_last in (False, True):
        found = reader.page(since, 1000, RAW)
        assert (len(found.changes), found.is_last) == (3, is_last)
        since = found.cursor
    assert len(reader.page(None, 1000).changes) == 9  # without contents


def test_a_page_whose_texts_take_long_ends_early(store: Store) -> None:
    class SlowClock(SetClock):
        def elapsed_s(self) -> float:
            self.time_s += 3.0
            return self.time_s

    for number in range(9):
        change(store, "k0", 1.0 + number, b"%d" % number)
    sizes = [len(page.changes) for page in FeedReader(store, SlowClock()).pages(query=RAW)]
    assert (sum(sizes), max(sizes)) == (9, 4)


def test_a_change_comes_with_the_main_text_of_its_copy(store: Store, reader: FeedReader) -> None:
    page = b"<html><body><nav>Menu</nav><article><p>" + b"A sentence of the article. " * 20 + b"</p>"
    poll(store, "k0", 1.0, new_copy=NewCopy(page, "text/html", b"page"), event="new")
    poll(store, "k1", 2.0, new_copy=NewCopy(bytes(range(256)), "image/png", b"picture"), event="new")
    of_page, of_picture = reader.follow(query=ChangeQuery(content="text"))
    assert of_page.text is not None
    assert of_page.text.startswith("A sentence of the article.")
    assert "Menu" not in of_page.text
    assert not of_page.has_content
    assert of_picture.text is None


def test_a_change_comes_with_the_content_of_its_version(store: Store, reader: FeedReader) -> None:
    for number in range(7):  # five versions are kept
        change(store, "k0", 1.0 + number, b"version %d" % (number + 1))
    store.items.remove([1], 9.0)
    change(store, "k1", 10.0, b"")
    assert [each.content for each in reader.follow(query=RAW)][-1] == b""
    assert [each.has_content for each in reader.follow(query=RAW)] == [False] * 8 + [True]
    assert not any(each.has_content for each in reader.follow())
    change(store, "k2", 11.0, b"\xff")
    poll(store, "k2", 12.0, event="gone")
    last = [change_object(each) for each in reader.follow(query=RAW)][-2:]
    assert [(row["kind"], row.get("content_base64")) for row in last] == [("changed", "/w=="), ("gone", None)]
    with pytest.raises(UsageError, match="unknown form of content 'row': did you mean 'raw'"):
        reader.page(None, 9, ChangeQuery(content="row"))


def test_a_change_comes_with_the_text_of_its_copy(store: Store, reader: FeedReader) -> None:
    copies = (
        NewCopy(b"The story of the day.", "text/plain", b"n"),
        NewCopy(b"\x89PNG\r\n\x1a\n", "image/png", b"p"),
    )
    for key, copy in zip(("k0", "k1"), copies, strict=True):
        poll(store, key, 1.0, new_copy=copy, event="new")
    first, second = reader.follow(query=ChangeQuery(content="text"))
    assert first.text is not None
    assert "The story of the day." in first.text
    assert (first.content, first.has_content) == (b"", False)
    assert change_object(first)["content"] == first.text
    assert (second.text, "content" in change_object(second)) == (None, False)


def test_versions_that_are_not_kept_come_as_the_newest(store: Store, reader: FeedReader) -> None:
    for number in range(7):
        change(store, "k0", 1.0 + number, b"%d" % (number + 1))
    contents = [each.content for each in reader.follow(query=RAW)]
    assert contents == [b"7", b"7", b"3", b"4", b"5", b"6", b"7"]


def test_following_ends_at_the_end_or_at_the_limit(store: Store, reader: FeedReader) -> None:
    for number in range(5):
        change(store, "k0", 1.0 + number, b"%d" % number)
    change(store, "row", 6.0, b"r")
    everything = list(reader.follow())
    assert [each.time_s for each in everything] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert list(reader.follow(limit=2)) == everything[:2]
    assert list(reader.follow(everything[2].cursor)) == everything[3:]
    assert [each.item for each in reader.follow(query=ChangeQuery("table"))] == ["row"]
    assert [len(page.changes) for page in reader.pages(size=2)] == [2, 2, 2]
    with pytest.raises(CursorError, match="not of this feed"):
        next(reader.follow("1-1-00000000"))


def test_a_listener_that_waits_hears_of_a_later_change(store: Store, reader: FeedReader) -> None:
    heard: list[Change] = []

    def listen() -> None:
        heard.extend(each for each in reader.follow(wait=True, limit=2))

    listening = threading.Thread(target=listen)
    change(store, "k0", 1.0, b"1")
    listening.start()
    until(lambda: len(heard) == 1)
    change(store, "k1", 2.0, b"2")
    listening.join(60)
    assert [each.item for each in heard] == ["k0", "k1"]


def test_a_change_counts_as_processed_when_the_next_is_asked_for(store: Store, reader: FeedReader) -> None:
    for number in range(4):
        change(store, "k0", 1.0 + number, b"%d" % number)
    first = reader.consume("index")
    assert [next(first).time_s, next(first).time_s] == [1.0, 2.0]
    assert reader.consumers() == []  # nothing is saved within a second
    first.close()  # as at the end of a loop that was left: the second one was not processed
    assert reader.find_consumer("index").behind == 3
    assert [each.time_s for each in reader.consume("index", limit=2)] == [2.0, 3.0]
    assert [each.time_s for each in reader.consume("index")] == [4.0]
    assert list(reader.consume("index")) == []
    change(store, "k1", 9.0, b"9")
    assert [each.time_s for each in reader.consume("index")] == [9.0]
    assert [each.time_s for each in reader.consume("late", since=reader.cursor())] == []


def test_the_place_is_saved_while_a_long_page_is_processed(store: Store) -> None:
    clock = SetClock()
    reader = FeedReader(store, clock)
    for number in range(3):
        change(store, "k0", 1.0 + number, b"%d" % number)
    walking = reader.consume("index")
    next(walking)
    clock.time_s += 1.5
    next(walking)
    assert reader.find_consumer("index").behind == 2


def test_a_program_that_fails_gets_the_change_again(store: Store, reader: FeedReader) -> None:
    for number in range(3):
        change(store, "k0", 1.0 + number, b"%d" % number)

    def fail_at(time_s: float) -> list[float]:
        done = []
        for each in reader.consume("index"):
            if each.time_s == time_s:
                raise RuntimeError
            done.append(each.time_s)
        return done

    with pytest.raises(RuntimeError):
        fail_at(2.0)
    assert fail_at(9.0) == [2.0, 3.0]


def test_a_consumer_keeps_its_source(store: Store, reader: FeedReader) -> None:
    change(store, "k0", 1.0, b"1")
    change(store, "row", 2.0, b"2")
    assert [each.item for each in reader.consume("rows", ChangeQuery("table"))] == ["row"]
    with pytest.raises(UsageError, match="'rows' follows the source 'table': give the same"):
        next(reader.consume("rows"))
    reader.move_consumer("rows", reader.cursor())
    assert list(reader.consume("rows")) == []
    reader.remove_consumer("rows")
    with pytest.raises(UsageError, match="there is no consumer 'rows'"):
        reader.remove_consumer("rows")


def test_a_consumer_that_was_away_too_long_is_told_how_to_go_on(store: Store, reader: FeedReader) -> None:
    change(store, "k0", 1.0, b"1")
    assert [each.item for each in reader.consume("index")] == ["k0"]
    for number in (2, 3, 4):
        change(store, "k0", float(number), b"%d" % number)
    store.events.take(9.0, 9, 5.0)  # what hooks have yet to be told would be kept
    store.feed.trim(3.5)
    with pytest.raises(CursorError, match=r"too old.*'afresh consumers reset index --to CURSOR'"):
        next(reader.consume("index"))
    reader.move_consumer("index", reader.cursor())
    assert list(reader.consume("index")) == []


def test_the_changes_of_a_project_are_an_iterator(tmp_path: Path) -> None:
    init_folder(tmp_path)
    with open_engine(tmp_path) as engine:
        engine.add(["https://example.org/"])
        engine.observe([afresh.Reported("https://example.org/", 1e9, content=b"a")])
        (found,) = afresh.changes(tmp_path, content="raw")
        assert (found.item, found.kind, found.content) == ("https://example.org/", "new", b"a")
        assert [each.item for each in afresh.changes(tmp_path, consumer="index")] == ["https://example.org/"]
        assert list(afresh.changes(tmp_path, consumer="index")) == []
        assert engine.feed.find_consumer("index").cursor == engine.feed.cursor()
        engine.remove(["https://example.org/"])
        assert [each.kind for each in afresh.changes(tmp_path, since=found.cursor)] == ["removed"]
