"""The links of pages in a SQL database."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence

import afresh.stores.store as contract
from afresh.stores.rows import Row
from afresh.stores.sql.commit_changes import AcceptedPoll
from afresh.stores.sql.dialect import ConnectionT, SqlPart
from afresh.values.stored import PageLinks

_BATCH = 2_000


class SqlLinks(SqlPart[ConnectionT], contract.StoredLinks):
    file = "page_links"

    def add(self, pages: Sequence[PageLinks]) -> None:
        # All writers write pages in the same order, so that two writers cannot deadlock.
        table = sorted((page.item_id, page.depth, page.chain) for page in pages)

        def work(connection: ConnectionT) -> None:
            self._database.run_many(connection, self._sql["add"], ("ids", "depths", "chains"), table)

        if table:
            self._database.write(work)

    def by_id(self, ids: Sequence[int]) -> list[PageLinks]:
        return [_page(row) for row in self._fetch("by_id", ids=self._database.as_list(ids))]

    def read(self) -> Iterator[PageLinks]:
        after = 0
        while found := self._fetch("after", after=after, limit=_BATCH):
            after = found[-1][0]
            yield from map(_page, found)

    def gaining(self) -> list[PageLinks]:
        return [_page(row) for row in self._fetch("gaining")]

    def unlinked(self) -> list[PageLinks]:
        return [_page(row) for row in self._fetch("unlinked")]

    def mark_unlinked(self, ids: Sequence[int], time_s: float | None) -> None:
        if ids:
            self._execute("mark", ids=self._database.as_list(ids), time_s=time_s)

    def keep(self, connection: ConnectionT, polls: Sequence[AcceptedPoll]) -> None:
        """Keep the links that these polls found, in the transaction of ``connection``."""
        table = sorted(
            (poll.item_id, links.gained, pack_keys(links.keys))
            for poll in polls
            if (links := poll.outcome.links) is not None
        )
        if table:
            self._database.run_many(connection, self._sql["keep"], ("ids", "gained", "links"), table)


def _page(row: Row) -> PageLinks:
    item_id, depth, chain, readings, gained, unlinked_s, links = row
    keys = None if links is None else unpack_keys(links)
    return PageLinks(item_id, depth, chain, readings, gained, unlinked_s, keys)


def pack_keys(keys: tuple[str, ...]) -> bytes:
    """Return keys in the form in which a store keeps them.

    >>> unpack_keys(pack_keys(("https://a.test/", "https://a.test/b")))
    ('https://a.test/', 'https://a.test/b')
    """
    return zlib.compress(json.dumps(keys, ensure_ascii=True, separators=(",", ":")).encode(), 1)


def unpack_keys(data: bytes) -> tuple[str, ...]:
    return tuple(json.loads(zlib.decompress(data)))
