"""Care for a store in a SQL database: find contradictions and damaged contents."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import ClassVar

from afresh.stores.content_codec import decompress
from afresh.stores.sql.database import ConnectionT, SqlGroup
from afresh.stores.store import Upkeep
from afresh.values.errors import StoreCorruptError


class SqlUpkeep(SqlGroup[ConnectionT], Upkeep):
    """Implements the checks of ``Upkeep``; ``contradictions`` names the statements that find some."""

    file = "upkeep"
    contradictions: ClassVar[tuple[str, ...]]

    @abstractmethod
    def _count_contents(self, connection: ConnectionT) -> int: ...

    def _problems(self, connection: ConnectionT, sample: int | None) -> Iterator[str]:
        """Yield what contradicts itself, and the contents (or a sample of them) that are not what was
        stored."""
        for name in self.contradictions:
            for (line,) in self._database.rows(connection, self._sql[name], {}):
                yield line
        count = self._count_contents(connection)
        every = 1 if sample is None else max(1, -(-count // max(1, sample)))
        last = 0
        while found := self._database.rows(
            connection, self._sql["contents"], {"after": last, "every": every}
        ):
            last = found[-1][0]
            for _, size, expected_hash, data in found:
                try:
                    decompress(data, size, expected_hash, self._database.name)
                except StoreCorruptError as error:
                    yield str(error)
