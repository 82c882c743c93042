"""The upkeep that stores in SQLite and PostgreSQL share: checks, and the deletion of what nothing uses."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import afresh.stores.store as contract
from afresh.stores.codecs import decompress
from afresh.stores.object_copies import ObjectCopies, bytes_of_content
from afresh.stores.rows import Row
from afresh.stores.sql.dialect import ConnectionT, SqlPart
from afresh.stores.sql.unnamed_objects import DELETING, UnnamedObjects, pack_deletion
from afresh.values.errors import StoreCorruptError, StoreMissingError

if TYPE_CHECKING:
    from afresh.stores.sql.store_parts import SqlState


class SqlUpkeep(SqlPart[ConnectionT], contract.Upkeep):
    """Implements the checks of ``Upkeep``. ``contradictions`` are the names of statements that compare tables
    and return one line of text for each contradiction."""

    file = "upkeep"
    contradictions: ClassVar[tuple[str, ...]]
    objects: ObjectCopies | None = None
    state: SqlState[ConnectionT]

    @abstractmethod
    def _count_contents(self, connection: ConnectionT) -> int: ...

    @abstractmethod
    def _drop_versions(self, connection: ConnectionT, versions: Sequence[Row]) -> None:
        """Drop these versions, tuples (item id, number, content id), and contents that no version uses."""

    def drop_old_versions(self, wanted_bytes: int) -> int:
        def work(connection: ConnectionT) -> int:
            oldest = self._rows(connection, "old_versions", {"limit": contract.DROPPED_AT_ONCE})
            dropped: list[Row] = []
            freed = 0
            for *version, stored_bytes in oldest:
                if freed >= wanted_bytes:
                    break
                dropped.append(tuple(version))
                freed += stored_bytes
            self._drop_versions(connection, dropped)
            return len(dropped)

        return self._database.write(work)

    def _problems(self, connection: ConnectionT, sample: int | None) -> Iterator[str]:
        """Yield one line per contradiction between tables, and per content whose hash is wrong. All contents
        are checked, or about ``sample`` of them."""
        for name in self.contradictions:
            for (line,) in self._rows(connection, name, {}):
                yield line
        count = self._count_contents(connection)
        every = 1 if sample is None else max(1, -(-count // max(1, sample)))
        last = 0
        while found := self._rows(connection, "contents", {"after": last, "every": every}):
            last = found[-1][0]
            for _, size, expected_hash, data in found:
                try:
                    packed = bytes_of_content(data, expected_hash, self.objects, self._database.name)
                    decompress(packed, size, expected_hash, self._database.name)
                except (StoreCorruptError, StoreMissingError) as error:
                    yield str(error)

    def delete_unnamed_copies(self, now_s: float) -> int:
        if self.objects is None:
            return 0
        unnamed = UnnamedObjects(
            self.objects,
            named=lambda digests: self._database.snapshot(lambda reading: self._named(reading, digests)),
            begin=self._begin_deletion,
            load=self.state.get,
            save=self.state.set,
        )
        return unnamed.delete(now_s)

    @abstractmethod
    def _named(self, connection: ConnectionT, digests: Sequence[bytes]) -> set[bytes]:
        """Return those of these hashes that contents have."""

    def _begin_deletion(self, digests: list[bytes], now_s: float) -> list[bytes]:
        def work(connection: ConnectionT) -> list[bytes]:
            self._rows(connection, "lock_contents", {})
            named = self._named(connection, digests)
            chosen = [digest for digest in digests if digest not in named]
            self.state.set_in_transaction(connection, {DELETING: pack_deletion(chosen, now_s)})
            return chosen

        return self._database.write(work)
