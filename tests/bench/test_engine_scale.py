"""The store of very many items that the benchmark fills has the form that engines expect."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

from bench.engine_scale import fill

from afresh.stores.sqlite.store import SqliteStore


def test_a_filled_store_has_its_items(tmp_path: Path) -> None:
    fill(tmp_path / "afresh.db", 8000, 50)
    with closing(SqliteStore(tmp_path / "afresh.db")) as store:
        assert [(count.source, count.items) for count in store.items.counts()] == [("web", 50)]
        (item,) = store.items.by_id([7])
        assert (item.source, item.key, item.polls) == ("web", "http://127.0.0.1:8000/000000007", 9)
