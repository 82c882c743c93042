"""Writes all copies: as lines of JSON, or as a folder of files."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO
from urllib.parse import quote

from afresh.engine.scheduler.restore import read_items
from afresh.stores.store import Store
from afresh.tables.atomic_output import open_output
from afresh.values.errors import OutputError
from afresh.values.items import Item, ItemQuery
from afresh.values.stored import Copy

_LONGEST_NAME = 120


def read_copies(store: Store) -> Iterator[tuple[Item, Copy]]:
    """Yield every item that has a copy, with its newest one."""
    for item in read_items(store, ItemQuery()):
        copy = store.copies.get(item.id)
        if copy is not None:
            yield item, copy


def write_jsonl(store: Store, out: IO[bytes]) -> int:
    """Write a line for each item: ``item, polled, changed, media_type, version, content``; return how many.
    Content that is not UTF-8 is in ``content_base64`` instead."""
    number = 0
    for item, copy in read_copies(store):
        line: dict[str, object] = {"item": item.key, **_described(item, copy)}
        try:
            line["content"] = copy.content.decode()
        except UnicodeDecodeError:
            line["content_base64"] = base64.b64encode(copy.content).decode()
        out.write(_line(line))
        number += 1
    return number


def write_folder(store: Store, folder: Path) -> int:
    """Write a file for each item, named by its key, and ``index.jsonl`` that lists them; return how many. A
    line there has ``item, file`` and, as in ``write_jsonl``, ``polled, changed, media_type, version``."""
    number = 0
    with _translate_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with open_output(folder / "index.jsonl") as index:
        for item, copy in read_copies(store):
            name = file_name(item.key, item.id)
            with _translate_errors(folder / name):
                (folder / name).write_bytes(copy.content)
            index.write(_line({"item": item.key, "file": name, **_described(item, copy)}))
            number += 1
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
    """Return the fields of a copy; times are Unix seconds, ``changed`` is null before a change."""
    return {
        "polled": item.polled_s,
        "changed": item.changed_s,
        "media_type": copy.version.media_type,
        "version": copy.version.number,
    }


def file_name(key: str, item_id: int) -> str:
    """Return a file name that shows the key, differs for every item and is harmless.

    >>> file_name("https://example.org/a/../b", 7)
    '7-https%3A%2F%2Fexample.org%2Fa%2F..%2Fb'
    """
    return f"{item_id}-{quote(key, safe='')[:_LONGEST_NAME]}"
