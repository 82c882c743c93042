"""The copies as versions of items."""

from __future__ import annotations

from pathlib import Path

import zstandard

from afresh.stores.addresses import content_hash
from afresh.stores.sqlite.database import Database
from afresh.stores.sqlite.queries import load_blocks
from afresh.values.errors import StoreCorruptError
from afresh.values.stored import Copy, Version

_SQL = load_blocks("copies.sql")


class SqliteCopies:
    """``Copies`` in SQLite."""

    def __init__(self, database: Database) -> None:
        """On one database."""
        self._database = database

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        """One copy, checked against its hash: better none than a wrong one."""
        with self._database.read() as connection:
            row = connection.execute(_SQL["get"], (item_id, number)).fetchone()
        if row is None:
            return None
        version = Version(*row[:7])
        return Copy(version, unpacked(row[7], version.size, version.hash, self._database.path))

    def versions(self, item_id: int) -> list[Version]:
        """All versions kept."""
        with self._database.read() as connection:
            return [Version(*row) for row in connection.execute(_SQL["versions"], (item_id,))]


def unpacked(packed: bytes, size: int, address: bytes, path: Path) -> bytes:
    """The content, if it is what its address says."""
    try:
        content = zstandard.ZstdDecompressor().decompress(packed, max_output_size=size)
    except zstandard.ZstdError as error:
        raise StoreCorruptError(
            f"{path}: content {address.hex()[:16]} cannot be unpacked: {error}"
        ) from error
    if content_hash(content) != address:
        raise StoreCorruptError(f"{path}: content {address.hex()[:16]} is not what was stored")
    return content
