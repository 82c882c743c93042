"""Contents in PostgreSQL: each is kept once under its hash, and counted by the versions that use it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass

from afresh.stores.postgres.binary_arrays import column_arrays
from afresh.stores.postgres.reconnection import Connection, fetch_rows
from afresh.stores.sql.commit import CompressedCopy
from afresh.stores.sql.statements import load_statements

_SQL = load_statements(__package__, "contents")


@dataclass(slots=True)
class SizeChange:
    """How the sizes of a store change in one transaction."""

    versions: int = 0
    contents: int = 0
    content_bytes: int = 0
    stored_bytes: int = 0


def keep_contents(
    connection: Connection, copies: Sequence[CompressedCopy], sizes: SizeChange
) -> dict[bytes, int]:
    """Count one more use per copy, write the bytes that nobody has yet, and return the contents' ids by
    hash."""
    if not copies:
        return {}
    uses, by_hash = Counter(copy.hash for copy in copies), {copy.hash: copy for copy in copies}
    # In one order for all, so that no two workers wait for each other in a circle.
    wanted = [(digest, len(by_hash[digest].copy.content), uses[digest]) for digest in sorted(uses)]
    kept = fetch_rows(connection, _SQL["keep"], column_arrays(("hashes", "sizes", "uses"), wanted))
    new = [(content_id, by_hash[digest]) for content_id, digest, refs in kept if refs == uses[digest]]
    if new:
        payloads = [(content_id, copy.data) for content_id, copy in new]
        fetch_rows(connection, _SQL["keep_payloads"], column_arrays(("ids", "data"), payloads))
    sizes.contents += len(new)
    sizes.content_bytes += sum(len(copy.copy.content) for _, copy in new)
    sizes.stored_bytes += sum(len(copy.data) for _, copy in new)
    return {digest: content_id for content_id, digest, _ in kept}


def drop_contents(connection: Connection, content_ids: Iterable[int], sizes: SizeChange) -> None:
    """Count one use less of each of these contents, and delete those that nobody uses."""
    uses = sorted(Counter(content_ids).items())
    if not uses:
        return
    given = column_arrays(("ids", "uses"), uses)
    fetch_rows(connection, _SQL["lock"], given)
    fetch_rows(connection, _SQL["drop"], given)
    gone = fetch_rows(connection, _SQL["collect"], given)
    if gone:
        payloads = fetch_rows(connection, _SQL["collect_payloads"], {"ids": [row[0] for row in gone]})
        sizes.contents -= len(gone)
        sizes.content_bytes -= sum(size for _, size in gone)
        sizes.stored_bytes -= sum(size for (size,) in payloads)


def keep_size_change(connection: Connection, sizes: SizeChange) -> None:
    """Add the change to the sizes that the store keeps."""
    if sizes != SizeChange():
        fetch_rows(connection, _SQL["resize"], asdict(sizes))
