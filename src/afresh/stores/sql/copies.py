"""The copies of items, version by version, in a SQL database."""

from __future__ import annotations

from afresh.stores.content_codec import decompress
from afresh.stores.sql.database import ConnectionT, SqlGroup
from afresh.stores.store import Copies
from afresh.values.stored import Copy, Version


class SqlCopies(SqlGroup[ConnectionT], Copies):
    """Implements ``Copies``. A copy whose bytes do not have the hash that was stored is not handed out."""

    file = "copies"

    def get(self, item_id: int, number: int | None = None) -> Copy | None:
        found = self._database.fetch(self._sql["get"], {"item_id": item_id, "number": number})
        if not found:
            return None
        version = Version(*found[0][:7])
        return Copy(version, decompress(found[0][7], version.size, version.hash, self._database.name))

    def versions(self, item_id: int) -> list[Version]:
        return [Version(*row) for row in self._database.fetch(self._sql["versions"], {"item_id": item_id})]
