"""Writes all copies as lines of JSON or as a folder of files, and all polls as a table."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, Any
from urllib.parse import quote

import numpy as np

from afresh.engine.reporting.item_selection import EVERYTHING, ItemSelection, selected_items
from afresh.engine.scheduler.stored_beliefs import FORGOTTEN
from afresh.engine.texts import TextReader
from afresh.sources.texts.main_text import TextForm
from afresh.stores.store import Store
from afresh.tables.atomic_output import open_output, remove_abandoned, replaced_file
from afresh.tables.backend import require_pyarrow
from afresh.tables.columns import NUMBER, TEXT, Kind
from afresh.tables.writing import TableWriter
from afresh.values.errors import AfreshError, OutputError
from afresh.values.items import Item
from afresh.values.stored import Copy

_LONGEST_NAME = 120
_CHANGES_READ = 5000
_PARQUET_ROWS = 500


def changed_since(store: Store, cursor: str) -> frozenset[int]:
    """Return the ids of the items whose copies are new or changed since a cursor of the change feed."""
    found: set[int] = set()
    while True:
        page = store.feed.read(cursor, _CHANGES_READ)
        found.update(entry.item_id for entry in page.entries if entry.size is not None)
        if page.is_last:
            return frozenset(found)
        cursor = page.cursor


def read_copies(store: Store, selection: ItemSelection = EVERYTHING) -> Iterator[tuple[Item, Copy]]:
    """Yield every selected item that has a copy, with the newest copy."""
    changed = None if selection.since is None else changed_since(store, selection.since)
    for item in selected_items(store, selection):
        if changed is not None and item.id not in changed:
            continue
        copy = store.copies.get(item.id)
        if copy is not None:
            yield item, copy


class TextWriter:
    """Gives the texts of copies, of one ``form``, to be written in place of their contents. ``missing``
    counts the copies that have no text. ``report`` is called with the number of copies that are done."""

    def __init__(
        self, texts: TextReader, form: TextForm, report: Callable[[int], None] = lambda _: None
    ) -> None:
        self._texts, self.form, self._report = texts, form, report
        self.done = self.missing = 0

    @property
    def ending(self) -> str:
        """The ending of the names of files that hold such texts."""
        return ".md" if self.form == "markdown" else ".txt"

    def text_of(self, copy: Copy) -> tuple[str | None, str]:
        """Return a tuple: the text or None, and the reason if there is none."""
        self.done += 1
        self._report(self.done)
        try:
            return self._texts.text_of(copy, self.form), ""
        except AfreshError as error:
            self.missing += 1
            return None, str(error)


def write_jsonl(
    store: Store,
    out: IO[bytes],
    selection: ItemSelection = EVERYTHING,
    texts: TextWriter | None = None,
) -> int:
    """Write a line for each copy with ``item, source, polled, changed, media_type, version, content``; return
    the number of lines. Content that is not UTF-8 is in ``content_base64`` instead of ``content``. With
    ``texts``, a line has ``text`` or ``markdown`` instead; it is null, with a ``problem``, if there is no
    text."""
    number = 0
    for item, copy in read_copies(store, selection):
        line: dict[str, object] = {"item": item.key, "source": item.source, **_described(item, copy)}
        out.write(_line(line | (_content_fields(copy) if texts is None else _text_fields(copy, texts))))
        number += 1
    return number


def write_parquet(
    store: Store,
    out: IO[bytes],
    selection: ItemSelection = EVERYTHING,
    texts: TextWriter | None = None,
) -> int:
    """Write a Parquet file with a row for each copy: ``item, source, polled, changed, media_type, version``
    and ``content`` as bytes. With ``texts``, ``text`` or ``markdown`` stands for ``content``; it is null if
    there is none. Return the number of rows."""
    require_pyarrow("Parquet")
    import pyarrow as pa
    from pyarrow import parquet

    schema = _parquet_schema("content" if texts is None else texts.form)
    number, copies = 0, read_copies(store, selection)
    with parquet.ParquetWriter(out, schema, compression="zstd") as writer:
        while rows := [_parquet_row(*pair, texts) for pair in islice(copies, _PARQUET_ROWS)]:
            writer.write_table(pa.Table.from_pylist(rows, schema=schema))
            number += len(rows)
    return number


def _parquet_schema(content: str) -> Any:
    """Return the columns of the file. ``content`` is the name of the last one: bytes, or else a text."""
    import pyarrow as pa

    kinds = {"item": pa.string(), "source": pa.string(), "polled": pa.float64(), "changed": pa.float64()}
    kinds |= {"media_type": pa.string(), "version": pa.int64()}
    kinds |= {content: pa.binary() if content == "content" else pa.string()}
    return pa.schema(list(kinds.items()))


def _parquet_row(item: Item, copy: Copy, texts: TextWriter | None) -> dict[str, object]:
    row = {"item": item.key, "source": item.source, **_described(item, copy)}
    if texts is None:
        return row | {"content": copy.content}
    return row | {texts.form: texts.text_of(copy)[0]}


def _content_fields(copy: Copy) -> dict[str, object]:
    try:
        return {"content": copy.content.decode()}
    except UnicodeDecodeError:
        return {"content_base64": base64.b64encode(copy.content).decode()}


def _text_fields(copy: Copy, texts: TextWriter) -> dict[str, object]:
    text, problem = texts.text_of(copy)
    return {texts.form: text} | ({"problem": problem} if problem else {})


def write_folder(
    store: Store,
    folder: Path,
    selection: ItemSelection = EVERYTHING,
    texts: TextWriter | None = None,
) -> int:
    """Write a file for each copy, named by the item's key, and ``index.jsonl`` with one line for each file:
    ``item, source, file, polled, changed, media_type, version``. Return the number of copies. With ``texts``,
    the files hold the texts; for a copy without text, ``file`` is null and ``problem`` says why."""
    number = 0
    with _translate_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    remove_abandoned(folder)
    with open_output(folder / "index.jsonl") as index:
        for item, copy in read_copies(store, selection):
            text, problem = (None, "") if texts is None else texts.text_of(copy)
            name = file_name(item.key, item.id) + (texts.ending if texts is not None else "")
            if not problem:
                content = copy.content if text is None else text.encode("utf-8", "replace")
                _write_file(folder / name, content)
            about: dict[str, object] = {"item": item.key, "source": item.source}
            about |= {"file": None, "problem": problem} if problem else {"file": name}
            index.write(_line(about | _described(item, copy)))
            number += 1
    return number


def _write_file(path: Path, content: bytes) -> None:
    with _translate_errors(path), replaced_file(path, is_one_of_many=True) as part:
        part.write_bytes(content)


def write_polls(store: Store, path: str, selection: ItemSelection = EVERYTHING) -> int:
    """Write the observed polls of selected items, as ``afresh estimate`` reads them: ``item, time, changed,
    modified, count, source``; return their number. Times are Unix seconds. ``modified`` and ``count`` are
    empty where the source did not state them. Polls that no longer count are left out. If older
    observations of an item are no longer stored, a row without a change stands for the poll that began the
    first stored interval."""
    named = {item.id: (item.key, item.source) for item in selected_items(store, selection)}
    kinds: dict[str, Kind] = {"item": TEXT, "time": NUMBER, "changed": "count"}
    kinds |= {"modified": NUMBER, "count": NUMBER, "source": TEXT}
    # Of these items all that was learned was forgotten, because the content settings changed.
    parts = [part.id[part.belief_size == len(FORGOTTEN)] for part in store.plan.columns()]
    forgotten = np.concatenate([np.empty(0, dtype=np.int64), *parts])
    number = 0
    with TableWriter(path, kinds) as writer:
        for stored in store.observations.read(None if selection.is_everything else sorted(named)):
            seen = stored.take(~np.isin(stored.item_id, forgotten)).still_counting()
            known = np.array([int(one) in named for one in seen.item_id], dtype=bool)
            first = np.r_[True, seen.item_id[1:] != seen.item_id[:-1]] & (seen.elapsed_s > 0)
            # Each row is written after the row, if any, that stands for the poll before it.
            order = np.argsort(np.r_[np.arange(len(seen)), np.flatnonzero(first) - 0.5], kind="stable")
            rows = np.r_[np.arange(len(seen)), np.flatnonzero(first)][order]
            stands = np.r_[np.zeros(len(seen), bool), np.ones(np.count_nonzero(first), bool)][order]
            rows, stands = rows[known[rows]], stands[known[rows]]
            names = [named[int(one)] for one in seen.item_id[rows]]
            keys, sources = ([name[part] for name in names] for part in (0, 1))
            columns: dict[str, Any] = {"item": keys, "source": sources}
            columns["time"] = seen.time_s[rows] - np.where(stands, seen.elapsed_s[rows], 0.0)
            columns["changed"] = (seen.changed[rows] & ~stands).astype(np.int64)
            for name, values in (("modified", seen.modified_s), ("count", seen.count)):
                columns[name] = np.ma.array(values[rows], mask=stands | np.isnan(values[rows]))
            writer.write({name: columns[name] for name in kinds})
            number += rows.size
    return number


@contextmanager
def _translate_errors(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path} cannot be written: {error.strerror}") from None


def _line(row: dict[str, object]) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode() + b"\n"


def _described(item: Item, copy: Copy) -> dict[str, object]:
    """Return the fields of a copy. Times are Unix seconds; ``changed`` is None before the first change."""
    return {
        "polled": item.polled_s,
        "changed": item.changed_s,
        "media_type": copy.version.media_type,
        "version": copy.version.number,
    }


def file_name(key: str, item_id: int) -> str:
    """Return a file name that contains the key, is unique for every item and cannot leave the folder.

    >>> file_name("https://example.org/a/../b", 7)
    '7-https%3A%2F%2Fexample.org%2Fa%2F..%2Fb'
    """
    return f"{item_id}-{quote(key, safe='')[:_LONGEST_NAME]}"
