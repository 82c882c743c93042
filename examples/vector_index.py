"""A vector index that follows an afresh project: search over copies that stay fresh.

    python examples/vector_index.py update PROJECT INDEX [--follow]
    python examples/vector_index.py search INDEX "how do I configure it"
    python examples/vector_index.py check PROJECT INDEX

``update`` applies every change of the feed once, in order. Each change and the cursor after it are written
in one transaction of the index, so that a process that is killed anywhere loses nothing and repeats nothing.
Of a changed page only the chunks with a new text are embedded; the chunks of a page that is gone are deleted.
``check`` says how fresh the index is: a page counts if the index holds its newest copy, with the probability
that this copy is still what its source shows.

The index is a SQLite file with sqlite-vec. The embedding is made from hashed n-grams of letters: it needs no
model and no network. Replace ``embed`` by your own model.

    pip install 'afresh[text]' apsw sqlite-vec
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from typing import Any

import apsw
import numpy as np
import sqlite_vec

import afresh

DIMENSIONS, CHUNK_CHARACTERS = 256, 800
SCHEMA = f"""
CREATE TABLE IF NOT EXISTS place (cursor TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS page (
    id INTEGER PRIMARY KEY, source TEXT NOT NULL, item TEXT NOT NULL, version INTEGER NOT NULL,
    applied INTEGER NOT NULL,  -- how many changes of this page were applied
    UNIQUE (source, item)
);
CREATE TABLE IF NOT EXISTS chunk (
    id INTEGER PRIMARY KEY, page INTEGER NOT NULL REFERENCES page, hash BLOB NOT NULL, text TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS chunk_of_page ON chunk (page);
CREATE TABLE IF NOT EXISTS embedded (chunks INTEGER NOT NULL);
CREATE VIRTUAL TABLE IF NOT EXISTS vector USING vec0 (embedding float[{DIMENSIONS}]);
"""


def embed(text: str) -> bytes:
    """Return the embedding of a text as 32-bit floats: the counts of its n-grams of 3 to 5 letters, hashed to
    ``DIMENSIONS`` numbers and scaled to length 1."""
    vector = np.zeros(DIMENSIONS, dtype=np.float32)
    for word in re.findall(r"\w+", text.lower()):
        marked = f"<{word}>"
        for length in (3, 4, 5):
            for begin in range(len(marked) - length + 1):
                digest = blake2b(marked[begin : begin + length].encode(), digest_size=8).digest()
                number = int.from_bytes(digest, "little")
                vector[number % DIMENSIONS] += 1.0 if number >> 63 else -1.0
    return bytes(vector / max(float(np.linalg.norm(vector)), 1e-9))


def chunks_of(text: str) -> list[str]:
    """Return the text in parts of about ``CHUNK_CHARACTERS`` characters, cut between paragraphs."""
    parts: list[str] = []
    for paragraph in filter(None, (each.strip() for each in text.split("\n"))):
        if parts and len(parts[-1]) + len(paragraph) < CHUNK_CHARACTERS:
            parts[-1] += "\n" + paragraph
        else:
            parts.append(paragraph)
    return parts


@dataclass(frozen=True)
class Found:
    """A chunk that a search found. A smaller ``distance`` is a better match."""

    item: str
    text: str
    distance: float


class VectorIndex:
    """The index file. Every method that writes is one transaction."""

    def __init__(self, path: str) -> None:
        self._database = apsw.Connection(path)
        self._database.set_busy_timeout(10_000)
        self._database.enable_load_extension(True)
        self._database.load_extension(sqlite_vec.loadable_path())
        self._database.pragma("journal_mode", "wal")
        self._database.execute(SCHEMA)

    def close(self) -> None:
        self._database.close()

    @property
    def cursor(self) -> str | None:
        """The place in the feed up to which changes were applied; None before the first one."""
        place: Any = self._database.execute("SELECT cursor FROM place").get
        return None if place is None else str(place)

    def apply(self, change: afresh.Change) -> None:
        """Apply one change, and save the cursor after it."""
        with self._database:
            is_there = change.kind in ("new", "changed")
            text = change.text if change.text is not None else change.content.decode(errors="replace")
            self._show(
                change.source, change.item, change.version if is_there else 0, text if is_there else ""
            )
            self._save_cursor(change.cursor)

    def start_again(self, cursor: str, pages: Iterable[tuple[str, str, int, str]]) -> None:
        """Replace all pages by ``pages``: tuples (source, item, version, text). ``cursor`` is their place."""
        with self._database:
            kept = set()
            for source, item, version, text in pages:
                self._show(source, item, version, text)
                kept.add((source, item))
            known: Any = self._database.execute("SELECT source, item FROM page").fetchall()
            for source, item in set(known) - kept:
                self._show(source, item, 0, "")
            self._save_cursor(cursor)

    def search(self, words: str, most: int = 5) -> list[Found]:
        found = self._database.execute(
            "SELECT page.item, chunk.text, distance FROM vector JOIN chunk ON chunk.id = vector.rowid"
            " JOIN page ON page.id = chunk.page WHERE embedding MATCH ? AND k = ? ORDER BY distance",
            (embed(words), most),
        )
        return [Found(*row) for row in found]

    def versions(self) -> dict[tuple[str, str], int]:
        """Return the version of each page in the index, by source and item."""
        rows = self._database.execute("SELECT source, item, version FROM page WHERE version > 0")
        return {(source, item): version for source, item, version in rows}

    def _show(self, source: str, item: str, version: int, text: str) -> None:
        """Let the index hold exactly the chunks of ``text`` for a page. Chunks that it has already stay."""
        page = self._page_id(source, item, version)
        wanted = {blake2b(part.encode(), digest_size=16).digest(): part for part in chunks_of(text)}
        held: Any = self._database.execute("SELECT id, hash FROM chunk WHERE page = ?", (page,)).fetchall()
        for chunk, digest in held:
            if wanted.pop(digest, None) is None:
                self._database.execute("DELETE FROM chunk WHERE id = ?", (chunk,))
                self._database.execute("DELETE FROM vector WHERE rowid = ?", (chunk,))
        for digest, part in wanted.items():
            self._database.execute(
                "INSERT INTO chunk (page, hash, text) VALUES (?, ?, ?)", (page, digest, part)
            )
            row = self._database.last_insert_rowid()
            self._database.execute("INSERT INTO vector (rowid, embedding) VALUES (?, ?)", (row, embed(part)))
        self._database.execute("INSERT INTO embedded VALUES (?)", (len(wanted),))

    def _page_id(self, source: str, item: str, version: int) -> int:
        page: Any = self._database.execute(
            "INSERT INTO page (source, item, version, applied) VALUES (?, ?, ?, 1)"
            " ON CONFLICT DO UPDATE SET version = excluded.version, applied = applied + 1 RETURNING id",
            (source, item, version),
        ).get
        return int(page)

    def _save_cursor(self, cursor: str) -> None:
        self._database.execute("DELETE FROM place")
        self._database.execute("INSERT INTO place VALUES (?)", (cursor,))


def update(project: Path, index: VectorIndex, *, form: str, follow: bool) -> int:
    """Apply all changes since the last update, and with ``follow`` those to come; return their number."""
    count = 0
    try:
        for change in afresh.changes(project, since=index.cursor, content=form, wait=follow):
            index.apply(change)
            count += 1
    except afresh.CursorError as error:  # the feed no longer has the changes that followed
        print(f"starting again: {error}", file=sys.stderr)
        cursor = _run_afresh(project, "changes", "--cursor").strip()
        index.start_again(cursor, _copies(project, form))
    return count


def _copies(project: Path, form: str) -> Iterator[tuple[str, str, int, str]]:
    option = () if form == "raw" else (f"--{form}",)
    for line in _run_afresh(project, "export", *option).splitlines():
        row = json.loads(line)
        yield row["source"], row["item"], row["version"], row.get("text") or row.get("content") or ""


def freshness(project: Path, index: VectorIndex) -> dict[str, float]:
    """Return ``in_step``, the share of the pages whose newest copy is in the index, and ``freshness``, the
    mean probability that the index shows what the source shows now; both weighted."""
    rows = _run_afresh(project, "list", "--json", "--columns", "source,item,weight,version,fresh,status")
    pages = [row for row in json.loads(rows)["items"] if row["status"] == "active"]
    held, total = index.versions(), sum(row["weight"] for row in pages) or 1.0
    in_step = [row for row in pages if held.get((row["source"], row["item"])) == row["version"]]
    return {
        "pages": len(pages),
        "in_step": sum(row["weight"] for row in in_step) / total,
        "freshness": sum(row["weight"] * (row["fresh"] or 0.0) for row in in_step) / total,
    }


def _run_afresh(project: Path, *words: str) -> str:
    command = [sys.executable, "-m", "afresh", "-C", str(project), *words]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def main() -> None:
    parser = argparse.ArgumentParser(description="A vector index that follows an afresh project.")
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("update", "check"):
        one = commands.add_parser(name)
        one.add_argument("project", type=Path)
        one.add_argument("index")
    commands.choices["update"].add_argument("--follow", action="store_true", help="wait for further changes")
    commands.choices["update"].add_argument("--form", choices=("raw", "text", "markdown"), default="text")
    search = commands.add_parser("search")
    search.add_argument("index")
    search.add_argument("words")
    given = parser.parse_args()
    with closing(VectorIndex(given.index)) as index:
        if given.command == "update":
            print(f"{update(given.project, index, form=given.form, follow=given.follow)} changes applied")
        elif given.command == "check":
            print(json.dumps(freshness(given.project, index)))
        else:
            for found in index.search(given.words):
                print(f"{found.distance:.3f}  {found.item}  {found.text[:60]!r}")


if __name__ == "__main__":
    main()
